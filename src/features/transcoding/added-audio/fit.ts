import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { replaceMedia } from "#features/assets/replaced-media.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { JoinImpossible } from "#media/join/faults.ts";
import { markReferenced } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";
import { isPlayed, rowsOf } from "./rows.ts";
import {
  endOf,
  MAX_SEGMENTS,
  type Stretch,
  segmentsOf,
  segmentsOfStretches,
  spliceTrack,
  type TrackMedia,
} from "./splice.ts";

/** What is less is the rounding of packets and frames. */
const TOLERATED_SECONDS = 0.25;

/** Segments that are written when an asset gets media, of all its tracks: a film of four hours may have 25. */
const MAX_FITTED_SEGMENTS = 4 * MAX_SEGMENTS;

type Fitted = TrackMedia & { bytes: number };

/**
 * The media of a track that is to be heard with media of another length, which begin at 0: an asset that was trimmed has its full
 * length when it is encoded again. Silence is before and after what there is. Null when it fits already, or when it cannot be
 * changed: the asset is to play its media all the same.
 */
export async function fitted(
  app: App,
  { tenantId, prefix, media }: { tenantId: number } & TrackMedia,
  { durationSeconds, signal, room = MAX_SEGMENTS }: { durationSeconds: number; signal: AbortSignal; room?: number },
): Promise<Fitted | null> {
  const start = media.startSeconds ?? 0;
  const length = Math.max(0, endOf(media) - start);
  // What was cut from the media that play now is heard where it was.
  const tolerated = Math.min(TOLERATED_SECONDS, start / 2);
  const from = start + length <= durationSeconds + tolerated ? start : 0;
  const to = Math.min(from + length, durationSeconds);
  if (start === 0 && Math.abs(length - durationSeconds) <= TOLERATED_SECONDS) return null;
  const stretches: Stretch[] = [
    { from: 0, to: from, audio: null },
    { from, to, audio: { prefix, media, start } },
    { from: to, to: durationSeconds, audio: null },
  ];
  const some = stretches.filter((one) => one.to - one.from > TOLERATED_SECONDS / 10);
  try {
    if (segmentsOfStretches(some) > room) throw new JoinImpossible("an audio track would have too many segments");
    return await spliceTrack(app, storageOf(app), { tenantId, stretches: some, signal });
  } catch (error) {
    if (!(error instanceof JoinImpossible)) throw error;
    app.log.warn({ prefix, reason: error.message }, "an audio track could not be fitted to its asset");
    return null;
  }
}

/** The added tracks of an asset, with the media that those get that do not fit. */
export type FittedTracks = { row: AudioTrackRow; to: Fitted | null }[];

/** Fits the added tracks of an asset to the media that it is about to get from a job. */
export async function fitTracks(
  app: App,
  { id }: AssetRow,
  options: { durationSeconds: number; signal: AbortSignal },
): Promise<FittedTracks> {
  const tracks: FittedTracks = [];
  let room = MAX_FITTED_SEGMENTS;
  for (const row of (await rowsOf(app.db, id)).filter(isPlayed)) {
    const { tenantId, prefix, media } = row;
    if (prefix === null || !media) continue;
    const to = await fitted(app, { tenantId, prefix, media }, { ...options, room: Math.min(room, MAX_SEGMENTS) });
    if (to) room -= segmentsOf(to.media);
    tracks.push({ row, to });
  }
  return tracks;
}

/** In the transaction in which the asset gets its media. False when it has other tracks by now than those that were fitted. */
export async function applyFitted(tx: Db, app: App, asset: AssetRow, tracks: FittedTracks): Promise<boolean> {
  const rows = (await rowsOf(tx, asset.id)).filter(isPlayed);
  if (rows.some(({ id, prefix }) => !tracks.some(({ row }) => row.id === id && row.prefix === prefix))) return false;
  for (const { row, to } of tracks) {
    if (!to || !rows.some(({ id }) => id === row.id)) continue;
    await markReferenced(tx, to.prefix);
    await replaceTrackMedia(tx, app, row);
    await addStoredBytes(tx, app, asset, to.bytes - row.bytes);
    const columns = { prefix: to.prefix, media: to.media, bytes: to.bytes };
    await tx
      .update(audioTracks)
      .set({ ...columns, startSeconds: 0, lengthSeconds: asset.durationSeconds, updatedAt: app.clock.now() })
      .where(eq(audioTracks.id, row.id));
  }
  return true;
}

/** A track gets other media: players that have read its old playlist request the segments for some time. */
export const replaceTrackMedia = (tx: Db, app: App, { assetId, prefix }: AudioTrackRow): Promise<void> =>
  replaceMedia(tx, app, { id: assetId, mediaPrefix: prefix, sharedPrefix: null, sharedMedia: null });
