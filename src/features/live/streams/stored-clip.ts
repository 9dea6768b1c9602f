import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { App } from "#app.ts";
import { mapBounded, notFound } from "#lib/base";
import { rateOfSegment } from "#live/cmaf/recover.ts";
import { finishRecording, type RecordedTracks } from "#live/ingest/finish-recording.ts";
import type { FinishedRecording, WantedClip } from "#live/ingest/messages.ts";
import { SegmentList } from "#live/ingest/segment-list.ts";
import type { ListedTrack } from "#live/playlists/timeline-types.ts";
import { INIT_NAME, segmentFileName } from "#media/arguments.ts";
import { storageOf } from "#platform/http/storage.ts";
import { diskOf } from "#platform/limits/disk-reserve.ts";
import type { StoredStream } from "../shared/stored-streams.ts";
import { copyObject } from "./stored-media.ts";

const AT_ONCE = 16;

/**
 * `folder` has its files. `stored`: paths of those that are objects of the stream already; their copies are not complete.
 */
export type StoredClip = { folder: string; made: FinishedRecording; stored: ReadonlySet<string> };

/**
 * Makes video on demand of a part of a stream that another server receives, below the directory `folder`: its manifests, and
 * the segments that differ from the stored ones. Null when no playlist of this server lists a segment of that time. Throws
 * StorageFull, and the errors of storage.
 */
export async function clipStored(
  app: App,
  { prefix, timeline }: StoredStream,
  wanted: WantedClip,
  folder: string,
): Promise<StoredClip | null> {
  const tracks = [...timeline.listed()];
  const names = tracks.map(({ init }) => init.track);
  const list = new SegmentList(folder, null);
  for (const segment of tracks.flatMap(({ segments }) => segments)) list.add(segment, names);
  const range = list.rangeOf(wanted);
  if (!range) return null;
  const stored = new Set<string>();
  const copy = async (path: string, bytes: number, isWhole: boolean) => {
    await copyObject(app, { key: prefix + path, bytes }, { path: join(folder, path), isWhole });
    stored.add(path);
  };
  for (const { init, segments } of tracks) {
    const { track } = init;
    await mkdir(join(folder, track), { recursive: true, mode: 0o700 });
    const path = `${track}/${INIT_NAME}`;
    const { bytes } = (await storageOf(app).head(prefix + path)) ?? notFound("file");
    await copy(path, bytes, true);
    const inRange = segments.filter(({ segment }) => segment >= range.first && segment <= range.last);
    await mapBounded(inRange, { atOnce: AT_ONCE }, ({ segment, bytes: size, name }) =>
      // The frame rate is that of the first one; the last ones may be joined.
      copy(`${track}/${name}`, size, segment === range.first || segment >= range.last - 1),
    );
  }
  const target = join(folder, "clip");
  const recorded = await recordedTracks(folder, tracks, range.first);
  const made = await finishRecording(folder, target, recorded, { range, admit: () => diskOf(app).ensure() });
  if (!made) return null;
  for (const { name } of [...made.renditions, ...made.audioRenditions]) {
    const last = made.files.findLast((path) => path.startsWith(`${name}/`) && path.endsWith(".m4s"));
    if (last) stored.delete(last);
  }
  return { folder: target, made, stored };
}

async function recordedTracks(folder: string, tracks: readonly ListedTrack[], first: number): Promise<RecordedTracks> {
  const [video, audio] = (["video", "audio"] as const).map(
    (kind) => tracks.find(({ init }) => init.kind === kind)?.init,
  );
  return {
    video: video
      ? { name: video.track, rate: await rateOfSegment(join(folder, video.track, segmentFileName(first))) }
      : null,
    audio: audio ? { name: audio.track, channels: audio.channels ?? null } : null,
  };
}
