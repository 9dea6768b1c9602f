import { open } from "node:fs/promises";
import {
  type ByteRange,
  bytesOf,
  joinRanges,
  type Mp4Layout,
  type ReadBytes,
  rangesOf,
  readIndex,
  readLayout,
  type TrackIndex,
  withinFile,
} from "#lib/isobmff";
import type { Probe } from "../probe.ts";
import type { StoredPlan } from "./stored-plan.ts";

/** Where the samples of an MP4 or QuickTime file are. `isCut`: it has more samples than the file, which are left out. */
export type SourceIndex = { layout: Mp4Layout; tracks: TrackIndex[]; isCut: boolean };

/** What ffmpeg reads to determine the streams: at most 5 MB of each. */
const HEAD_SECONDS = 2;
const HEAD_BYTES = 5_000_000;
/** Ranges closer to each other than this are one request. */
const GAP_BYTES = 64 * 1024;
/** One request each: ten minutes of a file that stores packets of audio and video alternately. */
const MAX_AUDIO_RANGES = 20_000;
/** The share of the source that is read for its audio to save requests, if the audio is no more by itself. */
const AUDIO_SHARE = 0.07;
/** A share of the source: with more audio than that, the whole source is as good. */
const MOST = 0.5;
/** Reorder buffer of a decoder (16), and the frames that its filters look ahead. */
const DECODER_FRAMES = 20;
/** A seek by time must not miss its keyframe by rounding. */
const SEEK_ROUNDING_SECONDS = 0.0005;
/** Deinterlacing needs frames before the first one. */
const INTERLACED_LEAD_SECONDS = 0.1;

/**
 * The index of a source of `size` bytes; null when it has none that can be read in parts. `isCut`: also of a source whose end
 * is missing.
 */
export async function readSourceIndex(
  size: number,
  read: ReadBytes,
  options?: { isCut: boolean },
): Promise<SourceIndex | null> {
  const layout = await readLayout(size, read, options);
  const all = layout && readIndex(await read(...layout.moov));
  const tracks = all?.map((track) => withinFile(track, size));
  const isCut = tracks?.some((track, at) => track !== all?.[at] && track.kind !== "other") ?? false;
  return layout && tracks ? { layout, tracks, isCut } : null;
}

/** The index of a file that is there as a whole, as above. */
export async function indexOfFile(path: string, options?: { isCut: boolean }): Promise<SourceIndex | null> {
  await using file = await open(path);
  const { size } = await file.stat();
  const read: ReadBytes = async (offset, length) => {
    const data = Buffer.alloc(Math.min(length, Math.max(0, size - offset)));
    const { bytesRead } = await file.read(data, 0, data.length, offset);
    return data.subarray(0, bytesRead);
  };
  return await readSourceIndex(size, read, options);
}

/** What every run over the source reads: its index, and the beginning of each track. */
export function headRanges({ layout, tracks }: SourceIndex): ByteRange[] {
  const first = tracks.flatMap((track) => {
    const until = (track.dts[0] ?? 0) + HEAD_SECONDS;
    let count = 0;
    for (let bytes = 0; count < track.sizes.length && bytes < HEAD_BYTES; count++) {
      if ((track.dts[count] as number) > until) break;
      bytes += track.sizes[count] as number;
    }
    return rangesOf(track, 0, count);
  });
  return joinRanges([layout.moov, ...layout.others, ...first], GAP_BYTES);
}

/**
 * The track of the planned video, if its times are those that ffmpeg reads: both must agree on when it begins. Null
 * otherwise.
 */
export function videoTrackOf(index: SourceIndex, video: Probe["video"]): TrackIndex | null {
  const track = video && index.tracks[video.index];
  if (!video || track?.kind !== "video" || track.pts.length === 0) return null;
  const first = track.pts.reduce((least, seconds) => Math.min(least, seconds), Number.POSITIVE_INFINITY);
  return Math.abs(first - video.startSeconds) < 2 * SEEK_ROUNDING_SECONDS ? track : null;
}

/** The part of a video track that a range of frames is decoded from. */
export type Window = {
  /** Where ffmpeg seeks to, in seconds from the start of the file; null: it reads from the start. */
  seekSeconds: number | null;
  /** Samples in the order of decoding; `end` is exclusive. */
  from: number;
  end: number;
  /** Frames that are decoded before the first one of the range. */
  leadFrames: number;
};

type WindowOptions = {
  plan: Pick<StoredPlan, "startSeconds"> & { video: NonNullable<StoredPlan["video"]> };
  firstFrame: number;
  endFrame: number | null;
  /** Threads of the decoder: each holds a frame. */
  threads: number;
};

/** Null when a seek could not be predicted with certainty. */
export function windowOf(track: TrackIndex, { plan, firstFrame, endFrame, threads }: WindowOptions): Window | null {
  const { rate, track: media } = plan.video;
  const start = plan.startSeconds;
  if (start === undefined) return null;
  const frameSeconds = rate.den / rate.num;
  const { pts, dts } = track;
  const end = endFrame === null ? pts.length : endOf(track, start + (endFrame + 2.5) * frameSeconds, threads);
  if (firstFrame === 0) return { seekSeconds: null, from: 0, end, leadFrames: 0 };
  // The frame of the grid shows the last frame whose time rounds to its own, or to an earlier one.
  const latest =
    start +
    (media.isInterlaced ? firstFrame * frameSeconds - INTERLACED_LEAD_SECONDS : (firstFrame + 0.49) * frameSeconds);
  const keys = keysOf(track);
  if (!keys) return null;
  const delay = Math.max(0, (pts[0] as number) - (dts[0] as number));
  for (let at = lastIndex(keys, (key) => (pts[key] as number) <= latest); at > 0; at--) {
    const seek = (pts[keys[at] as number] as number) + SEEK_ROUNDING_SECONDS;
    // ffmpeg searches the decoding times, with or without the delay of the first frame.
    const found = lastIndex(keys, (key) => (dts[key] as number) <= seek);
    const earliest = lastIndex(keys, (key) => (dts[key] as number) <= seek - delay);
    if (earliest < 0) break;
    if ((pts[keys[found] as number] as number) > latest) continue;
    const from = keys[Math.min(at, earliest)] as number;
    const lead = (firstFrame * frameSeconds + start - (pts[from] as number)) / frameSeconds;
    return { seekSeconds: seek - start, from, end, leadFrames: Math.max(0, Math.round(lead)) };
  }
  return { seekSeconds: null, from: 0, end, leadFrames: firstFrame };
}

/** The samples that a decoder reads before it has returned all frames up to a time. */
function endOf({ pts }: TrackIndex, seconds: number, threads: number): number {
  let last = pts.length - 1;
  while (last > 0 && (pts[last] as number) > seconds) last--;
  return Math.min(pts.length, last + 1 + DECODER_FRAMES + threads);
}

const keysOfTrack = new WeakMap<TrackIndex, number[] | null>();

/** The sync samples; null when their times do not ascend. */
function keysOf(track: TrackIndex): number[] | null {
  const known = keysOfTrack.get(track);
  if (known !== undefined) return known;
  const keys: number[] = [];
  for (const [sample, isKey] of track.isKey.entries()) if (isKey) keys.push(sample);
  const ascends = keys.every(
    (key, at) => at === 0 || (track.pts[keys[at - 1] as number] as number) < (track.pts[key] as number),
  );
  const result = ascends && keys[0] === 0 ? keys : null;
  keysOfTrack.set(track, result);
  return result;
}

/** Seconds between two sync samples, or from the last one to the end, at most; infinite when they are out of order. */
export function longestKeyDistance(track: TrackIndex): number {
  const keys = keysOf(track);
  if (!keys) return Number.POSITIVE_INFINITY;
  const times = [...keys, track.pts.length - 1].map((sample) => track.pts[sample] as number);
  return times.reduce((most, time, at) => Math.max(most, time - (times[at - 1] ?? time)), 0);
}

/** The last position at which a condition holds that holds up to some position; -1 without one. */
function lastIndex(keys: readonly number[], holds: (key: number) => boolean): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(keys[middle] as number)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** What a chunk reads of the file; null when it needs all of it. */
export const windowRanges = (track: TrackIndex, { from, end }: Window): ByteRange[] =>
  joinRanges(rangesOf(track, from, end), GAP_BYTES);

/** More than what ffmpeg reads ahead of the time at which it ends. */
const READ_AHEAD_SECONDS = 1;
/** A seek ends at a keyframe of the video, and a decoder's first packets have faults. */
const READ_BEHIND_SECONDS = 25;

/** The audio of the first `seconds` of the file; null when it is not in the index. */
export function firstAudioRanges(
  { tracks }: SourceIndex,
  { audio, startSeconds = 0 }: Pick<StoredPlan, "audio" | "startSeconds">,
  seconds: number,
): ByteRange[] | null {
  const until = startSeconds + seconds + READ_AHEAD_SECONDS;
  const samples: ByteRange[] = [];
  for (const { track } of audio) {
    const indexed = tracks[track.index];
    if (indexed?.kind !== "audio") return null;
    const after = indexed.dts.findIndex((time) => time > until);
    samples.push(...rangesOf(indexed, 0, after < 0 ? indexed.sizes.length : after));
  }
  return joinRanges(samples, GAP_BYTES);
}

/**
 * What a part of the audio reads, between two times in seconds; null when it is not in the index. With `isUrgent` in few
 * requests, which read the video between the packets too.
 */
export function audioPartRanges(
  { tracks }: SourceIndex,
  { audio, startSeconds = 0 }: Pick<StoredPlan, "audio" | "startSeconds">,
  { from, to, isUrgent }: { from: number; to: number; isUrgent: boolean },
): ByteRange[] | null {
  const begin = startSeconds + from - READ_BEHIND_SECONDS;
  const end = startSeconds + to + READ_AHEAD_SECONDS;
  const samples: ByteRange[] = [];
  for (const { track } of audio) {
    const indexed = tracks[track.index];
    if (indexed?.kind !== "audio") return null;
    const first = indexed.dts.findIndex((time) => time >= begin);
    const after = indexed.dts.findIndex((time) => time > end);
    if (first < 0) continue;
    for (const range of joinRanges(rangesOf(indexed, first, after < 0 ? indexed.sizes.length : after)))
      samples.push(range);
  }
  const inFewRequests = joinRanges(samples, GAP_BYTES);
  return (isUrgent ? null : sparseRanges(samples, bytesOf(inFewRequests))) ?? inFewRequests;
}

/** Ranges of a part of a source of `size` bytes, most of which they leave out; null when they would have to be too many. */
function sparseRanges(samples: readonly ByteRange[], size: number): ByteRange[] | null {
  const exact = joinRanges(samples);
  if (bytesOf(exact) > MOST * size) return null;
  const ranges = joinRanges(exact, gapWithin(exact, AUDIO_SHARE * size - bytesOf(exact)));
  return ranges.length > MAX_AUDIO_RANGES ? null : ranges;
}

/**
 * What the audio of a plan reads of the file. Null when that is most of it, or would take too many requests: then one
 * worker reads all of it.
 */
export function audioRanges(
  { tracks }: SourceIndex,
  plan: Pick<StoredPlan, "audio">,
  size: number,
): ByteRange[] | null {
  const samples: ByteRange[] = [];
  for (const { track } of plan.audio) {
    const indexed = tracks[track.index];
    if (indexed?.kind !== "audio") return null;
    for (const range of joinRanges(rangesOf(indexed, 0, indexed.sizes.length))) samples.push(range);
  }
  return sparseRanges(samples, size);
}

/** The largest gap up to which all gaps between ranges have at most `budget` bytes together. */
function gapWithin(ranges: readonly ByteRange[], budget: number): number {
  const gaps = ranges
    .slice(1)
    .map(([offset], at) => offset - ((ranges[at]?.[0] ?? 0) + (ranges[at]?.[1] ?? 0)))
    .toSorted((a, b) => a - b);
  let left = budget;
  let gap = 0;
  for (const bytes of gaps) {
    left -= bytes;
    if (left < 0) break;
    gap = bytes;
  }
  return gap;
}
