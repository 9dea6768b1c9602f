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
import { sha256 } from "../../lib/tokens.ts";
import type { Lease } from "./contract.ts";
import { emitJob } from "./events.ts";
import { nextJob } from "./fair-queue.ts";
import { leaseMs, leaseToken } from "./lease.ts";

export type Claimed = { job: JobRow; asset: AssetRow; lease: Lease };

const firstQueued = prepared((db) =>
  db
    .select({ id: transcodingJobs.id })
    .from(transcodingJobs)
    .where(and(eq(transcodingJobs.status, "queued"), lte(transcodingJobs.availableAt, sql.placeholder("now"))))
    .limit(1)
    .prepare(),
);

/** Whether a claim is worth the write queue. */
export const hasQueued = async (app: App) => (await firstQueued(app.db).get({ now: app.clock.now() })) !== undefined;

/**
 * Leases the first queued job, or answers again what this key was given while that lease lives. Null: the queue is
 * empty. 409 when the key's lease is over: a worker that wakes late must not get another's job by asking again.
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
    if (!next) return null;
    // A database that others write to may have given it away since it was read.
    const taken = await tx
      .update(transcodingJobs)
      .set({
        status: "running",
        workerId,
        progress: 0,
        position: 0,
        progressedAt: now,
        stage: "leased",
        startedAt: now,
        leaseExpiresAt: now + leaseMs(app),
        updatedAt: now,
      })
      .where(and(eq(transcodingJobs.id, next.id), eq(transcodingJobs.status, "queued")))
      .returning()
      .get();
    if (!taken) return null;

    const attempt = await tx
      .insert(transcodingAttempts)
      .values({
        jobId: taken.id,
        attempt: taken.failures + 1,
        idempotencyKey: key,
        leaseHash: "",
        workerId,
        startedAt: now,
      })
      .returning()
      .get();
    const token = leaseToken(app, taken.id, attempt.id, key);
    await tx
      .update(transcodingAttempts)
      .set({ leaseHash: sha256(token) })
      .where(eq(transcodingAttempts.id, attempt.id));
    const job = await tx
      .update(transcodingJobs)
      .set({ attemptId: attempt.id })
      .where(eq(transcodingJobs.id, taken.id))
      .returning()
      .get();
    const asset = await tx
      .update(assets)
      .set({
        // One that was registered as a draft is being made now; one that plays goes on playing meanwhile.
        playbackStatus: sql`iif(${assets.playbackStatus} = 'ready', 'ready', 'processing')`,
        progress: 0,
        stage: "leased",
        updatedAt: now,
      })
      .where(eq(assets.id, job.assetId))
      .returning()
      .get();
    await emitJob(tx, app, "video.job.started", job);
    return { job, asset, lease: { token, attemptId: attempt.id, expiresAt: now + leaseMs(app) } };
  });
}

async function repeatOf(tx: Db, app: App, jobId: number, attemptId: number, key: string): Promise<Claimed> {
  const job = await tx.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get();
  const alive = job?.status === "running" && job.attemptId === attemptId && (job.leaseExpiresAt ?? 0) > app.clock.now();
  const asset = alive && (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get());
  if (!alive || !asset)
    throw new HttpError(409, "stale_lease", "The lease that this Idempotency-Key got is over; claim with a new key.");
  return {
    job,
    asset,
    lease: { token: leaseToken(app, jobId, attemptId, key), attemptId, expiresAt: job.leaseExpiresAt ?? 0 },
  };
}
