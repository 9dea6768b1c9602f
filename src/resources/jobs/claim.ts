import { and, eq, lte, sql } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { prepared } from "../../../storage/db/prepared.ts";
import {
  type AssetRow,
  assets,
  type JobRow,
  transcodingAttempts,
  transcodingJobs,
} from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { HttpError } from "../../lib/errors.ts";
import type { Lease } from "./contract.ts";
import { nextJob } from "./fair-queue.ts";
import { leaseToken } from "./lease.ts";
import { startAttempt } from "./lifecycle/attempts.ts";

export type Claimed = { job: JobRow; asset: AssetRow; lease: Lease };

const firstQueued = prepared((db) =>
  db
    .select({ id: transcodingJobs.id })
    .from(transcodingJobs)
    .where(and(eq(transcodingJobs.status, "queued"), lte(transcodingJobs.availableAt, sql.placeholder("now"))))
    .limit(1)
    .prepare(),
);

/** Whether a claim can succeed; checked before entering the write queue. */
export const hasQueued = async (app: App) => (await firstQueued(app.db).get({ now: app.clock.now() })) !== undefined;

/**
 * Leases the first queued job, or returns the job that this claim key received while that lease is valid. Null: the
 * queue is empty. Throws 409 when the key's lease has expired: a worker that resumes late must not receive another job
 * by repeating its request.
 */
export async function claim(app: App, key: string, workerId: string | null): Promise<Claimed | null> {
  return app.write(async (tx) => {
    const now = app.clock.now();
    const earlier = await tx
      .select()
      .from(transcodingAttempts)
      .where(eq(transcodingAttempts.idempotencyKey, key))
      .get();
    if (earlier) return repeatOf(tx, app, earlier.jobId, earlier.id, key);

    const next = await nextJob(tx, now);
    return next ? startAttempt(tx, app, next, { key, workerId }) : null;
  });
}

async function repeatOf(tx: Db, app: App, jobId: number, attemptId: number, key: string): Promise<Claimed> {
  const job = await tx.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get();
  const alive = job?.status === "running" && job.attemptId === attemptId && (job.leaseExpiresAt ?? 0) > app.clock.now();
  const asset = alive && (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get());
  if (!alive || !asset)
    throw new HttpError(409, "stale_lease", "The lease of this Idempotency-Key has ended; claim with a new key.");
  return {
    job,
    asset,
    lease: { token: leaseToken(app, jobId, attemptId, key), attemptId, expiresAt: job.leaseExpiresAt ?? 0 },
  };
}
