import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { markReferenced } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AddedAudioMedia, type AssetRow, type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";

/** Rows of an asset, by id: added tracks, and those of its source that were listed or changed. */
export const rowsOf = (db: Db, assetId: number): Promise<AudioTrackRow[]> =>
  db.select().from(audioTracks).where(eq(audioTracks.assetId, assetId)).orderBy(audioTracks.id).all();

/** Added tracks that play, and would be missing from what is made of their asset. */
export const isPlayed = ({ rendition, status, isRemoved }: AudioTrackRow): boolean =>
  rendition === null && status === "ready" && !isRemoved;

/** Whether a worker encodes a track of the asset: it has the times of the media that the asset has now. */
export const isAdding = async (db: Db, assetId: number): Promise<boolean> =>
  (await rowsOf(db, assetId)).some(({ status }) => status === "processing");

type StoredTrack = { prefix: string; media: AddedAudioMedia; bytes: number };

/** Gives an asset a track whose media are in storage, labeled as another one. */
export async function addStoredTrack(
  tx: Db,
  app: App,
  asset: AssetRow,
  { label, isDefault, prefix, media, bytes }: StoredTrack & { label: AudioTrackRow; isDefault: boolean },
): Promise<void> {
  await markReferenced(tx, prefix);
  await addStoredBytes(tx, app, asset, bytes);
  const { tenantId, language, name, role } = label;
  const now = app.clock.now();
  await tx.insert(audioTracks).values({
    tenantId,
    language,
    name,
    role,
    isDefault,
    prefix,
    media,
    bytes,
    assetId: asset.id,
    status: "ready",
    lengthSeconds: asset.durationSeconds,
    createdAt: now,
    updatedAt: now,
  });
}
