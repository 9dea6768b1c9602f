import { and, asc, eq, lt, lte, or } from "drizzle-orm";
import { type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { type Fault, failAttempt } from "./attempts.ts";
import { attemptById, heartbeatSeconds } from "./lease.ts";

const BATCH = 100;

/**
 * Jobs whose worker went silent, and those that go on without getting anywhere, are queued again, or fail when no
 * attempt is left. One that has run for as long as any may is not tried again: the next attempt would take as long.
 * Answers how many there were.
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
    const worker = `The worker ${job.workerId ?? "that had the lease"}`;
    if ((job.leaseExpiresAt ?? 0) <= now)
      return { ...common, code: "lease_expired", message: `${worker} sent no heartbeat in time.`, retryable: true };
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
  // Looked at outside the write queue first: nearly always there is nothing to do.
  if (!(await app.db.select({ id: jobs.id }).from(jobs).where(due).limit(1).get())) return 0;
  const recovered = await app.write(async (tx) => {
    const found = await tx.select().from(jobs).where(due).orderBy(asc(jobs.leaseExpiresAt)).limit(BATCH).all();
    for (const job of found)
      await failAttempt(tx, app, { job, attempt: await attemptById(tx, job.attemptId) }, faultOf(job));
    return found.length;
  });
  app.signals.emit("job.queued");
  return recovered;
}

/**
 * The server was away, not the workers: leases that ran out meanwhile, and those about to, last for two more heartbeats,
 * so that no encode is lost to a restart. Once, before the first recovery.
 */
export async function graceAfterStart(app: App): Promise<void> {
  const until = app.clock.now() + 2 * heartbeatSeconds(app) * 1000;
  const jobs = transcodingJobs;
  const late = and(eq(jobs.status, "running"), lt(jobs.leaseExpiresAt, until));
  if (!(await app.db.select({ id: jobs.id }).from(jobs).where(late).limit(1).get())) return;
  await app.write(async (tx) => tx.update(jobs).set({ leaseExpiresAt: until }).where(late));
}
