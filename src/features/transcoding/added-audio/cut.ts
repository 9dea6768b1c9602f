import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { mapBounded } from "#lib/base";
import { impossible, type TimeRange } from "#lib/manifests";
import { cutRendition, type Rendition } from "#media/clip/cut-rendition.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { markReferenced, registerPending, scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AddedAudioMedia, type AssetRow, type AudioTrackRow, audioTracks } from "#storage/db/schema.ts";
import { readSmallObject, writeSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, StorageUnavailable } from "#storage/objects/store.ts";
import { replaceTrackMedia } from "./fit.ts";
import { addStoredTrack, isPlayed, rowsOf } from "./rows.ts";
import { MAX_SEGMENTS, playlistOf } from "./splice.ts";
import { FOLDER, PLAYLIST, segmentFile } from "./verify.ts";

const AT_ONCE = 16;
/** Players that have just read the old playlist may still request its segments from a bucket. */
const OLD_MEDIA_MS = 60_000;
const MAX_SEGMENT_BYTES = 16 * 2 ** 20;

/** An added track, cut: its media below `prefix`, which no row references yet. */
export type CutAudio = { row: AudioTrackRow; prefix: string; media: AddedAudioMedia; bytes: number };

/**
 * Cuts the added tracks of an asset to a range in seconds, at packets: nothing is encoded, segments within the range are
 * copied. Throws 422 `clip_not_possible`.
 */
export async function cutAddedTracks(
  app: App,
  objects: ObjectStore,
  { asset, range, signal }: { asset: AssetRow; range: TimeRange; signal: AbortSignal },
): Promise<CutAudio[]> {
  const chosen = await chooseSegments(app, asset, range);
  const cut: CutAudio[] = [];
  for (const { row, startSeconds, segments } of chosen)
    if (segments.length > 0) cut.push(await cutTrack(app, objects, { row, startSeconds, segments, range, signal }));
  return cut;
}

/** Times in units of the timescale, as the manifest of the track has them. */
type Segment = { file: string; start: number; duration: number };

/** What each added track has in a range of its asset, in seconds. Throws 422 `clip_not_possible` for too much. */
async function chooseSegments(app: App, { id }: AssetRow, range: TimeRange) {
  const rows = (await rowsOf(app.db, id)).filter(isPlayed);
  const chosen = rows.map((row) => {
    const startSeconds = row.media?.startSeconds ?? 0;
    return { row, startSeconds, segments: segmentsIn(row, range, startSeconds) };
  });
  if (chosen.reduce((sum, { segments }) => sum + segments.length, 0) > MAX_SEGMENTS)
    impossible("its added audio tracks have too many segments in this range");
  return chosen;
}

/** Throws 422 `clip_not_possible` where a trim to the range could not cut the added tracks, or would leave nothing of one. */
export async function requireAudioIn(app: App, asset: AssetRow, range: TimeRange): Promise<void> {
  const chosen = await chooseSegments(app, asset, range);
  if (chosen.some(({ segments }) => segments.length === 0))
    impossible("an added audio track has nothing in this range; delete the track first");
}

/** A packet before a segment may be heard in it. */
const NEIGHBOR_SECONDS = 0.1;

function segmentsIn({ media }: AudioTrackRow, range: TimeRange, startSeconds: number): Segment[] {
  if (!media) return [];
  const { timescale } = media;
  const from = (range.start + startSeconds - NEIGHBOR_SECONDS) * timescale;
  const to = (range.end + startSeconds + NEIGHBOR_SECONDS) * timescale;
  const found: Segment[] = [];
  let number = 0;
  for (const [first, duration, repeat] of media.segments)
    for (let count = 0; count <= repeat; count++) {
      const start = first + count * duration;
      number++;
      if (start < to && start + duration > from) found.push({ file: segmentFile(number), start, duration });
    }
  return found;
}

/** `startSeconds`: when the asset begins, on the clock of the track. */
type Cut = {
  row: AudioTrackRow;
  startSeconds: number;
  segments: readonly Segment[];
  range: TimeRange;
  signal: AbortSignal;
};

async function cutTrack(
  app: App,
  objects: ObjectStore,
  { row, startSeconds, segments, range, signal }: Cut,
): Promise<CutAudio> {
  const old = row.prefix as string;
  const media = row.media as AddedAudioMedia;
  const { timescale } = media;
  const read = async (file: string) =>
    (await readSmallObject(objects, old + file, { maxBytes: MAX_SEGMENT_BYTES })) ??
    impossible("a segment of an added audio track is missing from storage");
  const init = await read(`${FOLDER}/init.mp4`);
  const rendition: Rendition = {
    kind: "audio",
    init,
    count: segments.length,
    read: (index) => read((segments[index] as Segment).file),
    isShared: () => true,
  };
  const { first, end, own } = await cutOf(rendition, {
    start: range.start + startSeconds,
    end: range.end + startSeconds,
  });
  const prefix = newDeliveredPrefix(row.tenantId);
  await registerPending(app, [prefix]);
  const written: { segment: Segment; data: Buffer | null }[] = [];
  for (let index = first; index < end; ) {
    const segment = segments[index] as Segment;
    const part = own.find(({ from }) => from === index);
    if (part)
      written.push({
        segment: { ...segment, start: segment.start + part.skipped, duration: part.duration },
        data: part.data,
      });
    else written.push({ segment, data: null });
    index = part ? part.to : index + 1;
  }
  const write = (file: string, bytes: Buffer) =>
    writeSmallObject(objects, prefix + file, bytes, { contentType: contentTypeOf(file) });
  const sizes = await mapBounded(
    [...written.entries()],
    { atOnce: AT_ONCE, signal },
    async ([index, { segment, data }]) => {
      const file = segmentFile(index + 1);
      if (!data) return (await objects.copy(old + segment.file, prefix + file)).bytes;
      await write(file, data);
      return data.length;
    },
  );
  const playlist = Buffer.from(
    playlistOf(written.map(({ segment }) => ({ durationSeconds: segment.duration / timescale }))),
  );
  await write(`${FOLDER}/init.mp4`, init);
  await write(PLAYLIST, playlist);
  return {
    row,
    prefix,
    bytes: sizes.reduce((sum, one) => sum + one, init.length + playlist.length),
    media: {
      ...media,
      startSeconds: startSeconds + range.start,
      segments: written.map(({ segment: { start, duration } }) => [start, duration, 0]),
    },
  };
}

/** Throws 422 `clip_not_possible` for media of another form. */
async function cutOf(rendition: Rendition, range: TimeRange) {
  try {
    return await cutRendition(rendition, range, null);
  } catch (error) {
    if (error instanceof StorageUnavailable || (error instanceof Error && "status" in error)) throw error;
    return impossible("an added audio track cannot be cut in this range");
  }
}

/** Gives a clip the cut tracks of its parent, labeled as these are now; those removed meanwhile are left out. */
export async function addCutTracks(tx: Db, app: App, clip: AssetRow, cut: readonly CutAudio[]): Promise<void> {
  for (const { row: before, ...stored } of cut) {
    const row = await currentRow(tx, before);
    if (row) await addStoredTrack(tx, app, clip, { ...stored, label: row, isDefault: row.isDefault });
  }
}

/**
 * Replaces the media of an asset's added tracks by cut ones. False when there are other tracks than those that were cut: one
 * that is being encoded would have the length and the times of before.
 */
export async function trimAddedTracks(
  tx: Db,
  app: App,
  asset: AssetRow,
  { cut, isKept }: { cut: readonly CutAudio[]; isKept: boolean },
): Promise<boolean> {
  const all = await rowsOf(tx, asset.id);
  if (all.some(({ status }) => status === "processing")) return false;
  const rows = all.filter(isPlayed);
  if (rows.some((row) => !cut.some((one) => one.row.id === row.id && one.row.prefix === row.prefix))) return false;
  for (const { row: before, prefix, media, bytes } of cut) {
    const row = await currentRow(tx, before);
    if (!row) continue;
    await markReferenced(tx, prefix);
    if (isKept) await replaceTrackMedia(tx, app, row);
    else await scheduleDeletion(tx, app, [row.prefix as string], OLD_MEDIA_MS);
    await addStoredBytes(tx, app, asset, bytes - row.bytes);
    const columns = { prefix, media, bytes, lengthSeconds: asset.durationSeconds, updatedAt: app.clock.now() };
    await tx.update(audioTracks).set(columns).where(eq(audioTracks.id, row.id));
  }
  return true;
}

/** The tracks of an exact clip begin with its first frame, which its job has found. */
export async function startCutTracks(tx: Db, clip: AssetRow, startSeconds: number): Promise<void> {
  for (const { id, media, ...row } of (await rowsOf(tx, clip.id)).filter(isPlayed))
    if (media && row.prefix !== null)
      await tx
        .update(audioTracks)
        .set({ media: { ...media, startSeconds }, lengthSeconds: clip.durationSeconds })
        .where(eq(audioTracks.id, id));
}

/** The row as it is now; undefined when it was removed, or has other media. */
async function currentRow(tx: Db, { id, assetId, prefix }: AudioTrackRow): Promise<AudioTrackRow | undefined> {
  const isRow = and(eq(audioTracks.id, id), eq(audioTracks.assetId, assetId));
  const row = await tx.select().from(audioTracks).where(isRow).get();
  return row && isPlayed(row) && row.prefix === prefix ? row : undefined;
}
