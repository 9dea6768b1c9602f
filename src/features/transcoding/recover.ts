import { and, asc, eq, lt, lte, or, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { audioTracks, captionJobs, captionParts, transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { leaseEnd } from "./lease.ts";
import type { Fault } from "./lifecycle/attempts.ts";
import { failTask } from "./tasks/fail.ts";
import { leasedWhere } from "./tasks/lease.ts";
import { IS_RUNNING } from "./tasks/lifecycle.ts";

const BATCH = 100;
/** Before any attempt. */
const NEVER = -1;

/** Times in milliseconds: a lease is lost that expired before the first of them, started or progressed before the others. */
type LostSince = { now: number; startedBefore: number; movedBefore: number };
type Holder = { workerId: string | null; leaseExpiresAt: number | null; startedAt: number | null };

/** Tables whose rows are leased. Leases of tasks also have time limits; of the others the next claim takes what is lost. */
const LEASED = [
  { table: transcodingTasks, isRunning: IS_RUNNING },
  { table: captionJobs, isRunning: sql`${captionJobs.status} = 'running'` },
  { table: captionParts, isRunning: sql`${captionParts.status} = 'running'` },
  { table: audioTracks, isRunning: sql`${audioTracks.status} = 'processing'` },
] as const;

/**
 * Queues tasks again whose worker stopped sending heartbeats, or makes no progress; fails those without attempts left.
 * Returns their number.
 */
export async function recoverLeases(app: App): Promise<number> {
  const since = lostSince(app);
  const tasks = transcodingTasks;
  const isLost = and(
    IS_RUNNING,
    or(
      lte(tasks.leaseExpiresAt, since.now),
      lte(tasks.startedAt, since.startedBefore),
      lte(tasks.progressedAt, since.movedBefore),
    ),
  );
  // Checked outside the write queue first: there is almost never anything to do.
  if (!(await app.db.select({ id: tasks.id }).from(tasks).where(isLost).limit(1).get())) return 0;
  return app.write(async (tx) => {
    const rows = await tx
      .select({ id: tasks.id, jobId: tasks.jobId })
      .from(tasks)
      .where(isLost)
      .orderBy(asc(tasks.leaseExpiresAt))
      .limit(BATCH);
    for (const { id, jobId } of rows) {
      // The failure of another one may have ended it.
      const lost = await leasedWhere(tx, and(eq(tasks.id, id), isLost));
      const job = lost && (await tx.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get());
      if (job) await failTask(tx, app, { ...lost, job }, faultOfLost(app, lost.task, since));
    }
    return rows.length;
  });
}

/**
 * The server was down, not the workers: leases that expired meanwhile, or are about to, are renewed as by a heartbeat, so
 * that a restart loses no encode. Once, before the first request is answered.
 */
export async function graceAfterStart(app: App): Promise<void> {
  const until = leaseEnd(app);
  for (const { table, isRunning } of LEASED) {
    const isLate = and(isRunning, lt(table.leaseExpiresAt, until));
    if (!(await app.db.select({ id: table.id }).from(table).where(isLate).limit(1).get())) continue;
    await app.write(async (tx) => tx.update(table).set({ leaseExpiresAt: until }).where(isLate));
  }
}

function lostSince({ clock, config }: App): LostSince {
  const now = clock.now();
  return {
    now,
    startedBefore: config.job_timeout_seconds === 0 ? NEVER : now - config.job_timeout_seconds * 1000,
    movedBefore: now - config.job_stall_seconds * 1000,
  };
}

/**
 * Why the lease of a task is lost. One that has reached the time limit is not retried: the next attempt would
 * take as long.
 */
function faultOfLost({ config }: App, lease: Holder, { now, startedBefore }: LostSince): Fault {
  const common = { logTail: null, outcome: "expired" as const };
  const worker = `The worker ${lease.workerId ?? "(unknown)"}`;
  if ((lease.leaseExpiresAt ?? 0) <= now)
    return { ...common, code: "lease_expired", message: `${worker} missed its heartbeat.`, retryable: true };
  if ((lease.startedAt ?? now) <= startedBefore)
    return {
      ...common,
      code: "time_limit_exceeded",
      message: `The attempt took longer than ${config.job_timeout_seconds} s.`,
      retryable: false,
    };
  return {
    ...common,
    code: "stalled",
    message: `${worker} made no progress for ${config.job_stall_seconds} s.`,
    retryable: true,
  };
}
