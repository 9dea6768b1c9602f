import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { requireTenant } from "#features/tenants/queries.ts";
import { requireMinutes } from "#features/tenants/quota.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type ClipJob, type JobRow, type JoinedPart } from "#storage/db/schema.ts";
import { profileOfJob, publishedProfile } from "../encoding-profile.ts";
import { queuePositionFor } from "../fair-queue.ts";
import { currentParts } from "../joined-part.ts";
import { requirementsOf } from "../requirements.ts";
import { queueTask } from "../tasks/lifecycle.ts";
import { applyTransition, type Changed } from "./apply.ts";

/** What an asset and its job show while the job is queued, without an earlier error. */
const QUEUED = { progress: 0, stage: "queued", errorCode: null, errorMessage: null };

/**
 * Queues a job for `asset` in the caller's transaction. An asset that is ready stays ready; with `silently` the asset
 * is not changed until the job starts. With `clip` the job cuts an exact clip, with `joined` it joins the media of other
 * assets; `profile` is the one to keep, by default that of the asset. Of a job that was published already,
 * `video.asset.ready` is not emitted again. Throws 403 `quota_exceeded` when the tenant's minutes are used up.
 */
export async function queueJob(
  tx: Db,
  app: App,
  asset: AssetRow,
  {
    silently = false,
    clip = null,
    joined = null,
    profile,
    wasPublished = false,
  }: {
    silently?: boolean;
    clip?: ClipJob | null;
    joined?: JoinedPart[] | null;
    profile?: Pick<JobRow, "profile" | "encodingSpec">;
    wasPublished?: boolean;
  } = {},
): Promise<Changed> {
  const now = app.clock.now();
  await requireMinutes(tx, app, await requireTenant(tx, { kind: "admin" }, asset.tenantId));
  const runs = { ...(profile ?? (await profileOfJob(tx, app, asset))), clip, joined };
  const job = {
    tenantId: asset.tenantId,
    assetId: asset.id,
    priority: asset.priority,
    earlyPlayback: asset.earlyPlayback && clip === null && joined === null,
    maxAttempts: app.config.max_attempts,
    ...runs,
    partsRequire: requirementsOf(runs).partsRequire,
    ...(wasPublished && { publishedAt: now }),
  };
  const subject = { assetId: asset.id };
  const queued = silently
    ? await applyTransition(tx, app, "queueSilently", subject, { job })
    : await applyTransition(tx, app, "queue", subject, { job, asset: QUEUED });
  await queueLast(tx, app, queued.job);
  return queued;
}

/** Queues a job behind its tenant's last one. */
async function queueLast(tx: Db, app: App, job: JobRow): Promise<void> {
  const now = app.clock.now();
  await queueTask(tx, app, job, { queuePosition: await queuePositionFor(tx, job.tenantId, now), availableAt: now });
}

type Why = "retry" | "rebuild" | "reencode" | "trim";

/**
 * Queues the job of an earlier attempt again with all attempts, in the caller's transaction. An asset that is ready
 * stays ready, and early playback continues: `video.asset.ready` is emitted once. `profileOf`: the asset whose profile
 * the job is to have from now on; a trim keeps the one with which the media were encoded. Throws 403 `quota_exceeded` with
 * it and for a trim, when the tenant's minutes are used up. Only a retry cuts the same clip or trims the same media; `clip`
 * is what the job is to trim from now on. What is joined are the media that the parts have now.
 */
export async function queueAgain(
  tx: Db,
  app: App,
  job: JobRow,
  why: Why,
  { profileOf, clip = null }: { profileOf?: AssetRow; clip?: ClipJob | null } = {},
): Promise<Changed> {
  const now = app.clock.now();
  const before = await tx
    .select({ playbackStatus: assets.playbackStatus, encoding: assets.encoding })
    .from(assets)
    .where(eq(assets.id, job.assetId))
    .get();
  if (profileOf || why === "trim")
    await requireMinutes(tx, app, await requireTenant(tx, { kind: "admin" }, job.tenantId));
  const runs = {
    ...(profileOf && { ...(await profileOfJob(tx, app, profileOf)), mediaProfile: publishedProfile(job) }),
    ...(why === "trim" && publishedProfile(job)),
    ...(why !== "retry" && { clip }),
    ...(job.joined && { joined: why === "trim" ? null : await currentParts(tx, job.joined) }),
  };
  const fresh = {
    ...QUEUED,
    ...runs,
    partsRequire: requirementsOf({ ...job, ...runs }).partsRequire,
    // Media that are complete are not replaced by some that are not.
    ...(before?.playbackStatus === "ready" && before.encoding === null && { earlyPlayback: false }),
    failures: 0,
    publishedAt: before?.playbackStatus === "ready" ? publishedBefore(why, job, now) : null,
    workerId: null,
    logTail: null,
    startedAt: null,
    finishedAt: null,
  };
  // A failed job keeps what it was to trim, for a retry.
  if (why !== "retry" && job.clip?.trim && job.status !== "completed")
    await scheduleDeletion(tx, app, [job.clip.prefix]);
  const subject = { assetId: job.assetId, jobId: job.id };
  const encoding = sql<"partial" | null>`iif(${assets.encoding} is null, null, 'partial')`;
  const queued = await applyTransition(tx, app, why, subject, { job: fresh, asset: { ...QUEUED, encoding } });
  await queueLast(tx, app, queued.job);
  return queued;
}

/** When the job published an asset that is ready. Trimmed media are other ones, so `ready` is emitted again. */
function publishedBefore(why: Why, { publishedAt, clip }: JobRow, now: number): number | null {
  if (why === "trim" || (why === "retry" && clip?.trim)) return null;
  return why === "reencode" ? now : publishedAt;
}
