import { and, desc, eq, inArray, lt, ne } from "drizzle-orm";
import * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { type Caller, ownedBy } from "../../http/caller.ts";
import { Paging, QueryId } from "../../http/schemas.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { getAsset } from "../assets/queries.ts";
import { endAttempt, showFailure } from "./attempts.ts";
import { enqueue } from "./enqueue.ts";
import { emitJob } from "./events.ts";
import { queuePositionFor } from "./fair-queue.ts";
import { JobStatus } from "./schema.ts";

const conflict = (code: "asset_conflict" | "job_conflict", message: string): never => {
  throw new HttpError(409, code, message);
};

/** It was lost from storage, and `admin doctor --fix` wrote that down. */
const NO_SOURCE = "The asset has no source any more; upload it again.";

export const JobQuery = v.object({
  ...Paging,
  status: v.optional(JobStatus),
  asset_id: v.optional(QueryId),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});

/** Newest first, up to `limit` + 1 rows so that the caller sees whether there are more. */
export const listJobs = (
  db: Db,
  caller: Caller,
  query: v.InferOutput<typeof JobQuery>,
  page: { limit: number; before?: number | undefined },
): Promise<JobRow[]> =>
  db
    .select()
    .from(transcodingJobs)
    .where(
      and(
        ownedBy(caller, transcodingJobs.tenantId),
        query.tenant_id === undefined ? undefined : eq(transcodingJobs.tenantId, query.tenant_id),
        query.status && eq(transcodingJobs.status, query.status),
        query.asset_id === undefined ? undefined : eq(transcodingJobs.assetId, query.asset_id),
        page.before === undefined ? undefined : lt(transcodingJobs.id, page.before),
      ),
    )
    .orderBy(desc(transcodingJobs.id))
    .limit(page.limit + 1)
    .all();

export const getJob = (db: Db, caller: Caller, id: number): Promise<JobRow | undefined> =>
  db
    .select()
    .from(transcodingJobs)
    .where(and(eq(transcodingJobs.id, id), ownedBy(caller, transcodingJobs.tenantId)))
    .get();

/**
 * Ends a queued or running job for good, until somebody retries it; a worker that is at it hears of it with its next
 * heartbeat. An asset that is not ready is errored by it, with its event.
 * A repeat changes nothing. 409 when the job is over.
 */
export const cancelJob = (app: App, caller: Caller, id: number): Promise<JobRow> =>
  app.write(async (tx) => {
    const job = (await getJob(tx, caller, id)) ?? notFound("job");
    if (job.status === "canceled") return job;
    if (job.status !== "queued" && job.status !== "running")
      return conflict("job_conflict", `The job is ${job.status}; only one that is queued or running can be canceled.`);
    const now = app.clock.now();
    if (job.status === "running" && job.attemptId !== null) await endAttempt(tx, app, job.attemptId, "canceled");
    const canceled = await tx
      .update(transcodingJobs)
      .set({ status: "canceled", leaseExpiresAt: null, stage: "canceled", finishedAt: now, updatedAt: now })
      .where(eq(transcodingJobs.id, id))
      .returning()
      .get();
    const failure = { code: "canceled", message: "The transcoding job was canceled." };
    await showFailure(tx, app, job.assetId, failure);
    return canceled;
  });

/** Queues a failed or canceled job again, with all its attempts before it. 409 for any other. Wake the workers then. */
export const retryJob = (app: App, caller: Caller, id: number): Promise<JobRow> =>
  app.write(async (tx) => {
    const job = (await getJob(tx, caller, id)) ?? notFound("job");
    if (job.status !== "failed" && job.status !== "canceled")
      conflict("job_conflict", `The job is ${job.status}; only one that has failed or was canceled can be retried.`);
    const asset = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
    if (asset?.sourceKey === "") conflict("job_conflict", NO_SOURCE);
    const other = and(eq(transcodingJobs.assetId, job.assetId), inArray(transcodingJobs.status, ["queued", "running"]));
    if (await tx.select({ id: transcodingJobs.id }).from(transcodingJobs).where(other).get())
      conflict("job_conflict", "Another job of the same asset is queued or running.");
    return (await requeue(tx, app, job)).job;
  });

/** Where in the queue a job stands; what is running goes on. 409 when it is over. */
export const prioritize = (app: App, caller: Caller, id: number, priority: number): Promise<JobRow> =>
  app.write(async (tx) => {
    const job = (await getJob(tx, caller, id)) ?? notFound("job");
    if (job.status !== "queued" && job.status !== "running")
      conflict(
        "job_conflict",
        `The job is ${job.status}; only one that is queued or running has a priority to change.`,
      );
    await tx.update(assets).set({ priority }).where(eq(assets.id, job.assetId));
    return tx
      .update(transcodingJobs)
      .set({ priority, updatedAt: app.clock.now() })
      .where(eq(transcodingJobs.id, id))
      .returning()
      .get();
  });

/**
 * Queues the work of an asset again whose last job failed or was canceled: of an errored one, and of one that plays and
 * shows an error. 409 for any other, and for one whose source never came.
 */
export const retryAsset = (app: App, caller: Caller, id: number): Promise<{ asset: AssetRow; job: JobRow }> =>
  app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    if (asset.provider === "external_serve")
      conflict("asset_conflict", "The asset's media lie elsewhere; there is nothing to retry.");
    if (asset.sourceKey === "") conflict("asset_conflict", NO_SOURCE);
    const job = await tx
      .select()
      .from(transcodingJobs)
      .where(eq(transcodingJobs.assetId, id))
      .orderBy(desc(transcodingJobs.id))
      .limit(1)
      .get();
    const hasEnded = job === undefined || job.status === "failed" || job.status === "canceled";
    const hasFailed = asset.playbackStatus === "errored" || (job !== undefined && asset.errorCode !== null);
    if (!hasFailed || !hasEnded)
      conflict(
        "asset_conflict",
        `The asset is ${asset.playbackStatus}; only one whose last job failed or was canceled can be retried.`,
      );
    return job ? requeue(tx, app, job) : enqueue(tx, app, asset);
  });

/**
 * The job again, with all its attempts before it; in the transaction that calls for it. An asset that is ready stays so, and
 * what was published early stays published: `video.asset.ready` is emitted once.
 */
export async function requeue(tx: Db, app: App, job: JobRow): Promise<{ job: JobRow; asset: AssetRow }> {
  const now = app.clock.now();
  const before = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
  const fresh = { progress: 0, stage: "queued", errorCode: null, errorMessage: null, updatedAt: now };
  const queued = await tx
    .update(transcodingJobs)
    .set({
      ...fresh,
      status: "queued",
      failures: 0,
      publishedAt: before?.playbackStatus === "ready" ? job.publishedAt : null,
      turn: await queuePositionFor(tx, job.tenantId, now),
      workerId: null,
      logTail: null,
      availableAt: now,
      leaseExpiresAt: null,
      startedAt: null,
      finishedAt: null,
    })
    .where(eq(transcodingJobs.id, job.id))
    .returning()
    .get();
  await tx.update(assets).set(fresh).where(eq(assets.id, job.assetId));
  // What is ready goes on playing while it is made anew.
  await tx
    .update(assets)
    .set({ playbackStatus: "processing" })
    .where(and(eq(assets.id, job.assetId), ne(assets.playbackStatus, "ready")));
  await emitJob(tx, app, "video.job.queued", queued);
  const asset = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
  return { job: queued, asset: asset as AssetRow };
}
