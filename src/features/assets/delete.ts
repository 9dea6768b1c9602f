import { and, eq, isNotNull, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import { assetPrefix, isDeliveredPrefix, isPrefix, ownerOf, parseKey } from "#model/object-keys.ts";
import { emit } from "#platform/events/emit.ts";
import type { Caller } from "#platform/http/caller.ts";
import { lateMs, scheduleDeletion } from "#platform/http/object-gc.ts";
import { isDeletionHeld } from "#platform/http/removal-hold.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import {
  type AssetRow,
  assets,
  audioTracks,
  subtitles,
  transcodingJobs,
  type UploadRow,
  uploads,
} from "#storage/db/schema.ts";
import { UNREVOCABLE_MS } from "#storage/objects/store.ts";
import { assetEventData } from "./events.ts";
import { getAsset } from "./queries.ts";
import { deleteUnshared, passOnMedia, releaseMedia } from "./shared-media.ts";
import { deleteAssetRow } from "./stored-bytes.ts";

const SETTLED_LEASES = 2;

/**
 * Deletes an asset that was read in the same transaction, with its dependent rows, and emits its event. Its objects are
 * deleted when a worker that was encoding it has noticed and stopped writing. Returns their keys and prefixes.
 */
export async function removeAsset(tx: Db, app: App, asset: AssetRow): Promise<string[]> {
  await passOnMedia(tx, app, asset);
  const trims = await trimPrefixes(tx, asset);
  const texts = await joinedTexts(tx, asset);
  const pending = await tx
    .select()
    .from(uploads)
    .where(and(eq(uploads.assetId, asset.id), eq(uploads.status, "pending")))
    .all();
  // Its URLs are refused from the commit on; the writers that run stop, and leave nothing.
  if (pending.length > 0) afterCommit(tx, () => void dropPending(app, pending));
  const audio = await audioKeys(tx, asset);
  await deleteAssetRow(tx, app, asset);
  await releaseMedia(tx, app, asset);
  const own = [
    assetPrefix(asset),
    ...((await isSourceElsewhere(tx, asset)) ? [] : [asset.sourceKey]),
    ...(await deliveredMedia(tx, asset)),
    ...trims,
    ...texts,
    ...audio,
  ];
  const settledMs = SETTLED_LEASES * app.config.lease_seconds * 1000;
  // Where URLs cannot be revoked, those of its upload and of its workers work until they expire.
  const until = Math.max(app.clock.now() + UNREVOCABLE_MS, ...pending.map(({ expiresAt }) => expiresAt));
  await scheduleDeletion(tx, app, own, Math.max(settledMs, lateMs(app, until)));
  const data = { ...assetEventData(app, asset), playback_url: null, error: null };
  await emit(tx, app, "video.asset.deleted", { tenantId: asset.tenantId, data });
  return own;
}

/** Deletes what pending uploads have stored so far. What a crash leaves is swept. */
async function dropPending({ objects, log }: App, pending: readonly UploadRow[]): Promise<void> {
  for (const { id, objectKey, multipartId } of pending) {
    try {
      await objects?.appends?.discard(objectKey);
      if (multipartId !== null) await objects?.abortMultipart(objectKey, multipartId);
    } catch (error) {
      log.warn({ err: error, upload_id: id }, "the parts of an ended upload could not be deleted yet");
    }
  }
}

/** Deletes an asset, and its objects at once: a second time they are deleted as `removeAsset` schedules it. */
export async function deleteAsset(app: App, caller: Caller, id: number): Promise<void> {
  const deleted = await app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    return removeAsset(tx, app, asset);
  });
  const { objects } = app;
  // While a backup may be copying them, they are only scheduled for deletion.
  if (!objects || (await isDeletionHeld(app))) return;
  try {
    for (const key of deleted) await (isPrefix(key) ? deleteUnshared(app, objects, key) : objects.delete(key));
  } catch (error) {
    app.log.warn({ err: error, asset_id: id }, "some objects of a deleted asset could not be deleted");
  }
}

/** The prefixes of the manifests from which jobs were to trim it. */
async function trimPrefixes(tx: Db, { id }: AssetRow): Promise<string[]> {
  const ofAsset = eq(transcodingJobs.assetId, id);
  const jobs = await tx.select({ clip: transcodingJobs.clip }).from(transcodingJobs).where(ofAsset).all();
  return jobs.flatMap(({ clip }) => (clip?.trim ? [clip.prefix] : []));
}

/** Subtitles of a joined asset: they were stored before it had an id. */
async function joinedTexts(tx: Db, { id }: AssetRow): Promise<string[]> {
  const isJoin = and(eq(transcodingJobs.assetId, id), isNotNull(transcodingJobs.joined));
  if (!(await tx.select({ id: transcodingJobs.id }).from(transcodingJobs).where(isJoin).limit(1).get())) return [];
  const rows = await tx.select({ key: subtitles.objectKey }).from(subtitles).where(eq(subtitles.assetId, id)).all();
  return rows.flatMap(({ key }) => (parseKey(key)?.kind === "delivered" ? [key] : []));
}

/** The files and media of added audio tracks. */
async function audioKeys(tx: Db, { id }: AssetRow): Promise<string[]> {
  const columns = { source: audioTracks.sourceKey, prefix: audioTracks.prefix };
  const rows = await tx.select(columns).from(audioTracks).where(eq(audioTracks.assetId, id)).all();
  return rows.flatMap(({ source, prefix }) => [source, prefix]).filter((key) => key !== null);
}

/** The prefix of media that a client delivered with a batch upload, unless another asset is registered on it. */
async function deliveredMedia(tx: Db, { id, tenantId, mediaPrefix }: AssetRow): Promise<string[]> {
  if (mediaPrefix === null || !isDeliveredPrefix(mediaPrefix, tenantId)) return [];
  const shared = and(eq(assets.tenantId, tenantId), eq(assets.mediaPrefix, mediaPrefix), ne(assets.id, id));
  return (await tx.select({ id: assets.id }).from(assets).where(shared).limit(1).get()) ? [] : [mediaPrefix];
}

/**
 * Whether the source is also another asset's source or one of its published files: then it must not be deleted with
 * this asset.
 */
export const isSourceElsewhere = async (tx: Db, asset: AssetRow): Promise<boolean> =>
  !isUploadedSource(asset) || (await isSharedSource(tx, asset));

/** False for a source that belongs to other files: of an asset, a batch, or another server. */
export function isUploadedSource({ sourceKey, provider }: AssetRow): boolean {
  // The source_key of an external asset is an opaque reference, even where it looks like one of our keys.
  if (provider !== "managed" || sourceKey === "") return false;
  const area = ownerOf(sourceKey)?.area;
  return area !== "assets" && area !== "delivered" && area !== "ingest";
}

/** Whether another asset has the same source. */
export async function isSharedSource(tx: Db, { id, tenantId, sourceKey }: AssetRow): Promise<boolean> {
  const managed = and(eq(assets.tenantId, tenantId), eq(assets.provider, "managed"));
  const shared = and(managed, eq(assets.sourceKey, sourceKey), ne(assets.id, id));
  return (await tx.select({ id: assets.id }).from(assets).where(shared).limit(1).get()) !== undefined;
}
