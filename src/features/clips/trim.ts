import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { impossible } from "#lib/manifests";
import { imagesPrefix, isMediaPrefix } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { markReferenced, scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JobRow, tenants } from "#storage/db/schema.ts";
import { getAsset } from "../assets/queries.ts";
import { passOnMedia, scheduleRelease } from "../assets/shared-media.ts";
import { addStoredBytes, mediaBytesOf } from "../assets/stored-bytes.ts";
import { conflict, trimTexts } from "../subtitles/trim-texts.ts";
import { requireStored } from "../tenants/quota.ts";
import { requireAudioIn, trimAddedTracks } from "../transcoding/added-audio/cut.ts";
import { isAdding } from "../transcoding/added-audio/rows.ts";
import { emitAssetReady } from "../transcoding/lifecycle/events.ts";
import { profileOfMedia } from "../transcoding/lifecycle/media-profile.ts";
import { queueAgain, queueJob } from "../transcoding/lifecycle/queue.ts";
import { lastJob } from "../transcoding/lifecycle/repair.ts";
import { clipJob, mediaColumns, type PreparedClip, prepareClip, requireReady } from "./create.ts";
import type { ClipMode } from "./cut-media.ts";

/** Players that have just read the old manifests may still request them. */
const OLD_MEDIA_MS = 60_000;

/** Prepares that an asset plays only a part of its media, at once or after a job. Throws as `prepareClip`. */
export async function prepareTrim(
  app: App,
  caller: Caller,
  id: number,
  wanted: { start: number; end: number; mode: ClipMode },
  signal: AbortSignal,
): Promise<PreparedClip> {
  const asset = (await getAsset(app.db, caller, id)) ?? notFound("asset");
  if (asset.mediaPrefix !== null && !isMediaPrefix(asset.mediaPrefix, asset.tenantId))
    impossible("its media were registered and are not managed here");
  if (await isAdding(app.db, id))
    impossible("an added audio track is being encoded; repeat the request when it is ready");
  const trim = await prepareClip(app, caller, id, { ...wanted, title: undefined }, { signal, isTrim: true });
  // Whole segments are kept, which may be more than the range.
  await requireAudioIn(app, asset, trim.media.exact ? wanted : trim.media);
  return trim;
}

/**
 * The asset plays only the prepared part from now on, with its event. The rest of its media is deleted, except what clips
 * play; its source is not changed. Throws 404, 422 `asset_not_ready`, 409 `asset_conflict` when it is being encoded or was
 * changed meanwhile, 403 `quota_exceeded`.
 */
export async function trimAsset(tx: Db, app: App, caller: Caller, trim: PreparedClip): Promise<AssetRow> {
  const { asset: before, job } = await begin(tx, app, caller, trim);
  const ownBytes = await mediaBytesOf(tx, before);
  const now = app.clock.now();
  const columns = {
    ...mediaColumns(before, trim),
    mp4Path: null,
    readyAt: now,
    updatedAt: now,
    // An exact trim that failed was of the media before.
    ...(job?.clip?.trim && { errorCode: null, errorMessage: null }),
  };
  const isAsset = eq(assets.id, before.id);
  const trimmed = await tx.update(assets).set(columns).where(isAsset).returning().get();
  await addStoredBytes(tx, app, trimmed, trim.bytes - ownBytes);
  if (before.sharedPrefix === null) await passOnMedia(tx, app, before);
  else {
    // Its manifests, and segments of its own that were copied.
    await scheduleDeletion(tx, app, [before.mediaPrefix as string], OLD_MEDIA_MS);
    await scheduleRelease(tx, app, trimmed);
  }
  await scheduleDeletion(tx, app, [imagesPrefix(before)]);
  await trimTexts(tx, app, trimmed, trim);
  if (!(await trimAddedTracks(tx, app, trimmed, { cut: trim.audio, isKept: false }))) conflict();
  const after = (await tx.select().from(assets).where(isAsset).get()) as AssetRow;
  await emitAssetReady(tx, app, after);
  return after;
}

/**
 * Queues the job that trims the asset at frames: it plays its old media until the job is complete. Throws as `trimAsset`,
 * and 403 `quota_exceeded` when the tenant's minutes are used up.
 */
export async function queueTrim(tx: Db, app: App, caller: Caller, trim: PreparedClip): Promise<JobRow> {
  const { asset, job } = await begin(tx, app, caller, trim);
  const { media, prefix, range } = trim;
  if (!media.exact) throw new Error("A trim of whole segments needs no job");
  const { sharedPrefix, sharedMedia, ...columns } = mediaColumns(asset, trim);
  const mediaPrefix = asset.mediaPrefix as string;
  const clip = {
    ...clipJob(columns, prefix, media.exact),
    trim: { mediaPrefix, sharedPrefix, sharedMedia, ...range },
  };
  return (
    await (job
      ? queueAgain(tx, app, job, "trim", { clip })
      : queueJob(tx, app, asset, { clip, profile: await profileOfMedia(tx, app, asset) }))
  ).job;
}

/** The asset and its last job, which has ended; the prepared objects are referenced from now on. */
async function begin(tx: Db, app: App, caller: Caller, trim: PreparedClip) {
  const asset = (await getAsset(tx, caller, trim.parent.id)) ?? notFound("asset");
  requireReady(asset);
  const job = await lastJob(tx, asset.id);
  const isEncoding = job?.status === "queued" || job?.status === "running";
  if (isEncoding || (await isAdding(tx, asset.id)) || asset.mediaPrefix !== trim.parent.mediaPrefix) conflict();
  const tenant = (await tx.select().from(tenants).where(eq(tenants.id, asset.tenantId)).get()) ?? notFound("asset");
  requireStored(app, tenant, trim.bytes);
  await markReferenced(tx, trim.prefix);
  return { asset, job };
}
