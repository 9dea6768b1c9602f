import { and, asc, eq, lt, lte, or } from "drizzle-orm";
import { type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { attemptById, heartbeatSeconds } from "./lease.ts";
import { type Fault, failAttempt } from "./lifecycle/attempts.ts";

const BATCH = 100;

/**
 * Queues jobs again whose worker stopped sending heartbeats, or makes no progress; fails those without attempts left. A
 * job that has reached the time limit is not retried: the next attempt would take as long. Returns their number.
 */
export async function recoverLeases(app: App): Promise<number> {
  const now = app.clock.now();
  const { job_timeout_seconds, job_stall_seconds } = app.config;
  const startedBefore = now - job_timeout_seconds * 1000;
  const movedBefore = now - job_stall_seconds * 1000;
  const jobs = transcodingJobs;
  const due = and(
    eq(jobs.status, "running"),
    or(lte(jobs.leaseExpiresAt, now), lte(jobs.startedAt, startedBefore), lte(jobs.progressedAt, movedBefore)),
  );
  const faultOf = (job: JobRow): Fault => {
    const common = { logTail: null, outcome: "expired" as const };
    const worker = `The worker ${job.workerId ?? "(unknown)"}`;
    if ((job.leaseExpiresAt ?? 0) <= now)
      return { ...common, code: "lease_expired", message: `${worker} missed its heartbeat.`, retryable: true };
    if ((job.startedAt ?? now) <= startedBefore)
      return {
        ...common,
        code: "time_limit_exceeded",
        message: `The attempt took longer than ${job_timeout_seconds} s.`,
        retryable: false,
      };
    return {
      ...common,
      code: "stalled",
      message: `${worker} made no progress for ${job_stall_seconds} s.`,
      retryable: true,
    };
  };
  // Checked outside the write queue first: there is almost never anything to do.
  if (!(await app.db.select({ id: jobs.id }).from(jobs).where(due).limit(1).get())) return 0;
  return app.write(async (tx) => {
    const expired = await tx.select().from(jobs).where(due).orderBy(asc(jobs.leaseExpiresAt)).limit(BATCH).all();
    for (const job of expired)
      await failAttempt(tx, app, { job, attempt: await attemptById(tx, job.attemptId) }, faultOf(job));
    return expired.length;
  });
}

/**
 * The server was down, not the workers: leases that expired meanwhile, or are about to, are extended by two heartbeats,
 * so that a restart loses no encode. Once, before the first recovery.
 */
export async function graceAfterStart(app: App): Promise<void> {
  const until = app.clock.now() + 2 * heartbeatSeconds(app) * 1000;
  const jobs = transcodingJobs;
  const late = and(eq(jobs.status, "running"), lt(jobs.leaseExpiresAt, until));
  if (!(await app.db.select({ id: jobs.id }).from(jobs).where(late).limit(1).get())) return;
  await app.write(async (tx) => tx.update(jobs).set({ leaseExpiresAt: until }).where(late));
}
