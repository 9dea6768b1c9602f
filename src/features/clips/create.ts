import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, invalid, mapBounded, newExternalId, notFound } from "#lib/base";
import { impossible, type TimeRange } from "#lib/manifests";
import { contentTypeOf } from "#model/media-types.ts";
import { assetPrefix, newDeliveredPrefix, ownPath, pathBelow } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { markReferenced, registerPending } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type ClipJob, tenants } from "#storage/db/schema.ts";
import { writeSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { getAsset } from "../assets/queries.ts";
import { insertAsset } from "../assets/stored-bytes.ts";
import { type CutSubtitle, type CutTrack, cutSubtitles, cutTracks, type RangeMs } from "../subtitles/cut-texts.ts";
import { addSubtitle, type StoredText, storeTextUnder } from "../subtitles/store.ts";
import { requireStored } from "../tenants/quota.ts";
import { copySourceTracks } from "../tracks/audio/source-tracks.ts";
import { upsertTrack } from "../tracks/timed/write.ts";
import { addCutTracks, type CutAudio, cutAddedTracks } from "../transcoding/added-audio/cut.ts";
import { emitAssetReady } from "../transcoding/lifecycle/events.ts";
import { profileOfMedia } from "../transcoding/lifecycle/media-profile.ts";
import { queueJob } from "../transcoding/lifecycle/queue.ts";
import { type ClipMedia, type ClipMode, cutMedia } from "./cut-media.ts";

const AT_ONCE = 8;
/** The duration of an asset is rounded. */
const ROUNDED_SECONDS = 0.001;

type Wanted = TimeRange & { title: string | undefined; mode: ClipMode };
/** A clip whose objects are in storage, and that no row references yet. */
export type PreparedClip = {
  parent: AssetRow;
  /** When the parent was read. */
  preparedAt: number;
  prefix: string;
  range: RangeMs;
  title: string;
  media: ClipMedia;
  /** The size of the manifests and copies. */
  bytes: number;
  subtitles: (CutSubtitle & { stored: StoredText })[];
  tracks: CutTrack[];
  audio: CutAudio[];
};

/**
 * Writes the manifests and subtitles of a clip of the caller's asset. Nothing is encoded, and no segment is read. With
 * `isTrim` they are to become those of the asset itself. Throws 404, 422 `asset_not_ready`, `clip_not_possible`,
 * `document_too_complex`, and for a range outside of the video.
 */
export async function prepareClip(
  app: App,
  caller: Caller,
  id: number,
  { title, mode, ...wanted }: Wanted,
  { signal, isTrim = false }: { signal: AbortSignal; isTrim?: boolean },
): Promise<PreparedClip> {
  const preparedAt = app.clock.now();
  const parent = (await getAsset(app.db, caller, id)) ?? notFound("asset");
  const objects = storageOf(app);
  if (parent.provider !== "managed") impossible("another server delivers it");
  requireReady(parent);
  if (wanted.end <= wanted.start) invalid("end_seconds", "must be after start_seconds");
  if (wanted.end > parent.durationSeconds + ROUNDED_SECONDS)
    invalid("end_seconds", `must be at most ${parent.durationSeconds}`);
  const media = await cutMedia(app, objects, { asset: parent, wanted, mode, signal });
  const { start, end } = media.exact ? wanted : media;
  const range = { startMs: Math.round(start * 1000), endMs: Math.round(end * 1000) };
  // Those of a trim by a job are cut when it is complete: they may change until then.
  const [texts, tracks] =
    isTrim && media.exact
      ? [[], []]
      : await Promise.all([
          cutSubtitles(app, objects, { asset: parent, range, signal }),
          cutTracks(app, parent.id, range),
        ]);
  const audioRange = { start: media.exact ? frameAt(parent, start) : start, end };
  const audio =
    isTrim && media.exact ? [] : await cutAddedTracks(app, objects, { asset: parent, range: audioRange, signal });
  const prefix = newDeliveredPrefix(parent.tenantId);
  await registerPending(app, [prefix]);
  const [subtitles, copied] = await Promise.all([
    mapBounded(texts, { atOnce: AT_ONCE }, async (one) => ({
      ...one,
      // The lines that they name are not those of a clip.
      stored: isTrim
        ? await storeTextUnder(app, assetPrefix(parent), { text: one.text, warnings: one.row.warnings })
        : await storeTextUnder(app, prefix, { text: one.text, warnings: [] }),
    })),
    mapBounded(media.copies, { atOnce: AT_ONCE }, (path) => copyOwn(objects, parent, { path, to: prefix + path })),
    mapBounded(media.files, { atOnce: AT_ONCE }, ({ path, bytes }) =>
      writeSmallObject(objects, prefix + path, bytes, { contentType: contentTypeOf(path) }),
    ),
  ]);
  const written = media.files.reduce((sum, file) => sum + file.bytes.length, 0);
  const bytes = copied.reduce((sum, size) => sum + size, written);
  return { parent, preparedAt, prefix, range, title: title ?? parent.title, media, bytes, subtitles, tracks, audio };
}

/** When the first frame at or after `seconds` is shown, with which an exact clip begins. */
const frameAt = ({ frameRate }: AssetRow, seconds: number) =>
  frameRate === null ? seconds : Math.ceil((seconds - ROUNDED_SECONDS) * frameRate) / frameRate;

/** Resolves with the size. */
async function copyOwn(objects: ObjectStore, { mediaPrefix }: AssetRow, { path, to }: { path: string; to: string }) {
  const from = `${mediaPrefix}${path}`;
  if (!(await objects.head(from))) return impossible("a segment is missing from storage");
  return (await objects.copy(from, to)).bytes;
}

export function requireReady({ playbackStatus, encoding }: AssetRow): void {
  if (playbackStatus !== "ready")
    throw new HttpError(422, "asset_not_ready", `The asset is ${playbackStatus}, not ready.`);
  // Its manifests are not final, and an encode in one run would replace all segments.
  if (encoding !== null) impossible("it is not encoded completely");
}

/**
 * Creates the asset of a prepared clip with its events: ready to play, or with the job that cuts an exact one. Throws 404 and 422 `asset_not_ready` as above,
 * 409 `asset_conflict` when the asset got other media meanwhile, 403 `quota_exceeded`.
 */
export async function insertClip(tx: Db, app: App, caller: Caller, clip: PreparedClip): Promise<AssetRow> {
  const { prefix, media, bytes, subtitles, tracks, audio } = clip;
  // While it exists, and has these media, they are not deleted.
  const parent = (await getAsset(tx, caller, clip.parent.id)) ?? notFound("asset");
  requireReady(parent);
  if (parent.mediaPrefix !== clip.parent.mediaPrefix)
    throw new HttpError(409, "asset_conflict", "The asset was encoded again meanwhile; try again.");
  const tenant = (await tx.select().from(tenants).where(eq(tenants.id, parent.tenantId)).get()) ?? notFound("asset");
  requireStored(
    app,
    tenant,
    [...audio, ...subtitles.map(({ stored }) => stored)].reduce((sum, one) => sum + one.bytes, bytes),
  );
  await markReferenced(tx, prefix);
  const asset = await insertAsset(tx, app, clipValues(app, parent, clip));
  if (media.exact) {
    const profile = await profileOfMedia(tx, app, parent);
    await queueJob(tx, app, asset, { clip: clipJob(asset, prefix, media.exact), profile });
  } else await emitAssetReady(tx, app, asset);
  await copySourceTracks(tx, app, parent, asset);
  await addCutTracks(tx, app, asset, audio);
  for (const { row, stored } of subtitles) await addSubtitle(tx, app, asset, row, { stored });
  const owner: Caller = { kind: "key", keyId: 0, tenantId: parent.tenantId, scopes: [] };
  for (const { id: _, updatedAt: __, ...track } of tracks) await upsertTrack(tx, app, owner, asset.id, track);
  return (await tx.select().from(assets).where(eq(assets.id, asset.id)).get()) as AssetRow;
}

type Manifests = Pick<AssetRow, "manifestPath" | "dashManifestPath" | "storyboardPath">;

/** The manifests are below the prefix, and their paths in the job relative to it. */
export function clipJob(asset: Manifests, prefix: string, exact: NonNullable<ClipMedia["exact"]>): ClipJob {
  const below = (key: string | null) => key && ownPath(prefix, key);
  return {
    prefix,
    ...exact,
    manifestPath: below(asset.manifestPath) as string,
    dashManifestPath: below(asset.dashManifestPath),
    storyboardPath: below(asset.storyboardPath),
  };
}

function clipValues(app: App, parent: AssetRow, clip: PreparedClip) {
  const { title, media, bytes } = clip;
  const now = app.clock.now();
  return {
    tenantId: parent.tenantId,
    externalId: newExternalId(),
    title,
    collectionId: parent.collectionId,
    tags: parent.tags,
    inputStatus: "uploaded" as const,
    playbackStatus: media.exact ? ("processing" as const) : ("ready" as const),
    playbackPolicy: parent.playbackPolicy,
    encodingProfile: parent.encodingProfile,
    storageBytes: bytes,
    // It has no source of its own.
    sourceKey: "",
    sourceDeletedAt: now,
    ...mediaColumns(parent, clip),
    width: parent.width,
    height: parent.height,
    frameRate: parent.frameRate,
    progress: media.exact ? 0 : 100,
    readyAt: media.exact ? null : now,
    parentAssetId: parent.id,
  };
}

/** The columns of an asset that plays a part of `parent`. */
export function mediaColumns(parent: AssetRow, { prefix, media }: Pick<PreparedClip, "prefix" | "media">) {
  const own = parent.mediaPrefix as string;
  const moved = (key: string | null) => {
    const path = pathBelow(own, key ?? "");
    return path === null ? null : prefix + path;
  };
  return {
    durationSeconds: media.exact?.durationSeconds ?? media.end - media.start,
    mediaPrefix: prefix,
    manifestPath: moved(parent.manifestPath),
    dashManifestPath: moved(parent.dashManifestPath),
    thumbnailPath: parent.width === null ? parent.thumbnailPath : null,
    storyboardPath: media.storyboard && prefix + media.storyboard,
    renditions: parent.renditions.map((one) => ({
      ...one,
      bytes: null,
      playlist_path: moved(one.playlist_path) ?? one.playlist_path,
    })),
    audioRenditions: parent.audioRenditions.map((one) => ({
      ...one,
      bytes: null,
      playlist_path: moved(one.playlist_path) ?? one.playlist_path,
    })),
    // A clip of a clip plays the same media as that one.
    sharedPrefix: parent.sharedPrefix ?? own,
    sharedMedia: media.shared,
  };
}
