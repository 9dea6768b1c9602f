import { eq, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type JobRow, transcodingAttempts, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { metricsOf } from "../../http/metrics.ts";
import { emitAsset, emitJob } from "./events.ts";
import type { Leased } from "./lease.ts";
import type { Failure } from "./schema.ts";

/** The first retry comes at once; after that a job that keeps failing waits longer each time, up to ten minutes. */
const backoffMs = (failures: number) => (failures <= 1 ? 0 : Math.min(600_000, 5000 * 2 ** (failures - 2)));

export type Fault = {
  code: string;
  message: string;
  retryable: boolean;
  logTail: string | null;
  outcome: "failed" | "expired";
};

/** What a worker tells of its failure. */
export const faultOf = (told: v.InferOutput<typeof Failure>): Fault => ({
  code: told.code,
  message: told.message,
  retryable: told.retryable,
  logTail: told.log_tail ?? null,
  outcome: "failed",
});

/** What a worker tells of services outside, for the metrics. */
export function countFault(app: App, { code }: v.InferOutput<typeof Failure>): void {
  if (code === "caption_failed") metricsOf(app).services.add("transcription");
}

/** An attempt ended badly: the job is queued again, or, when none is left or the input is at fault, it and its asset fail. */
export async function failAttempt(tx: Db, app: App, { job, attempt }: Leased, fault: Fault): Promise<JobRow> {
  const now = app.clock.now();
  const failures = job.failures + 1;
  const willRetry = fault.retryable && failures < job.maxAttempts;
  await endAttempt(tx, app, attempt.id, fault.outcome);
  const failed = await tx
    .update(transcodingJobs)
    .set({
      status: willRetry ? "queued" : "failed",
      failures,
      availableAt: now + backoffMs(failures),
      leaseExpiresAt: null,
      progress: 0,
      stage: willRetry ? "queued" : "failed",
      errorCode: fault.code,
      errorMessage: fault.message,
      logTail: fault.logTail,
      finishedAt: willRetry ? null : now,
      updatedAt: now,
    })
    .where(eq(transcodingJobs.id, job.id))
    .returning()
    .get();
  await emitJob(tx, app, "video.job.failed", failed, willRetry);
  if (willRetry) {
    await setAssetStage(tx, app, job.assetId, "queued");
    await emitJob(tx, app, "video.job.queued", failed);
    return failed;
  }
  await showFailure(tx, app, job.assetId, fault);
  return failed;
}

/**
 * The job of an asset has ended without a result. An asset that plays stays `ready`, whatever made it so (an earlier job,
 * early playback, a batch, its registration): the failure shows in its `error` alone. Any other becomes `errored`, and
 * `video.asset.errored` is emitted.
 */
export async function showFailure(
  tx: Db,
  app: App,
  assetId: number,
  { code, message }: Pick<Fault, "code" | "message">,
): Promise<void> {
  const asset = await tx
    .update(assets)
    .set({
      playbackStatus: sql`iif(${assets.playbackStatus} = 'ready', 'ready', 'errored')`,
      progress: sql`iif(${assets.playbackStatus} = 'ready', 100, 0)`,
      stage: null,
      errorCode: code,
      errorMessage: message,
      updatedAt: app.clock.now(),
    })
    .where(eq(assets.id, assetId))
    .returning()
    .get();
  if (asset.playbackStatus === "errored") await emitAsset(tx, app, "video.asset.errored", asset);
}

/** The worker gives the job back unharmed: it stops, or something else is to be done first. No attempt is counted. */
export async function releaseAttempt(tx: Db, app: App, { job, attempt }: Leased): Promise<JobRow> {
  const now = app.clock.now();
  await endAttempt(tx, app, attempt.id, "released");
  const queued = await tx
    .update(transcodingJobs)
    .set({
      status: "queued",
      availableAt: now,
      leaseExpiresAt: null,
      workerId: null,
      progress: 0,
      stage: "queued",
      updatedAt: now,
    })
    .where(eq(transcodingJobs.id, job.id))
    .returning()
    .get();
  await setAssetStage(tx, app, job.assetId, "queued");
  await emitJob(tx, app, "video.job.queued", queued);
  return queued;
}

export const endAttempt = (
  tx: Db,
  app: App,
  attemptId: number,
  outcome: "completed" | "failed" | "expired" | "released" | "canceled",
  resultHash: string | null = null,
) =>
  tx
    .update(transcodingAttempts)
    .set({ outcome, resultHash, endedAt: app.clock.now() })
    .where(eq(transcodingAttempts.id, attemptId));

const setAssetStage = (tx: Db, app: App, assetId: number, stage: string) =>
  tx.update(assets).set({ stage, progress: 0, updatedAt: app.clock.now() }).where(eq(assets.id, assetId));

/** Ends an attempt as `end` does; its job may be another worker's at once. */
export async function requeueReleased(app: App, end: (tx: Db) => Promise<JobRow>): Promise<JobRow> {
  const job = await app.write(end);
  app.signals.emit("job.queued");
  return job;
}
