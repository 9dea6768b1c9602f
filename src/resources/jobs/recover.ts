import { and, asc, eq, lte } from "drizzle-orm";
import { transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { failAttempt } from "./end.ts";
import { attemptById } from "./lease.ts";

const BATCH = 100;

/** Jobs whose worker went silent are queued again, or fail when no attempt is left. Answers how many there were. */
export async function recoverLeases(app: App): Promise<number> {
  const expired = and(eq(transcodingJobs.status, "running"), lte(transcodingJobs.leaseExpiresAt, app.clock.now()));
  // Looked at outside the write queue first: nearly always there is nothing to do.
  if (!(await app.db.select({ id: transcodingJobs.id }).from(transcodingJobs).where(expired).limit(1).get())) return 0;
  const recovered = await app.write(async (tx) => {
    const jobs = await tx
      .select()
      .from(transcodingJobs)
      .where(expired)
      .orderBy(asc(transcodingJobs.leaseExpiresAt))
      .limit(BATCH)
      .all();
    for (const job of jobs) {
      const attempt = await attemptById(tx, job.attemptId);
      const message = `The worker ${job.workerId ?? "that had the lease"} sent no heartbeat in time.`;
      await failAttempt(
        tx,
        app,
        { job, attempt },
        { code: "lease_expired", message, retryable: true, logTail: null, outcome: "expired" },
      );
    }
    return jobs.length;
  });
  app.signals.emit("job.queued");
  return recovered;
}
