import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { abortAfter } from "#lib/base";
import { databaseFile } from "#storage/db/open.ts";
import { reasonOf } from "./finding.ts";

/** Leases and tokens are valid for minutes. */
const MAX_SKEW_S = 60;
/** Number of the newest rows of a table to inspect: after a clock was set back, newer rows have earlier times. */
const NEWEST = 1000;
const ANSWER_MS = 10_000;

/**
 * Compares the server's clock with all other sources of time: existing rows, the monotonic clock, the storage server and
 * a remote database. Throws Error with all faults.
 */
export async function examineClock(app: App): Promise<string> {
  const looks = [
    () => againstRows(app),
    async () => sinceStart(app),
    () => againstStorage(app),
    () => againstDatabase(app),
  ];
  const messages: string[] = [];
  const faults: string[] = [];
  for (const look of looks) {
    const result = await look().catch((error) => ({ fault: reasonOf(error) }));
    if (result === null) continue;
    if (typeof result === "string") messages.push(result);
    else faults.push(result.fault);
  }
  if (faults.length > 0) throw new Error(faults.join("; "));
  return messages.join("; ");
}

type ClockCheck = string | { fault: string } | null;

async function againstRows({ db, clock }: App): Promise<ClockCheck> {
  const newest = (table: string, column: string) =>
    sql`select max(at) as at from (select ${sql.raw(column)} as at from ${sql.raw(table)} order by id desc limit ${NEWEST})`;
  const row = await db.get<{ at: number | null }>(sql`select max(at) as at from (
    ${newest("events", "created_at")} union all ${newest("audit_entries", "created_at")}
    union all ${newest("uploads", "created_at")} union all ${newest("transcoding_attempts", "started_at")})`);
  const ahead = Math.round(((row?.at ?? 0) - clock.now()) / 1000);
  if (ahead <= MAX_SKEW_S) return "no row has a time in the future";
  return {
    fault: `the newest rows of the database are ${ahead} s in the future: the clock was set back, or was ahead when they were written; synchronize it with NTP`,
  };
}

/** A clock that does not jump advances like the monotonic one, which stops while a machine sleeps. */
function sinceStart({ clock }: App): ClockCheck {
  const jumped = Math.round((clock.now() - (performance.timeOrigin + performance.now())) / 1000);
  if (jumped < -MAX_SKEW_S)
    return {
      fault: `the clock was set back by ${-jumped} s since the server started; synchronize it with NTP and restart`,
    };
  return jumped > MAX_SKEW_S
    ? `it jumped forward by ${jumped} s since the server started (clock change or suspend)`
    : "no jumps since the server started";
}

async function againstStorage({ objects, clock }: App): Promise<ClockCheck> {
  if (!objects?.clock) return null;
  const { owner, maxSkewSeconds, limit, read } = objects.clock;
  return compared(owner, await read().catch(() => null), clock.now(), maxSkewSeconds, limit);
}

/** Any response has the time in its Date header (RFC 9110, 6.6.1). */
async function againstDatabase({ config, clock }: App): Promise<ClockCheck> {
  const address = config.database_url;
  if (address === undefined || databaseFile(address) !== null) return null;
  const url = new URL(address.replace(/^(libsql|wss?):/, (scheme) => (isPlain(address, scheme) ? "http:" : "https:")));
  const answer = await fetch(url.origin, { redirect: "manual", signal: abortAfter(ANSWER_MS) }).catch(() => null);
  await answer?.body?.cancel();
  const serverMs = Date.parse(answer?.headers.get("date") ?? "");
  return compared("the database", Number.isNaN(serverMs) ? null : new Date(serverMs), clock.now(), MAX_SKEW_S);
}

const isPlain = (address: string, scheme: string) => scheme === "ws:" || /[?&]tls=0\b/.test(address);

function compared(owner: string, otherTime: Date | null, now: number, most: number, more = ""): ClockCheck {
  if (otherTime === null) return `${owner} does not report its time`;
  const skew = Math.round((now - otherTime.getTime()) / 1000);
  const comparison = `it is ${Math.abs(skew)} s ${skew < 0 ? "behind" : "ahead of"} the clock of ${owner}`;
  return Math.abs(skew) <= most ? comparison : { fault: `${comparison}; synchronize it with NTP. ${more}`.trim() };
}
