import { and, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { backgroundPacer, type ClockStep } from "#lib/base";
import { transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { leaseMs } from "./lease.ts";

const ROWS_AT_ONCE = 500;

/** Rows whose column is a time; all of them, or a part that an index has. */
type Times = { table: SQL; column: SQL; where?: SQL };

const PENDING = sql`status = 'pending'`;
const QUEUED = sql`status = 'queued'`;
/** Until then something is claimed, kept or held: not shorter. */
const DEADLINES: Times[] = [
  { table: sql`unwanted_objects`, column: sql`due_at` },
  { table: sql`removal_holds`, column: sql`expires_at` },
  { table: sql`source_fetches`, column: sql`claimed_until` },
  { table: sql`webhook_deliveries`, column: sql`claimed_until`, where: PENDING },
  { table: sql`ingest_batches`, column: sql`expires_at`, where: sql`status = 'open'` },
  { table: sql`uploads`, column: sql`expires_at`, where: PENDING },
];
/** From then on something is tried again: earlier, but not later. */
const RETRIES: Times[] = [
  { table: sql`transcoding_jobs`, column: sql`available_at`, where: QUEUED },
  { table: sql`transcoding_tasks`, column: sql`available_at`, where: QUEUED },
  { table: sql`caption_jobs`, column: sql`available_at`, where: QUEUED },
  { table: sql`caption_jobs`, column: sql`translate_at` },
  { table: sql`source_sums`, column: sql`available_at` },
  { table: sql`source_fetches`, column: sql`due_at` },
  { table: sql`webhook_deliveries`, column: sql`next_attempt_at`, where: PENDING },
];

/** When something was heard of last: not long ago, and not in the future. */
const HEARTBEATS: Times[] = [
  { table: sql`imports`, column: sql`renewed_at` },
  { table: sql`servers`, column: sql`seen_at` },
  { table: sql`workers`, column: sql`last_seen_at` },
  { table: sql`live_streams`, column: sql`updated_at`, where: sql`finished_at IS NULL` },
];
/** All heartbeats are more frequent. Older ones are of what has died. */
const HEARD_MS = 60_000;

/**
 * After a step of the clock: what the server itself set for a short time keeps the rest of that time, so that leases are
 * neither lost nor kept for hours, and retries neither stop nor claims end. What clients see as a date (the expiry of an
 * asset, a session, a token) stays that date. The clock follows the step when this resolves.
 *
 * Each process of a server does this: every statement for a step forward, and for leases, changes nothing when it runs again.
 * `isFirst`: of several processes, the one that also moves times back.
 */
export async function settleTimes(app: App, step: ClockStep, isFirst: boolean): Promise<void> {
  const bySeconds = Math.round((step.to - step.from) / 1000);
  const fields = { by_seconds: bySeconds, suspended_seconds: Math.round(step.suspendedMs / 1000) };
  app.log.warn(fields, "the system clock was set, or the process was suspended; leases and retries keep their time");
  try {
    if (step.to > step.from) for (const times of DEADLINES) await moveForward(app, times, step);
    else if (isFirst) for (const times of [...DEADLINES, ...RETRIES]) await moveBack(app, times, step);
    for (const times of HEARTBEATS) await hear(app, times, step);
    await settleLeases(app, step);
  } catch (error) {
    app.log.error({ err: error }, "times could not be moved after a step of the clock");
  }
  // A heartbeat that was being handled has written a time of before the step. The clock has followed by then.
  setImmediate(() => void settleLeases(app, step).catch(() => {}));
}

/** Leases that were alive begin again, those that had ended stay so; the time limits of attempts continue. */
async function settleLeases(app: App, { from, to }: ClockStep): Promise<void> {
  const until = to + leaseMs(app);
  for (const table of [transcodingJobs, transcodingTasks]) {
    const { leaseExpiresAt, startedAt } = table;
    const isAffected =
      to > from
        ? sql`${leaseExpiresAt} > ${from} AND ${leaseExpiresAt} < ${until}`
        : sql`(${leaseExpiresAt} > ${until} OR ${startedAt} > ${to} OR ${table.progressedAt} > ${to})`;
    const where = and(sql`${table.status} = 'running'`, isAffected);
    if (!(await app.db.select({ id: table.id }).from(table).where(where).limit(1).get())) continue;
    const set = {
      leaseExpiresAt: to > from ? until : sql`CASE WHEN ${leaseExpiresAt} > ${from} THEN ${until} ELSE ${to} END`,
      progressedAt: to,
      // A start after the step is one of the new time.
      startedAt: sql`CASE WHEN ${startedAt} <= ${from} THEN ${startedAt} + ${to - from} ELSE min(${startedAt}, ${to}) END`,
    };
    await app.write(async (tx) => tx.update(table).set(set).where(where));
  }
}

/** A row that was moved is after `to`, so it is not moved again. */
const moveForward = (app: App, times: Times, { from, to }: ClockStep) =>
  move(app, times, { after: from, until: to, moved: sql`${times.column} + ${to - from}` });

/** Rows are moved down, in ascending order: each is moved once. */
const moveBack = (app: App, times: Times, { from, to }: ClockStep) =>
  move(app, times, { after: to, moved: sql`max(${to}, ${times.column} - ${from - to})` });

const hear = (app: App, { table, column, where = sql`1` }: Times, { from, to }: ClockStep) =>
  app.write(async (tx) =>
    tx.run(
      to > from
        ? sql`UPDATE ${table} SET ${column} = ${to} WHERE ${where} AND ${column} > ${from - HEARD_MS} AND ${column} < ${to}`
        : sql`UPDATE ${table} SET ${column} = ${to} WHERE ${where} AND ${column} > ${to}`,
    ),
  );

type Range = { after: number; until?: number; moved: SQL };

/** In batches, so that other writers do not wait. */
async function move(app: App, { table, column, where = sql`1` }: Times, { after, until, moved }: Range): Promise<void> {
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
