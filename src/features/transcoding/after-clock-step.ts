import { and, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer, type ClockStep } from "#lib/base";
import { transcodingTasks } from "#storage/db/schema.ts";
import { leaseMs } from "./lease.ts";
import { IS_RUNNING } from "./tasks/lifecycle.ts";

const ROWS_AT_ONCE = 500;

/** Rows whose column is a time; all of them, or a part that an index has. */
type Times = { table: string; column: string; where?: SQL };

const PENDING = sql`status = 'pending'`;
const QUEUED = sql`status = 'queued'`;
const RUNNING = sql`status = 'running'`;
const PROCESSING = sql`status = 'processing'`;
/** Until then something is claimed, kept or held: not shorter. */
const DEADLINES: Times[] = [
  { table: "unwanted_objects", column: "due_at" },
  { table: "removal_holds", column: "expires_at" },
  { table: "source_fetches", column: "claimed_until" },
  { table: "webhook_deliveries", column: "claimed_until", where: PENDING },
  { table: "ingest_batches", column: "expires_at", where: sql`status = 'open'` },
  { table: "uploads", column: "expires_at", where: PENDING },
  { table: "replaced_media", column: "expires_at" },
  // The claim of a mail that is being sent. Other mail has links, which expire at the time that it names.
  { table: "mails", column: "due_at" },
  { table: "mails", column: "expires_at", where: sql`kind = 'notification'` },
];
/** From then on something is tried again: earlier, but not later. */
const RETRIES: Times[] = [
  { table: "transcoding_tasks", column: "available_at", where: QUEUED },
  { table: "caption_jobs", column: "available_at", where: QUEUED },
  // Another worker gets them when theirs is lost.
  { table: "caption_jobs", column: "available_at", where: RUNNING },
  { table: "caption_jobs", column: "translate_at" },
  { table: "caption_parts", column: "available_at", where: QUEUED },
  { table: "caption_parts", column: "available_at", where: RUNNING },
  { table: "audio_tracks", column: "available_at", where: PROCESSING },
  { table: "source_sums", column: "available_at" },
  { table: "source_fetches", column: "due_at" },
  { table: "webhook_deliveries", column: "next_attempt_at", where: PENDING },
];

/** When something was heard of last: not long ago, and not in the future. */
const HEARTBEATS: Times[] = [
  { table: "imports", column: "renewed_at" },
  { table: "servers", column: "seen_at" },
  { table: "workers", column: "last_seen_at" },
  { table: "workers", column: "transcribes_at" },
  { table: "live_streams", column: "updated_at", where: sql`finished_at IS NULL` },
];
/** Leases that have no more than their end; those of tasks have time limits too (`settleLeases`). */
const LEASES: Times[] = [
  { table: "caption_jobs", column: "lease_expires_at", where: RUNNING },
  { table: "caption_parts", column: "lease_expires_at", where: RUNNING },
  { table: "audio_tracks", column: "lease_expires_at", where: PROCESSING },
];
/** Since when something lasts that has consequences after some days: not longer. */
const BEGINNINGS: Times[] = [{ table: "webhook_endpoints", column: "failing_since" }];

/** All columns whose times follow a step, as `<table>.<column>`. */
export const settledColumns: readonly string[] = [
  ...[...DEADLINES, ...RETRIES, ...HEARTBEATS, ...LEASES, ...BEGINNINGS].map(
    ({ table, column }) => `${table}.${column}`,
  ),
  ...["lease_expires_at", "started_at", "progressed_at"].map((column) => `transcoding_tasks.${column}`),
];

type Named = Record<"table" | "column" | "where", SQL>;
const named = ({ table, column, where = sql`1` }: Times): Named => ({
  table: sql.raw(table),
  column: sql.raw(column),
  where,
});

/** All heartbeats are more frequent. Older ones are of what has died. */
const HEARD_MS = 60_000;
/** All processes have settled the times after as long. */
const SETTLING_MS = 60_000;

/**
 * After a step of the clock: what the server itself set for a short time keeps the rest of that time, so that leases are
 * neither lost nor kept for hours, and retries neither stop nor claims end. What clients see as a date (the expiry of an
 * asset, a session, a token) stays that date. The clock follows the step when this resolves.
 *
 * Each process of a server does this: every statement for a step forward, and for leases, changes nothing when it runs again.
 * `isFirst`: of several processes, the one that also moves times back, and beginnings.
 */
export async function settleTimes(app: App, step: ClockStep, isFirst: boolean): Promise<void> {
  const bySeconds = Math.round((step.to - step.from) / 1000);
  const fields = { by_seconds: bySeconds, suspended_seconds: Math.round(step.suspendedMs / 1000) };
  app.log.warn(fields, "the system clock was set, or the process was suspended; leases and retries keep their time");
  try {
    if (step.to > step.from) for (const times of DEADLINES) await moveForward(app, times, step);
    else if (isFirst) for (const times of [...DEADLINES, ...RETRIES, ...BEGINNINGS]) await moveBack(app, times, step);
    if (step.to > step.from && isFirst) for (const times of BEGINNINGS) await beginLater(app, times, step);
    for (const times of HEARTBEATS) await hear(app, times, step);
    await settleLeases(app, step, false);
  } catch (error) {
    app.log.error({ err: error }, "times could not be moved after a step of the clock");
  }
  // A heartbeat that was being handled has written a time of before the step. The clock has followed by then.
  setImmediate(() => void settleLeases(app, step, true).catch(() => {}));
}

/**
 * Leases that were alive begin again, those that had ended stay so; the time limits of attempts continue. `isAgain`: starts
 * have been moved, except for those that were written meanwhile.
 *
 * After a step back, times of up to SETTLING_MS after it may be those of heartbeats that came since, and are left as they are.
 */
async function settleLeases(app: App, { from, to }: ClockStep, isAgain: boolean): Promise<void> {
  const until = to + leaseMs(app);
  const isLease = (expiresAt: SQL) =>
    to > from ? sql`(${expiresAt} > ${from} AND ${expiresAt} < ${until})` : sql`${expiresAt} > ${until + SETTLING_MS}`;
  const settled = (expiresAt: SQL) =>
    to > from ? sql`${until}` : sql`CASE WHEN ${expiresAt} > ${from} THEN ${until} ELSE ${to} END`;
  for (const { table, column, where } of LEASES.map(named))
    await app.write(async (tx) =>
      tx.run(sql`UPDATE ${table} SET ${column} = ${settled(column)} WHERE ${where} AND ${isLease(column)}`),
    );
  const { startedAt, progressedAt } = transcodingTasks;
  const leaseExpiresAt = sql`${transcodingTasks.leaseExpiresAt}`;
  const future = to + SETTLING_MS;
  const isAffected =
    to > from
      ? isLease(leaseExpiresAt)
      : sql`(${isLease(leaseExpiresAt)} OR ${startedAt} > ${future} OR ${progressedAt} > ${future})`;
  const where = and(IS_RUNNING, isAffected);
  if (!(await app.db.select({ id: transcodingTasks.id }).from(transcodingTasks).where(where).limit(1).get())) return;
  // A start after the step is one of the new time.
  const notLater = sql`min(${startedAt}, ${to})`;
  const set = {
    leaseExpiresAt: settled(leaseExpiresAt),
    progressedAt: to,
    startedAt: isAgain
      ? sql`CASE WHEN ${startedAt} BETWEEN ${from} AND ${from + SETTLING_MS} THEN ${to} ELSE ${notLater} END`
      : sql`CASE WHEN ${startedAt} <= ${from} THEN ${startedAt} + ${to - from} ELSE ${notLater} END`,
  };
  await app.write(async (tx) => tx.update(transcodingTasks).set(set).where(where));
}

/** A row that was moved is after `to`, so it is not moved again. */
const moveForward = (app: App, times: Times, { from, to }: ClockStep) =>
  move(app, named(times), { after: from, until: to, moved: sql`${named(times).column} + ${to - from}` });

/** Rows are moved down, in ascending order: each is moved once. */
const moveBack = (app: App, times: Times, { from, to }: ClockStep) =>
  move(app, named(times), { after: to, moved: sql`max(${to}, ${named(times).column} - ${from - to})` });

/** There are few of these rows. Repeated, it would move them again. */
function beginLater(app: App, times: Times, { from, to }: ClockStep): Promise<unknown> {
  const { table, column } = named(times);
  return app.write(async (tx) =>
    tx.run(sql`UPDATE ${table} SET ${column} = ${column} + ${to - from} WHERE ${column} <= ${from}`),
  );
}

function hear(app: App, times: Times, { from, to }: ClockStep): Promise<unknown> {
  const { table, column, where } = named(times);
  return app.write(async (tx) =>
    tx.run(
      to > from
        ? sql`UPDATE ${table} SET ${column} = ${to} WHERE ${where} AND ${column} > ${from - HEARD_MS} AND ${column} < ${to}`
        : sql`UPDATE ${table} SET ${column} = ${to} WHERE ${where} AND ${column} > ${to}`,
    ),
  );
}

type Range = { after: number; until?: number; moved: SQL };

/** In batches, so that other writers do not wait. */
async function move(app: App, { table, column, where }: Named, { after, until, moved }: Range): Promise<void> {
  const pace = backgroundPacer();
  const last = until === undefined ? sql`1` : sql`${column} <= ${until}`;
  for (let from = after; !app.stopping.aborted; await pace()) {
    const [batch] = await app.db.all<{ end: number | null }>(sql`SELECT max(time) AS end FROM (
      SELECT ${column} AS time FROM ${table} WHERE ${where} AND ${column} > ${from} AND ${last}
      ORDER BY ${column} LIMIT ${ROWS_AT_ONCE})`);
    const end = batch?.end ?? null;
    if (end === null) return;
    await app.write(async (tx) =>
      tx.run(
        sql`UPDATE ${table} SET ${column} = ${moved} WHERE ${where} AND ${column} > ${from} AND ${column} <= ${end}`,
      ),
    );
    from = end;
  }
}
