import type { Readable } from "node:stream";
import type { App } from "#app.ts";
import { getAsset } from "#features/assets/queries.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { requireTenant } from "#features/tenants/queries.ts";
import { requireStored } from "#features/tenants/quota.ts";
import { startOfMedia } from "#features/transcoding/added-audio/clock.ts";
import { emitAudioTrack } from "#features/transcoding/added-audio/events.ts";
import { rowsOf } from "#features/transcoding/added-audio/rows.ts";
import { requireNotTrimming } from "#features/transcoding/trimming.ts";
import { workerWaker } from "#features/transcoding/wake.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { newSourceKey } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { markReferenced, registerPending } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";
import { listedTracks } from "./source-tracks.ts";

/** Twelve hours of uncompressed stereo. */
export const MAX_FILE_BYTES = 8 * 2 ** 30;
/** A player lists them, and each is in every manifest. */
export const MAX_TRACKS = 32;
/** A slow sender of the largest file. */
const UPLOAD_MS = 24 * 3_600_000;

function requirePlayable({ playbackStatus, provider, mediaPrefix }: AssetRow): void {
  if (playbackStatus !== "ready")
    throw new HttpError(422, "asset_not_ready", `The asset is ${playbackStatus}, not ready.`);
  if (provider !== "managed" || mediaPrefix === null)
    throw new HttpError(409, "asset_conflict", "The media of the asset are not managed here.");
}

const requireRoom = (rows: readonly AudioTrackRow[]) => {
  if (rows.length >= MAX_TRACKS) invalid("file", `the asset already has ${MAX_TRACKS} audio tracks; remove one first`);
};

/** Throws 409 and 422 for an asset that cannot have another track, 403 `quota_exceeded`, and 503 without storage. */
export async function requireAddable(app: App, asset: AssetRow, announcedBytes: number): Promise<void> {
  storageOf(app);
  requirePlayable(asset);
  await requireNotTrimming(app.db, asset.id);
  requireRoom(await listedTracks(app, asset));
  requireStored(app, await requireTenant(app.db, { kind: "admin" }, asset.tenantId), announcedBytes || 0);
}

/** A stored file, and the media that it is to be heard with: where they are, and when they begin. */
type StoredAudio = { key: string; bytes: number; media: Pick<AssetRow, "mediaPrefix"> & { startSeconds: number } };

/**
 * Stores the file of a track that is about to be added; it is deleted if that does not happen. Throws ObjectTooLarge, and 404 for
 * an asset that was deleted meanwhile.
 */
export async function storeAudio(
  app: App,
  { id, tenantId }: AssetRow,
  file: { filename: string; body: Readable; signal: AbortSignal; maxBytes?: number },
): Promise<StoredAudio> {
  const { filename, body, signal, maxBytes = MAX_FILE_BYTES } = file;
  const key = newSourceKey(tenantId, filename);
  await registerPending(app, [key], UPLOAD_MS);
  const { bytes } = await storageOf(app).put(key, body, { maxBytes, signal });
  // An upload may take hours.
  const asset = (await getAsset(app.db, { kind: "admin" }, id)) ?? notFound("asset");
  return { key, bytes, media: { mediaPrefix: asset.mediaPrefix, startSeconds: await startOfMedia(app, asset) } };
}

type Label = Pick<AudioTrackRow, "name" | "role"> & { language: string; is_default: boolean };

/** Adds a track to an asset of the caller: workers encode it. `file`: of `storeAudio`. Throws as `requireAddable`, and 404. */
export async function insertAddedTrack(
  tx: Db,
  app: App,
  caller: Caller,
  id: number,
  file: StoredAudio,
  { language, name, role, is_default: isDefault }: Label,
): Promise<AudioTrackRow> {
  const current = (await getAsset(tx, caller, id)) ?? notFound("asset");
  requirePlayable(current);
  await requireNotTrimming(tx, id);
  if (current.mediaPrefix !== file.media.mediaPrefix)
    throw new HttpError(409, "asset_conflict", "The asset got other media meanwhile; send the audio track again.");
  requireRoom((await rowsOf(tx, current.id)).filter(({ isRemoved }) => !isRemoved));
  requireStored(app, await requireTenant(tx, { kind: "admin" }, current.tenantId), file.bytes);
  await markReferenced(tx, file.key);
  await addStoredBytes(tx, app, current, file.bytes);
  afterCommit(tx, workerWaker(app));
  const now = app.clock.now();
  const added = await tx
    .insert(audioTracks)
    .values({
      tenantId: current.tenantId,
      assetId: current.id,
      language,
      name,
      role,
      isDefault,
      status: "processing",
      sourceKey: file.key,
      bytes: file.bytes,
      lengthSeconds: current.durationSeconds,
      startSeconds: file.media.startSeconds,
      availableAt: now,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  await emitAudioTrack(tx, app, "video.audio_track.created", added);
  return added;
}
