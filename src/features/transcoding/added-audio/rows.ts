import { eq } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";
import { type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";

/** Rows of an asset, by id: added tracks, and those of its source that were listed or changed. */
export const rowsOf = (db: Db, assetId: number): Promise<AudioTrackRow[]> =>
  db.select().from(audioTracks).where(eq(audioTracks.assetId, assetId)).orderBy(audioTracks.id).all();

/** Added tracks that play, and would be missing from what is made of their asset. */
export const isPlayed = ({ rendition, status, isRemoved }: AudioTrackRow): boolean =>
  rendition === null && status === "ready" && !isRemoved;

/** Whether a worker encodes a track of the asset: it has the times of the media that the asset has now. */
export const isAdding = async (db: Db, assetId: number): Promise<boolean> =>
  (await rowsOf(db, assetId)).some(({ status }) => status === "processing");
