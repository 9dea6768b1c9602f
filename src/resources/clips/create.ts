import { eq } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type AssetRow, assets, tenants } from "../../../storage/db/schema.ts";
import { writeSmallObject } from "../../../storage/objects/small-objects.ts";
import type { App } from "../../app.ts";
import type { Caller } from "../../http/caller.ts";
import { markReferenced, registerPending } from "../../http/object-gc.ts";
import { storageOf } from "../../http/storage.ts";
import { mapBounded } from "../../lib/bounded.ts";
import type { TimeRange } from "../../lib/clip/range.ts";
import { HttpError, invalid, notFound } from "../../lib/errors.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { newDeliveredPrefix } from "../../lib/object-keys.ts";
import { newExternalId } from "../../lib/tokens.ts";
import { getAsset } from "../assets/queries.ts";
import { insertAsset } from "../assets/stored-bytes.ts";
import { emitAssetReady } from "../jobs/lifecycle/events.ts";
import { addSubtitle, type StoredText, storeTextUnder } from "../subtitles/store.ts";
import { requireStored } from "../tenants/quota.ts";
import { upsertTrack } from "../tracks/write.ts";
import { type ClipMedia, cutMedia, impossible } from "./cut-media.ts";
import { type CutSubtitle, type CutTrack, cutSubtitles, cutTracks } from "./cut-texts.ts";

const AT_ONCE = 8;
/** The duration of an asset is rounded. */
const ROUNDED_SECONDS = 0.001;

type Wanted = TimeRange & { title: string | undefined };
/** A clip whose objects are in storage, and that no row references yet. */
export type PreparedClip = {
  parent: AssetRow;
  prefix: string;
  title: string;
  media: ClipMedia;
  subtitles: (CutSubtitle & { stored: StoredText })[];
  tracks: CutTrack[];
};

/**
 * Writes the manifests and subtitles of a clip of the caller's asset. Nothing is encoded, and no segment is read. Throws
 * 404, 422 `asset_not_ready`, `clip_not_possible`, `document_too_complex`, and for a range outside of the video.
 */
export async function prepareClip(
  app: App,
  caller: Caller,
  id: number,
  { title, ...wanted }: Wanted,
  signal: AbortSignal,
): Promise<PreparedClip> {
  const parent = (await getAsset(app.db, caller, id)) ?? notFound("asset");
  const objects = storageOf(app);
  if (parent.provider !== "managed") impossible("another server delivers it");
  requireReady(parent);
  if (wanted.end <= wanted.start) invalid("end_seconds", "must be after start_seconds");
  if (wanted.end > parent.durationSeconds + ROUNDED_SECONDS)
    invalid("end_seconds", `must be at most ${parent.durationSeconds}`);
  const media = await cutMedia(app, objects, { asset: parent, wanted, signal });
  const range = { startMs: Math.round(media.start * 1000), endMs: Math.round(media.end * 1000) };
  const [texts, tracks] = await Promise.all([
    cutSubtitles(app, objects, { asset: parent, range, signal }),
    cutTracks(app, parent.id, range),
  ]);
  const prefix = newDeliveredPrefix(parent.tenantId);
  await registerPending(app, [prefix]);
  const [subtitles] = await Promise.all([
    mapBounded(texts, { atOnce: AT_ONCE }, async (one) => ({
      ...one,
      stored: await storeTextUnder(app, prefix, one.text),
    })),
    mapBounded(media.files, { atOnce: AT_ONCE }, ({ path, bytes }) =>
      writeSmallObject(objects, prefix + path, bytes, { contentType: contentTypeOf(path) }),
    ),
  ]);
  return { parent, prefix, title: title ?? parent.title, media, subtitles, tracks };
}

function requireReady({ playbackStatus, encoding }: AssetRow): void {
  if (playbackStatus !== "ready")
    throw new HttpError(422, "asset_not_ready", `The asset is ${playbackStatus}, not ready.`);
  // Its manifests are not final, and an encode in one run would replace all segments.
  if (encoding !== null) impossible("it is not encoded completely");
}

/**
 * Creates the asset of a prepared clip, ready to play, with its events. Throws 404 and 422 `asset_not_ready` as above,
 * 409 `asset_conflict` when the asset got other media meanwhile, 403 `quota_exceeded`.
 */
export async function insertClip(tx: Db, app: App, caller: Caller, clip: PreparedClip): Promise<AssetRow> {
  const { prefix, media, subtitles, tracks } = clip;
  // While it exists, and has these media, they are not deleted.
  const parent = (await getAsset(tx, caller, clip.parent.id)) ?? notFound("asset");
  requireReady(parent);
  if (parent.mediaPrefix !== clip.parent.mediaPrefix)
    throw new HttpError(409, "asset_conflict", "The asset was encoded again meanwhile; try again.");
  const tenant = (await tx.select().from(tenants).where(eq(tenants.id, parent.tenantId)).get()) ?? notFound("asset");
  const bytes = media.files.reduce((sum, file) => sum + file.bytes.length, 0);
  requireStored(
    app,
    tenant,
    subtitles.reduce((sum, { stored }) => sum + stored.bytes, bytes),
  );
  await markReferenced(tx, prefix);
  const asset = await insertAsset(tx, app, clipValues(app, parent, clip, bytes));
  await emitAssetReady(tx, app, asset);
  for (const { row, stored } of subtitles) await addSubtitle(tx, app, asset, row, { stored });
  const owner: Caller = { kind: "key", keyId: 0, tenantId: parent.tenantId, scopes: [] };
  for (const { status, cues, ...track } of tracks)
    await upsertTrack(tx, app, owner, asset.id, { ...track, status, cues });
  return (await tx.select().from(assets).where(eq(assets.id, asset.id)).get()) as AssetRow;
}

function clipValues(app: App, parent: AssetRow, { prefix, title, media }: PreparedClip, bytes: number) {
  const own = parent.mediaPrefix as string;
  const moved = (key: string | null) => (key?.startsWith(own) ? prefix + key.slice(own.length) : null);
  const now = app.clock.now();
  return {
    tenantId: parent.tenantId,
    externalId: newExternalId(),
    title,
    collectionId: parent.collectionId,
    tags: parent.tags,
    inputStatus: "uploaded" as const,
    playbackStatus: "ready" as const,
    playbackPolicy: parent.playbackPolicy,
    storageBytes: bytes,
    durationSeconds: media.end - media.start,
    // It has no source of its own.
    sourceKey: "",
    sourceDeletedAt: now,
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
    width: parent.width,
    height: parent.height,
    frameRate: parent.frameRate,
    progress: 100,
    readyAt: now,
    parentAssetId: parent.id,
    // A clip of a clip plays the same media as that one.
    sharedPrefix: parent.sharedPrefix ?? own,
    sharedMedia: media.shared,
  };
}
