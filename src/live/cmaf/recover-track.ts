import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type InitSegment, readInit, SEGMENT_HEAD, type TimedSample, writeFragment } from "#lib/isobmff";
import { INIT_NAME, SEGMENT_PATTERN, segmentFileName } from "#media/arguments.ts";
import { readSegment, type Segment } from "#media/package.ts";
import { type Fragment, scanSegment } from "./scan-segment.ts";
import { OPEN_SUFFIX, SegmentFile } from "./segment-file.ts";
import type { RecordedTrack, TrackKind } from "./types.ts";

/** A track whose process was killed. */
export type InterruptedTrack = {
  kind: TrackKind;
  name: string;
  folder: string;
  init: InitSegment;
  initData: Buffer;
  /** Complete ones, in order. */
  segments: Segment[];
  /** What is whole of the segment that follows. */
  open: Fragment[];
};

/** The tracks in the folder of a recording. Deletes open segments that have no whole fragment. */
export async function readTracks(recording: string): Promise<InterruptedTrack[]> {
  const entries = await readdir(recording, { withFileTypes: true });
  const tracks: InterruptedTrack[] = [];
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    const folder = join(recording, name);
    // Without it there is no segment either.
    const initData = await readFile(join(folder, INIT_NAME)).catch(() => null);
    const init = initData && readInitOrNull(initData);
    if (!init || !initData) continue;
    const files = await readdir(folder);
    const names = files.filter((file) => SEGMENT_PATTERN.test(file));
    names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
    const segments: Segment[] = [];
    for (const file of names) segments.push(await readSegment(folder, file, { areOurs: true }));
    const open = await readOpen(folder, { files, number: segments.length + 1 });
    tracks.push({ kind: init.width > 0 ? "video" : "audio", name, folder, init, initData, segments, open });
  }
  return tracks;
}

function readInitOrNull(data: Buffer): InitSegment | null {
  try {
    return readInit(data);
  } catch {
    // It was being written.
    return null;
  }
}

async function readOpen(folder: string, { files, number }: { files: string[]; number: number }): Promise<Fragment[]> {
  let found: Fragment[] = [];
  for (const file of files.filter((one) => one.endsWith(OPEN_SUFFIX))) {
    const path = join(folder, file);
    const fragments = file === `${segmentFileName(number)}${OPEN_SUFFIX}` ? await scanSegment(path) : [];
    if (fragments.length > 0) found = fragments;
    else await rm(path);
  }
  return found;
}

/** Seconds from the start of the recording to the end of a segment. */
export const endOf = ({ init }: InterruptedTrack, { start, duration }: Pick<Segment, "start" | "duration">): number =>
  (start + duration - init.delay) / init.timescale;

/** Deletes the segment that follows the complete ones. */
export async function discardOpen(track: InterruptedTrack): Promise<void> {
  if (track.open.length > 0)
    await rm(join(track.folder, `${segmentFileName(track.segments.length + 1)}${OPEN_SUFFIX}`));
  track.open = [];
}

/** Completes the segment that follows the complete ones with whole fragments, and then samples; with neither, deletes it. */
export async function completeOpen(
  track: InterruptedTrack,
  { fragments, samples, time }: { fragments: Fragment[]; samples: TimedSample[]; time: number },
): Promise<void> {
  const { folder, init, segments } = track;
  const number = segments.length + 1;
  const [first] = fragments;
  const last = fragments.at(-1);
  if (!last) await discardOpen(track);
  track.open = [];
  if (!last && samples.length === 0) return;
  const written = last?.end ?? SEGMENT_HEAD.length;
  const file = last ? await SegmentFile.reopen(folder, number, written) : await SegmentFile.create(folder, number);
  // Sequence numbers only have to ascend (8.8.5).
  const data = samples.length > 0 ? writeFragment(samples, { sequence: 2 ** 31 + number, time }) : [];
  await file.append(written, data);
  const bytes = data.reduce((sum, { length }) => sum + length, written) - SEGMENT_HEAD.length;
  const end = samples.reduce((sum, { duration }) => sum + duration, last ? last.time + last.duration : time);
  const start = first ?? { time, presentation: time };
  await file.complete({
    timescale: init.timescale,
    start: start.presentation,
    bytes,
    duration: end - start.time,
  });
  segments.push(await readSegment(folder, segmentFileName(number), { areOurs: true }));
}

/** Null without a segment. */
export function recordedTrack(track: InterruptedTrack, channels: number | null): RecordedTrack | null {
  const { kind, name, segments, init, initData } = track;
  if (segments.length === 0) return null;
  return {
    kind,
    name,
    channels,
    segments: segments.length,
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, initData.length),
    durationSeconds: segments.reduce((sum, { duration }) => sum + duration, 0) / init.timescale,
  };
}
