import { and, asc, eq, isNotNull, lt, lte, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { transcodingJobs } from "#storage/db/schema.ts";
import { attemptById, leaseMs } from "./lease.ts";
import { failAttempt } from "./lifecycle/attempts.ts";
import { faultOfLost, lostSince } from "./lost.ts";
import { extendTaskLeases, recoverTasks } from "./tasks/recover.ts";

const BATCH = 100;

/**
 * Queues jobs and tasks again whose worker stopped sending heartbeats, or makes no progress; fails those without
 * attempts left. Returns their number.
 */
export async function recoverLeases(app: App): Promise<number> {
  return (await recoverJobs(app)) + (await recoverTasks(app));
}

async function recoverJobs(app: App): Promise<number> {
  const since = lostSince(app);
  const jobs = transcodingJobs;
  const due = and(
    eq(jobs.status, "running"),
    // Otherwise its tasks are leased.
    isNotNull(jobs.leaseExpiresAt),
    or(
      lte(jobs.leaseExpiresAt, since.now),
      lte(jobs.startedAt, since.startedBefore),
      lte(jobs.progressedAt, since.movedBefore),
    ),
  );
  // Checked outside the write queue first: there is almost never anything to do.
  if (!(await app.db.select({ id: jobs.id }).from(jobs).where(due).limit(1).get())) return 0;
  return app.write(async (tx) => {
    const expired = await tx.select().from(jobs).where(due).orderBy(asc(jobs.leaseExpiresAt)).limit(BATCH).all();
    for (const job of expired)
      await failAttempt(tx, app, { job, attempt: await attemptById(tx, job.attemptId) }, faultOfLost(app, job, since));
    return expired.length;
  });
}

/**
 * The server was down, not the workers: leases that expired meanwhile, or are about to, are renewed as by a heartbeat, so
 * that a restart loses no encode. Once, before the first request is answered.
 */
export async function graceAfterStart(app: App): Promise<void> {
  const until = app.clock.now() + leaseMs(app);
  const jobs = transcodingJobs;
  await extendTaskLeases(app, until);
  const late = and(eq(jobs.status, "running"), lt(jobs.leaseExpiresAt, until));
  if (!(await app.db.select({ id: jobs.id }).from(jobs).where(late).limit(1).get())) return;
  await app.write(async (tx) => tx.update(jobs).set({ leaseExpiresAt: until }).where(late));
}
