import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Rate } from "#lib/codecs";
import { joinSegments } from "#lib/isobmff";
import type { EncodingSpec } from "../encoding-spec.ts";
import { isShort, readWritten, type Written } from "../package.ts";
import { cutsOf } from "../passthrough.ts";
import type { Passthrough } from "../plan.ts";
import { readResult, writeResult } from "../results.ts";
import { Inexact } from "./inexact.ts";
import { type SourceIndex, videoTrackOf, windowOf } from "./source-index.ts";
import type { StoredPlan } from "./stored-plan.ts";

/**
 * The first frame of each segment of a source whose video is copied, from 0: segments begin at its keyframes. A short last
 * segment is joined with the one before it, as in a run over the whole source.
 */
export function segmentFramesOf(
  { keyTimes }: Passthrough,
  { num, den }: Rate,
  { spec, plan }: { spec: EncodingSpec; plan: Pick<StoredPlan, "frames" | "durationSeconds"> },
): number[] {
  const keys = keyTimes.map((seconds) => Math.round((seconds * num) / den));
  const frames = cutsOf(keys, den / num, spec.segment_seconds);
  // The audio may be longer.
  const length = plan.frames === null ? (plan.durationSeconds ?? 0) : (plan.frames * den) / num;
  const last = length - ((frames.at(-1) ?? 0) * den) / num;
  return frames.length > 1 && isShort(last) ? frames.slice(0, -1) : frames;
}

/** A plan is sent with each task: this many keyframes are ten hours. */
const MAX_KEYS = 20_000;
const EQUAL_SECONDS = 1e-5;

/**
 * The first frame of each segment of a source whose video is copied; null when its parts cannot be cut out exactly: its
 * index does not have each keyframe at its place on the frame grid, or its clock cannot express that.
 */
export function copiedSegments(plan: StoredPlan, index: SourceIndex | null, spec: EncodingSpec): number[] | null {
  const { video, startSeconds = 0 } = plan;
  const track = index && video && videoTrackOf(index, video.track);
  if (!track || !video?.passthrough || video.passthrough.keyTimes.length > MAX_KEYS) return null;
  const { rate, passthrough } = video;
  if (!Number.isInteger((track.timescale * rate.den) / rate.num)) return null;
  const frames = segmentFramesOf(passthrough, rate, { spec, plan });
  for (const firstFrame of frames) {
    const window = windowOf(track, { plan: { ...plan, video }, firstFrame, endFrame: null, threads: 1 });
    const seconds = startSeconds + (firstFrame * rate.den) / rate.num;
    // Frames are stored in the order of decoding: as many before a keyframe as are shown before it.
    if (window?.from !== firstFrame || Math.abs((track.pts[firstFrame] as number) - seconds) > EQUAL_SECONDS)
      return null;
  }
  return frames;
}

type JoinOptions = {
  /** Units of the timescale that a frame lasts. */
  ticks: number;
  /** First frames of the segments, counted from the first frame of the chunk. */
  starts: readonly number[];
};

/** Reads a rendition that was cut at each keyframe, and joins what belongs to one segment. Throws Inexact. */
export async function joinedAt(
  workDir: string,
  written: Written,
  { ticks, starts }: JoinOptions,
): Promise<Written | null> {
  const folder = join(workDir, written.name);
  const first = new Set(starts.map((frame) => frame * ticks));
  let segment: { path: string; data: Buffer } | null = null;
  for (const { name, start } of written.segments) {
    const path = join(folder, name);
    const data = await readResult(path);
    if (first.has(start)) {
      if (segment) await writeResult(segment.path, segment.data);
      segment = { path, data };
      continue;
    }
    const joined: Buffer | null = segment && joinSegments(segment.data, data);
    if (!segment || !joined) throw new Inexact("its segments cannot be joined.");
    segment.data = joined;
    await rm(path);
  }
  if (segment) await writeResult(segment.path, segment.data);
  return readWritten(workDir, written.name, { joinLast: false });
}
