import { and, asc, eq, isNotNull, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { audioTracks, captionJobs, captionParts, transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { attemptById } from "./job-lease.ts";
import { leaseEnd } from "./lease.ts";
import { type Fault, failAttempt } from "./lifecycle/attempts.ts";
import { failTask } from "./tasks/fail.ts";
import { IS_RUNNING } from "./tasks/lifecycle.ts";

const BATCH = 100;
/** Before any attempt. */
const NEVER = -1;

/** Times in milliseconds: a lease is lost that expired before the first of them, started or progressed before the others. */
type LostSince = { now: number; startedBefore: number; movedBefore: number };
type Holder = { workerId: string | null; leaseExpiresAt: number | null; startedAt: number | null };
type FaultOf = (lease: Holder) => Fault;

/** Tables whose rows are leased, with time limits for what runs. */
const LIMITED = [
  {
    table: transcodingJobs,
    // Otherwise its tasks are leased.
    isRunning: and(sql`${transcodingJobs.status} = 'running'`, isNotNull(transcodingJobs.leaseExpiresAt)),
    async lose(tx: Db, app: App, isLost: SQL | undefined, faultOf: FaultOf) {
      const job = await tx.select().from(transcodingJobs).where(isLost).get();
      if (job) await failAttempt(tx, app, { job, attempt: await attemptById(tx, job.attemptId) }, faultOf(job));
    },
  },
  {
    table: transcodingTasks,
    isRunning: IS_RUNNING,
    async lose(tx: Db, app: App, isLost: SQL | undefined, faultOf: FaultOf) {
      const found = await tx
        .select({ task: transcodingTasks, job: transcodingJobs })
        .from(transcodingTasks)
        .innerJoin(transcodingJobs, eq(transcodingJobs.id, transcodingTasks.jobId))
        .where(isLost)
        .get();
      if (found) await failTask(tx, app, found, faultOf(found.task));
    },
  },
] as const;

/** Tables whose leases have no other limit than their end: the next claim takes what is lost. */
const UNLIMITED = [
  { table: captionJobs, isRunning: sql`${captionJobs.status} = 'running'` },
  { table: captionParts, isRunning: sql`${captionParts.status} = 'running'` },
  { table: audioTracks, isRunning: sql`${audioTracks.status} = 'processing'` },
] as const;

/**
 * Queues jobs and tasks again whose worker stopped sending heartbeats, or makes no progress; fails those without
 * attempts left. Returns their number.
 */
export async function recoverLeases(app: App): Promise<number> {
  const since = lostSince(app);
  const faultOf: FaultOf = (lease) => faultOfLost(app, lease, since);
  let lost = 0;
  for (const { table, isRunning, lose } of LIMITED) {
    const isLost = and(
      isRunning,
      or(
        lte(table.leaseExpiresAt, since.now),
        lte(table.startedAt, since.startedBefore),
        lte(table.progressedAt, since.movedBefore),
      ),
    );
    // Checked outside the write queue first: there is almost never anything to do.
    if (!(await app.db.select({ id: table.id }).from(table).where(isLost).limit(1).get())) continue;
    lost += await app.write(async (tx) => {
      const rows = await tx
        .select({ id: table.id })
        .from(table)
        .where(isLost)
        .orderBy(asc(table.leaseExpiresAt))
        .limit(BATCH);
      // The failure of another one may have ended it.
      for (const { id } of rows) await lose(tx, app, and(eq(table.id, id), isLost), faultOf);
      return rows.length;
    });
  }
  return lost;
}

/**
 * The server was down, not the workers: leases that expired meanwhile, or are about to, are renewed as by a heartbeat, so
 * that a restart loses no encode. Once, before the first request is answered.
 */
export async function graceAfterStart(app: App): Promise<void> {
  const until = leaseEnd(app);
  for (const { table, isRunning } of [...LIMITED, ...UNLIMITED]) {
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
 * Why the lease of a job or a task is lost. One that has reached the time limit is not retried: the next attempt would
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
