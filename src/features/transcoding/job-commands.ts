import { and, desc, eq, getTableColumns, inArray, lt, sql } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { type Caller, ownedBy, ownerOf } from "#platform/http/caller.ts";
import { readPage } from "#platform/http/list-cache.ts";
import { Paging, QueryId } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import { AssetId, StatusField } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { type Given, preparedFor } from "#storage/db/prepared.ts";
import { type AssetRow, assets, type JobRow, transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { getAsset } from "../assets/queries.ts";
import { isAdding } from "./added-audio/rows.ts";
import { cancelAttempt } from "./lifecycle/attempts.ts";
import { queueAgain, queueJob } from "./lifecycle/queue.ts";
import { lastJob } from "./lifecycle/repair.ts";
import { JobStatus, type JobWithoutLog } from "./schema.ts";

const conflict = (code: "asset_conflict" | "job_conflict", message: string): never => {
  throw new HttpError(409, code, message);
};

/** It was deleted, or lost from storage, which `admin doctor --fix` recorded. */
const NO_SOURCE = "The source of the asset no longer exists; upload it again.";
const OUTDATED_TRIM = "The asset has other media than those that the job was to trim; trim it again.";
const ADDING_AUDIO = "An audio track is being added to the asset; retry the trim when it is ready.";

export const JobQuery = v.object({
  ...Paging,
  status: describedAs(StatusField, v.optional(JobStatus)),
  asset_id: describedAs(AssetId, v.optional(QueryId)),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});

const { logTail: _, ...WITHOUT_LOG } = getTableColumns(transcodingJobs);
const LISTED = {
  ...WITHOUT_LOG,
  asset: { external_id: assets.externalId, title: assets.title },
  leaseExpiresAt: sql<number | null>`(select lease_expires_at from transcoding_tasks
    where attempt_id = ${transcodingJobs.attemptId} and status = 'running' and known_as_job = 1)`,
};
/** Every job has an asset. The join is an outer one so that SQLite reads jobs in their order. */
export type ListedJob = JobWithoutLog & {
  asset: { external_id: string; title: string } | null;
  leaseExpiresAt: number | null;
};

const jobsPage = preparedFor((db, given: Given<"owner" | "tenantId" | "status" | "assetId" | "before">) =>
  db
    .select(LISTED)
    .from(transcodingJobs)
    .leftJoin(assets, eq(assets.id, transcodingJobs.assetId))
    .where(
      and(
        // An asset has few jobs: the plus sign keeps SQLite from searching them among all of a tenant or status.
        ...[
          given.owner && eq(transcodingJobs.tenantId, given.owner),
          given.tenantId && eq(transcodingJobs.tenantId, given.tenantId),
          given.status && eq(transcodingJobs.status, given.status),
        ].map((one) => (one && given.assetId ? sql`+${one}` : one)),
        given.assetId && eq(transcodingJobs.assetId, given.assetId),
        given.before && lt(transcodingJobs.id, given.before),
      ),
    )
    .orderBy(desc(transcodingJobs.id))
    .limit(sql.placeholder("limit"))
    .prepare(),
);

/** Newest first, up to `limit` + 1 rows, which shows the caller whether there are more. */
export const listJobs = (
  app: App,
  caller: Caller,
  query: v.InferOutput<typeof JobQuery>,
  { limit, before }: { limit: number; before?: number | undefined },
): Promise<ListedJob[]> => {
  const filter = { tenantId: query.tenant_id, status: query.status, assetId: query.asset_id };
  return readPage(app, jobsPage, { owner: ownerOf(caller), ...filter, before, limit: limit + 1 });
};

export const getJob = (db: Db, caller: Caller, id: number): Promise<JobRow | undefined> =>
  db
    .select()
    .from(transcodingJobs)
    .where(and(eq(transcodingJobs.id, id), ownedBy(caller, transcodingJobs.tenantId)))
    .get();

/** The same as an element of the list, with the log. */
export const readJob = (db: Db, caller: Caller, id: number): Promise<(ListedJob & JobRow) | undefined> =>
  db
    .select({ ...LISTED, logTail: transcodingJobs.logTail })
    .from(transcodingJobs)
    .leftJoin(assets, eq(assets.id, transcodingJobs.assetId))
    .where(and(eq(transcodingJobs.id, id), ownedBy(caller, transcodingJobs.tenantId)))
    .get();

/**
 * Cancels a queued or running job until it is retried; its worker is notified by the next heartbeat. An asset that is
 * not ready becomes errored, with its event. Idempotent. Throws 409 when the job has ended.
 */
export const cancelJob = (app: App, caller: Caller, id: number): Promise<JobRow> =>
  app.write(async (tx) => {
    const job = (await getJob(tx, caller, id)) ?? notFound("job");
    if (job.status === "canceled") return job;
    if (job.status !== "queued" && job.status !== "running")
      return conflict("job_conflict", `The job is ${job.status}; only queued or running jobs can be canceled.`);
    return cancelAttempt(tx, app, job);
  });

/** Queues a failed or canceled job again with all attempts. Throws 409 for any other. */
export const retryJob = (app: App, caller: Caller, id: number): Promise<JobRow> =>
  app.write(async (tx) => {
    const job = (await getJob(tx, caller, id)) ?? notFound("job");
    if (job.status !== "failed" && job.status !== "canceled")
      conflict("job_conflict", `The job is ${job.status}; only failed or canceled jobs can be retried.`);
    const asset = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
    if (asset?.sourceKey === "" && !job.clip && !job.joined) conflict("job_conflict", NO_SOURCE);
    if (asset && isOutdatedTrim(job, asset)) conflict("job_conflict", OUTDATED_TRIM);
    if (job.clip?.trim && (await isAdding(tx, job.assetId))) conflict("job_conflict", ADDING_AUDIO);
    const other = and(eq(transcodingJobs.assetId, job.assetId), inArray(transcodingJobs.status, ["queued", "running"]));
    if (await tx.select({ id: transcodingJobs.id }).from(transcodingJobs).where(other).get())
      conflict("job_conflict", "Another job of the same asset is queued or running.");
    return (await queueAgain(tx, app, job, "retry")).job;
  });

/** Changes the priority of a queued job, or of the tasks of a running one; what is leased continues. Throws 409 when it has ended. */
export const prioritize = (app: App, caller: Caller, id: number, priority: number): Promise<JobWithoutLog> =>
  app.write(async (tx) => {
    const job = (await getJob(tx, caller, id)) ?? notFound("job");
    if (job.status !== "queued" && job.status !== "running")
      conflict("job_conflict", `The job is ${job.status}; only queued or running jobs can be prioritized.`);
    await tx.update(transcodingTasks).set({ priority }).where(eq(transcodingTasks.jobId, id));
    await tx.update(assets).set({ priority }).where(eq(assets.id, job.assetId));
    await tx.update(transcodingJobs).set({ priority, updatedAt: app.clock.now() }).where(eq(transcodingJobs.id, id));
    const { asset: __, ...changed } = (await readJob(tx, caller, id)) ?? notFound("job");
    return changed;
  });

/**
 * Queues a new job for an asset whose last job failed or was canceled: an errored asset, or a playable one with an
 * error. Throws 409 for any other, and for one whose source never arrived.
 */
export const retryAsset = (app: App, caller: Caller, id: number): Promise<{ asset: AssetRow; job: JobRow }> =>
  app.write(async (tx) => retryWithin(tx, app, (await getAsset(tx, caller, id)) ?? notFound("asset")));

/** The same for an asset that was read in the same transaction. */
export async function retryWithin(tx: Db, app: App, asset: AssetRow): Promise<{ asset: AssetRow; job: JobRow }> {
  if (asset.provider === "external_serve")
    conflict("asset_conflict", "The asset is served externally; there is nothing to retry.");
  const job = await lastJob(tx, asset.id);
  if (job && isOutdatedTrim(job, asset)) conflict("asset_conflict", OUTDATED_TRIM);
  if (job?.clip?.trim && (await isAdding(tx, asset.id))) conflict("asset_conflict", ADDING_AUDIO);
  const hasEnded = job === undefined || job.status === "failed" || job.status === "canceled";
  const hasFailed = asset.playbackStatus === "errored" || (job !== undefined && asset.errorCode !== null);
  if (!hasFailed || !hasEnded)
    conflict(
      "asset_conflict",
      `The asset is ${asset.playbackStatus}; only assets whose last job failed or was canceled can be retried.`,
    );
  if (asset.sourceKey === "" && !job?.clip && !job?.joined) conflict("asset_conflict", NO_SOURCE);
  return job ? queueAgain(tx, app, job, "retry") : queueJob(tx, app, asset);
}

/** Whether a job is to trim media that the asset does not have any more. */
export const isOutdatedTrim = ({ clip }: Pick<JobRow, "clip">, { mediaPrefix }: Pick<AssetRow, "mediaPrefix">) =>
  clip?.trim !== undefined && clip.trim.mediaPrefix !== mediaPrefix;
