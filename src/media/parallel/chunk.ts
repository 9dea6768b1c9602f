import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Encoders, encoderFor, usesDevices } from "#lib/codecs";
import { type Chunk, firstFrameOf, type WrittenRendition } from "#protocol/task.ts";
import { CHANGED_FRAMES, encodeArguments, INIT_NAME, SEGMENT_PATTERN } from "../arguments.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { MediaError } from "../error.ts";
import { type Binaries, run, type SourceRun, UNTIL_STALLED } from "../ffmpeg.ts";
import { addInitBoxes } from "../init-boxes.ts";
import type { PlannedRendition } from "../ladder.ts";
import { prepareFolders, readWritten, type Written } from "../package.ts";
import { listResults, makeFolder, moveResult } from "../results.ts";
import { copyRange } from "./copy-range.ts";
import { Inexact } from "./inexact.ts";
import { joinedAt, segmentFramesOf } from "./passthrough-parts.ts";
import { Placer } from "./placer.ts";
import type { StoredPlan } from "./stored-plan.ts";
import { statedBy, type VideoRun, videoRuns } from "./video-runs.ts";
import { toRows } from "./written-rows.ts";
import { Yielded } from "./yielded.ts";

export type ChunkOptions = {
  input: string;
  /** Receives the segments with their final names; other tasks write to it too. */
  outDir: string;
  /** Private, on the same file system as `outDir`. */
  workDir: string;
  plan: StoredPlan;
  chunk: Chunk;
  spec: EncodingSpec;
  binaries: Binaries;
  run: SourceRun;
  encoders?: Encoders | undefined;
  /** Absolute path of the image of the specification's watermark. */
  watermark?: string | undefined;
  /** Receives the names of segments, relative to `outDir`, as soon as they are there. */
  onPlaced?: ((files: string[]) => Promise<void>) | undefined;
  /** The keyframe that is decoded first, from the index of the source; null: its first one. */
  seekSeconds?: number | null;
  /** Ends the chunk with the segments that are complete. */
  yielding?: AbortSignal | undefined;
  /** 0 to 1. */
  onProgress?: (fraction: number) => void;
};
/** `isPartial`: only the first segments of the chunk, because it was to yield. */
export type EncodedChunk = { written: WrittenRendition[]; isPartial: boolean };

/**
 * Encodes the frames of one chunk into the segments that a run over the whole source would write at their place; each codec
 * in a run of its own, as there. Throws MediaError, Inexact when the result is not exactly the chunk, and Yielded when it was
 * to yield before it had a segment.
 */
export async function encodeChunk(options: ChunkOptions): Promise<EncodedChunk> {
  const { workDir, outDir, plan, spec, yielding } = options;
  let { chunk } = options;
  const { video } = plan;
  if (!video) throw new Inexact("it has no video.");
  const { passthrough, rate } = video;
  const only = chunk.renditions ? new Set(chunk.renditions) : undefined;
  const runs = runsWith(only, videoRuns(plan, spec));
  const renditions = runs.flatMap((one) => one.renditions);
  if (renditions.length === 0) throw new Inexact(`chunk ${chunk.number} has none of its renditions.`);
  const names = renditions.map(({ name }) => name);
  const frames = passthrough && segmentFramesOf(passthrough, rate, { spec, plan });
  const firstOf = (segment: number) =>
    frames ? (frames[segment] ?? null) : firstFrameOf(segment, spec.segment_seconds, rate);
  await prepareFolders(workDir, { ...plan, audio: [], video: { ...video, renditions } });
  // A joined segment has several fragments, but not more than frames.
  const sequence = frames ? chunk.first_frame : chunk.first_segment;
  const placer = new Placer({ ...options, names, rate, firstOf, sequence });
  try {
    await encodeRuns(options, runs, only);
  } catch (error) {
    if (!yielding?.aborted || options.run.signal?.aborted) throw error;
    const segments = await placer.placeComplete();
    if (segments === 0) throw new Yielded();
    chunk = { ...chunk, segments, end_frame: firstOf(chunk.first_segment + segments) };
  } finally {
    await placer.stop();
  }
  const isPartial = chunk !== options.chunk;
  for (const one of runs)
    for (const { name } of one.renditions) await addInitBoxes(join(workDir, name, INIT_NAME), statedBy(one));
  const rows: WrittenRendition[] = [];
  // All are joined where the first one is.
  let count: number | undefined;
  for (const name of names) {
    const read = await readWritten(workDir, name, { joinLast: chunk.segments === null && !frames, count });
    if (!read) throw noFrames(chunk);
    count ??= read.segments.length;
    const ticks = ticksPerFrame(read, rate);
    const starts = frames?.map((frame) => frame - chunk.first_frame);
    const all = starts ? await joinedAt(workDir, read, { ticks, starts }) : read;
    if (!all) throw noFrames(chunk);
    const written = isPartial ? { ...all, segments: all.segments.slice(0, chunk.segments ?? undefined) } : all;
    checkFrames(written, { chunk, ticks, firstOf });
    rows.push(await place(written, { workDir, outDir, chunk, ticks, placer }));
  }
  await rm(workDir, { recursive: true, force: true });
  return { written: rows, isPartial };
}

type WantedRun = VideoRun & { renditions: readonly PlannedRendition[] };

/** The runs with the renditions of a chunk; without `only` all of them. */
const runsWith = (only: ReadonlySet<string> | undefined, runs: readonly VideoRun[]): WantedRun[] =>
  runs
    .map((one) => ({ ...one, renditions: one.plan.video.renditions.filter(({ name }) => only?.has(name) ?? true) }))
    .filter(({ renditions }) => renditions.length > 0);

async function encodeRuns(
  options: ChunkOptions,
  runs: readonly WantedRun[],
  only: ReadonlySet<string> | undefined,
): Promise<void> {
  const all = runs.reduce((sum, { work }) => sum + work, 0);
  let done = 0;
  for (const one of runs) {
    const { renditions, passthrough } = one.plan.video;
    const [copied] = passthrough?.isCopied ? renditions : [];
    const onProgress = (fraction: number) => options.onProgress?.((done + fraction * one.work) / all);
    if (one.renditions.some((each) => each !== copied))
      await encodeRange({ ...options, onProgress }, one, only).catch((error) => {
        // ffmpeg's muxer divides by the duration of what it has written.
        throw error instanceof MediaError && error.signal === "SIGFPE" ? noFrames(options.chunk) : error;
      });
    // Its faults are found by the chunk that encodes the other renditions of these frames.
    if (copied && one.renditions.includes(copied)) await copyRange(options, one);
    // Behind the real end of a source there are no frames. Not every encoder ends then: SVT-AV1 waits for one.
    if (!(await hasSegments(options.workDir, one.renditions))) throw noFrames(options.chunk);
    done += one.work;
  }
}

const noFrames = ({ number }: Chunk) => new Inexact(`chunk ${number} has no frames.`);

async function hasSegments(workDir: string, renditions: readonly PlannedRendition[]): Promise<boolean> {
  const found = await Promise.all(renditions.map(({ name }) => listResults(join(workDir, name))));
  return found.every((files) => files.some((file) => SEGMENT_PATTERN.test(file)));
}

/**
 * What ffmpeg reports of damaged packets and of frames whose missing parts were concealed, from frames that a chunk does not
 * have. Missing references are not among them: a decoder that begins with an open GOP reports them too, of frames that are
 * not shown.
 */
const FAULTS = [
  ...["corrupt input packet in stream", "corrupt decoded frame in stream", "Error while decoding stream"],
  ...["error while decoding MB", "is outside the valid range", "Error parsing NAL unit", "Invalid NAL unit"],
];

async function encodeRange(
  {
    input,
    workDir,
    plan: whole,
    chunk,
    spec,
    binaries,
    run: common,
    encoders,
    watermark,
    seekSeconds,
    yielding,
    onProgress,
  }: ChunkOptions,
  { plan, settings: additional, hdr }: VideoRun,
  only: ReadonlySet<string> | undefined,
): Promise<void> {
  const { rate } = plan.video;
  const encoder = encoderFor(encoders, (additional ?? spec.video).codec, hdr);
  const end = chunk.end_frame === null ? (plan.durationSeconds ?? 0) : (chunk.end_frame * rate.den) / rate.num;
  const seconds = Math.max(1, end - (chunk.first_frame * rate.den) / rate.num);
  const range = {
    firstFrame: chunk.first_frame,
    endFrame: chunk.end_frame,
    seekBackSeconds: plan.seekBackSeconds,
    ...(seekSeconds !== undefined && { seekSeconds }),
  };
  let fault: string | null = null;
  const faults = plan.video.passthrough ? [...FAULTS, CHANGED_FRAMES] : FAULTS;
  await run(binaries.ffmpeg, {
    ...common,
    onLog: (line) => {
      if (faults.some((text) => line.includes(text))) fault ??= line.trim().slice(0, 200);
      common.onLog?.(line);
    },
    writes: [...(common.writes ?? []), workDir],
    reads: [...(common.reads ?? []), ...(watermark ? [watermark] : [])],
    args: encodeArguments({
      input,
      outDir: workDir,
      plan,
      whole,
      spec,
      encoder,
      range,
      only,
      watermark,
      additional,
      hdr,
    }),
    precedence: chunk.is_urgent ? "latest" : "background",
    killSignal: yielding,
    devices: usesDevices(encoder),
    ...UNTIL_STALLED,
    onPosition: (position) => onProgress?.(Math.min(1, position / seconds)),
  });
  if (fault !== null) throw new Inexact(`its decoder reports faults: ${fault}`);
}

/** Throws Inexact when a frame does not last a whole number of the timescale's units. */
function ticksPerFrame({ init }: Written, { num, den }: { num: number; den: number }): number {
  const ticks = (init.timescale * den) / num;
  if (!Number.isInteger(ticks)) throw new Inexact("its frames do not fit into the timescale.");
  return ticks;
}

/** All segments have the frames that they have in a run over the whole source, no more and no fewer. */
function checkFrames(
  { name, segments }: Written,
  { chunk, ticks, firstOf }: { chunk: Chunk; ticks: number; firstOf: (segment: number) => number | null },
): void {
  const { number, first_segment, first_frame, end_frame } = chunk;
  if (chunk.segments !== null && segments.length !== chunk.segments)
    throw new Inexact(`chunk ${number} has ${segments.length} segments of ${name} instead of ${chunk.segments}.`);
  let frame = first_frame;
  for (const [index, { start, duration }] of segments.entries()) {
    if (frame !== firstOf(first_segment + index) || start !== (frame - first_frame) * ticks)
      throw new Inexact(`segment ${first_segment + index} of ${name} begins with another frame.`);
    frame += duration / ticks;
  }
  if (end_frame !== null && frame !== end_frame)
    throw new Inexact(`chunk ${number} of ${name} ends at frame ${frame} instead of ${end_frame}.`);
}

type PlaceOptions = {
  workDir: string;
  outDir: string;
  chunk: Chunk;
  ticks: number;
  placer: Placer;
};

/** Moves the segments to their place in time and in `outDir`; a file with its final name is complete. */
async function place(
  written: Written,
  { workDir, outDir, chunk, ticks, placer }: PlaceOptions,
): Promise<WrittenRendition> {
  const { name, segments } = written;
  const from = join(workDir, name);
  const to = join(outDir, name);
  await makeFolder(to);
  const time = chunk.first_frame * ticks;
  for (const [index, segment] of segments.entries()) await placer.place(name, segment.name, { index, ticks });
  await moveResult(join(from, INIT_NAME), join(to, INIT_NAME));
  const moved = segments.map((segment) => ({ ...segment, start: segment.start + time }));
  return toRows(to, { ...written, segments: moved }, chunk.first_segment);
}
