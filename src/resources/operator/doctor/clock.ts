import { sql } from "drizzle-orm";
import { databaseFile } from "../../../../storage/db/open.ts";
import type { App } from "../../../app.ts";
import { reasonOf } from "./finding.ts";

/** Leases and tokens are measured in minutes. */
const MAX_SKEW_S = 60;
/** S3 refuses what was signed a quarter of an hour away from its own time. */
const MAX_S3_SKEW_S = 300;
/** So many of the newest rows of a table are looked at: behind a clock that was set back, newer rows have earlier times. */
const NEWEST = 1000;
const ANSWER_MS = 10_000;

/**
 * The server's clock against all that tells a time: rows that are written already, its own steady clock, S3 and a remote
 * database. Throws Error with all faults.
 */
export async function examineClock(app: App): Promise<string> {
  const looks = [() => againstRows(app), async () => sinceStart(app), () => againstS3(app), () => againstDatabase(app)];
  const told: string[] = [];
  const faults: string[] = [];
  for (const look of looks) {
    const found = await look().catch((error) => ({ fault: reasonOf(error) }));
    if (found === null) continue;
    if (typeof found === "string") told.push(found);
    else faults.push(found.fault);
  }
  if (faults.length > 0) throw new Error(faults.join("; "));
  return told.join("; ");
}

type Found = string | { fault: string } | null;

async function againstRows({ db, clock }: App): Promise<Found> {
  const newest = (table: string, column: string) =>
    sql`select max(at) as at from (select ${sql.raw(column)} as at from ${sql.raw(table)} order by id desc limit ${NEWEST})`;
  const row = await db.get<{ at: number | null }>(sql`select max(at) as at from (
    ${newest("events", "created_at")} union all ${newest("audit_entries", "created_at")}
    union all ${newest("uploads", "created_at")} union all ${newest("transcoding_attempts", "started_at")})`);
  const ahead = Math.round(((row?.at ?? 0) - clock.now()) / 1000);
  if (ahead <= MAX_SKEW_S) return "no row is of the future";
  return {
    fault: `the newest rows of the database are ${ahead} s in the future: the clock was set back, or was ahead when they were written; set it by NTP`,
  };
}

/** A clock that does not jump goes as the steady one. That one stands still while a machine sleeps. */
function sinceStart({ clock }: App): Found {
  const jumped = Math.round((clock.now() - (performance.timeOrigin + performance.now())) / 1000);
  if (jumped < -MAX_SKEW_S)
    return { fault: `the clock was set back by ${-jumped} s since the server started; set it by NTP and start again` };
  return jumped > MAX_SKEW_S
    ? `it was set forward, or the machine slept, by ${jumped} s since the server started`
    : "it runs steadily";
}

async function againstS3({ objects, clock }: App): Promise<Found> {
  if (objects?.kind !== "s3") return null;
  const theirs = await objects.serverTime().catch(() => null);
  return compared("S3", theirs, clock.now(), MAX_S3_SKEW_S, "Beyond 900 s S3 refuses everything.");
}

/** Any answer will do: it tells the time in its Date (RFC 9110, 6.6.1). */
async function againstDatabase({ config, clock }: App): Promise<Found> {
  const address = config.database_url;
  if (address === undefined || databaseFile(address) !== null) return null;
  const url = new URL(address.replace(/^(libsql|wss?):/, (scheme) => (isPlain(address, scheme) ? "http:" : "https:")));
  const answer = await fetch(url.origin, { redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS) }).catch(
    () => null,
  );
  await answer?.body?.cancel();
  const theirs = Date.parse(answer?.headers.get("date") ?? "");
  return compared("the database", Number.isNaN(theirs) ? null : new Date(theirs), clock.now(), MAX_SKEW_S);
}

const isPlain = (address: string, scheme: string) => scheme === "ws:" || /[?&]tls=0\b/.test(address);

function compared(whose: string, theirs: Date | null, now: number, most: number, more = ""): Found {
  if (theirs === null) return `${whose} tells no time`;
  const skew = Math.round((now - theirs.getTime()) / 1000);
  const told = `it is ${Math.abs(skew)} s ${skew < 0 ? "behind" : "ahead of"} the clock of ${whose}`;
  return Math.abs(skew) <= most ? told : { fault: `${told}; set it by NTP. ${more}`.trim() };
}
