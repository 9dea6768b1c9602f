import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Chunk, firstFrameOf, type WrittenRendition } from "../../protocol/task.ts";
import { encodeArguments, INIT_NAME } from "../arguments.ts";
import type { Encoder } from "../encoders.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { type Binaries, run, type SourceRun } from "../ffmpeg.ts";
import { prepareFolders, readWritten, type Written } from "../package.ts";
import { Inexact } from "./inexact.ts";
import { Placer } from "./placer.ts";
import type { StoredPlan } from "./stored-plan.ts";
import { toRows } from "./written-rows.ts";

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
  encoder?: Encoder | undefined;
  /** Absolute path of the image of the specification's watermark. */
  watermark?: string | undefined;
  /** Receives the names of segments, relative to `outDir`, as soon as they are there. */
  onPlaced?: ((files: string[]) => Promise<void>) | undefined;
  /** 0 to 1. */
  onProgress?: (fraction: number) => void;
};

const STALL_MS = 5 * 60_000;
const timeLimitMs = (seconds: number) => 3_600_000 + seconds * 100_000;

/**
 * Encodes the frames of one chunk into the segments that a run over the whole source would write at their place. Throws
 * MediaError, and Inexact when the result is not exactly the chunk.
 */
export async function encodeChunk(options: ChunkOptions): Promise<WrittenRendition[]> {
  const { chunk, workDir, outDir, plan, spec } = options;
  const { video } = plan;
  if (!video) throw new Inexact("it has no video.");
  const only = chunk.renditions ? new Set(chunk.renditions) : undefined;
  const renditions = video.renditions.filter(({ name }) => only?.has(name) ?? true);
  if (renditions.length === 0) throw new Inexact(`chunk ${chunk.number} has none of its renditions.`);
  const names = renditions.map(({ name }) => name);
  await prepareFolders(workDir, { ...plan, video: { ...video, renditions }, audio: [] });
  const placer = new Placer({ ...options, names, rate: video.rate });
  try {
    await encodeRange(options, { ...plan, audio: [] }, only);
  } finally {
    await placer.stop();
  }
  const rows: WrittenRendition[] = [];
  for (const name of names) {
    const written = await readWritten(workDir, name, { joinLast: chunk.segments === null });
    if (!written) throw new Inexact(`chunk ${chunk.number} has no frames.`);
    const ticks = ticksPerFrame(written, video.rate);
    checkFrames(written, { chunk, ticks, rate: video.rate, spec });
    rows.push(await place(written, { workDir, outDir, chunk, ticks, placer }));
  }
  await rm(workDir, { recursive: true, force: true });
  return rows;
}

async function encodeRange(
  { input, workDir, chunk, spec, binaries, run: common, encoder, watermark, onProgress }: ChunkOptions,
  plan: StoredPlan,
  only: ReadonlySet<string> | undefined,
): Promise<void> {
  const rate = plan.video?.rate ?? { num: 1, den: 1 };
  const end = chunk.end_frame === null ? (plan.durationSeconds ?? 0) : (chunk.end_frame * rate.den) / rate.num;
  const seconds = Math.max(1, end - (chunk.first_frame * rate.den) / rate.num);
  const range = {
    firstFrame: chunk.first_frame,
    endFrame: chunk.end_frame,
    seekBackSeconds: plan.seekBackSeconds,
  };
  await run(binaries.ffmpeg, {
    ...common,
    writes: [...(common.writes ?? []), workDir],
    reads: [...(common.reads ?? []), ...(watermark ? [watermark] : [])],
    args: encodeArguments({ input, outDir: workDir, plan, spec, encoder, range, only, watermark }),
    isBackground: !chunk.is_urgent,
    devices: encoder !== undefined && encoder !== "software",
    timeLimitMs: timeLimitMs(seconds),
    stallMs: STALL_MS,
    onPosition: (position) => onProgress?.(Math.min(1, position / seconds)),
  });
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
  { chunk, ticks, rate, spec }: { chunk: Chunk; ticks: number; rate: { num: number; den: number }; spec: EncodingSpec },
): void {
  const { number, first_segment, first_frame, end_frame } = chunk;
  if (chunk.segments !== null && segments.length !== chunk.segments)
    throw new Inexact(`chunk ${number} has ${segments.length} segments of ${name} instead of ${chunk.segments}.`);
  let frame = first_frame;
  for (const [index, { start, duration }] of segments.entries()) {
    const expected = firstFrameOf(first_segment + index, spec.segment_seconds, rate);
    if (frame !== expected || start !== (frame - first_frame) * ticks)
      throw new Inexact(`segment ${first_segment + index} of ${name} begins with another frame.`);
    frame += duration / ticks;
  }
  if (end_frame !== null && frame !== end_frame)
    throw new Inexact(`chunk ${number} of ${name} ends at frame ${frame} instead of ${end_frame}.`);
}

/** Moves the segments to their place in time and in `outDir`; a file with its final name is complete. */
async function place(
  written: Written,
  {
    workDir,
    outDir,
    chunk,
    ticks,
    placer,
  }: { workDir: string; outDir: string; chunk: Chunk; ticks: number; placer: Placer },
): Promise<WrittenRendition> {
  const { name, segments } = written;
  const [from, to] = [join(workDir, name), join(outDir, name)];
  await mkdir(to, { recursive: true });
  const time = chunk.first_frame * ticks;
  for (const [index, segment] of segments.entries()) await placer.place(name, segment.name, { index, ticks });
  await rename(join(from, INIT_NAME), join(to, INIT_NAME));
  const moved = segments.map((segment) => ({ ...segment, start: segment.start + time }));
  return toRows(to, { ...written, segments: moved }, chunk.first_segment);
}
