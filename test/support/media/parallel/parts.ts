import { readFileSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodingSpec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { fileNames } from "#media/finish.ts";
import { encodeAudio } from "#media/parallel/audio.ts";
import { encodeChunk } from "#media/parallel/chunk.ts";
import { writeImages } from "#media/parallel/images.ts";
import { planSource } from "#media/parallel/plan-source.ts";
import {
  headRanges,
  indexOfFile,
  type SourceIndex,
  videoTrackOf,
  windowOf,
  windowRanges,
} from "#media/parallel/source-index.ts";
import { parsePlan, type StoredPlan } from "#media/parallel/stored-plan.ts";
import { readFromFolder } from "#media/sample-video.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { type Chunk, firstFrameOf, type WrittenRendition } from "#protocol/task.ts";
import { bytesOf, joinRanges } from "#src/lib/isobmff/layout.ts";
import { binaries } from "../sources.ts";

type Spec = typeof encodingSpec;
export type Planned = {
  plan: StoredPlan;
  uncuttable: string | null;
  chunks: Chunk[];
  /** The index of a source that can be read in parts. */
  index: SourceIndex | null;
};

const runIn = async () => ({ cwd: await mkdtemp(join(tmpdir(), "parts-")), reads: [], writes: [] as string[] });

/** The plan of a source, and its chunks of `chunkSegments` segments. */
export async function planned(input: string, chunkSegments: number, spec: Spec = encodingSpec): Promise<Planned> {
  const media = await probe(input, binaries);
  const run = { ...(await runIn()), reads: [input] };
  const index = await indexOfFile(input);
  const result = await planSource({ input, probe: media, spec, binaries, run, index });
  // As it is stored and sent.
  const plan = parsePlan(JSON.parse(JSON.stringify(result.plan)));
  const rate = plan.video?.rate ?? { num: 1, den: 1 };
  const frames = result.segment_frames;
  const total = frames?.length ?? Math.ceil((plan.durationSeconds ?? 0) / spec.segment_seconds);
  const firstFrame = (segment: number) => frames?.[segment] ?? firstFrameOf(segment, spec.segment_seconds, rate);
  const count = Math.max(1, Math.round(total / chunkSegments));
  const first = (number: number) => Math.round((number * total) / count);
  const chunks = Array.from({ length: count }, (_, number) => {
    const isLast = number === count - 1;
    const from = first(number);
    const to = first(number + 1);
    return {
      number,
      first_segment: from,
      segments: isLast ? null : to - from,
      first_frame: firstFrame(from),
      end_frame: isLast ? null : firstFrame(to),
      renditions: null,
      is_urgent: false,
    };
  });
  return { plan, uncuttable: result.uncuttable, chunks, index };
}

/**
 * A file as long as a source, with only those bytes that a chunk needs, and the keyframe that it is decoded from. Null
 * for a source that cannot be read in parts.
 */
export async function sparseCopy(
  input: string,
  copy: string,
  planned: Planned,
  chunk: Chunk,
): Promise<{ seekSeconds: number | null; bytes: number } | null> {
  const { index, plan } = planned;
  const window = windowIn(planned, chunk);
  const track = index && videoTrackOf(index, plan.video?.track ?? null);
  if (!index || !track || !window) return null;
  const source = readFileSync(input);
  const data = Buffer.alloc(source.length);
  const ranges = joinRanges([...headRanges(index), ...windowRanges(track, window)]);
  for (const [offset, length] of ranges) source.copy(data, offset, offset, offset + length);
  writeFileSync(copy, data);
  return { seekSeconds: window.seekSeconds, bytes: bytesOf(ranges) };
}

/** The part of the source that a chunk is decoded from; null without an index. */
function windowIn({ plan, index }: Planned, { first_frame: firstFrame, end_frame: endFrame }: Chunk) {
  const { video } = plan;
  const track = index && video && videoTrackOf(index, video.track);
  return track ? windowOf(track, { plan: { ...plan, video }, firstFrame, endFrame, threads: 17 }) : null;
}

/** Encodes a source in parts, one after the other, and joins them in `outDir`. */
export async function encodedInParts(
  input: string,
  outDir: string,
  planned: Planned,
  spec: Spec = encodingSpec,
): Promise<EncodeResult & { written: WrittenRendition[] }> {
  const { plan, chunks } = planned;
  await mkdir(outDir, { recursive: true });
  const run = { ...(await runIn()), reads: [input], writes: [outDir] };
  const common = { input, outDir, plan, spec, binaries, run };
  const parts: WrittenRendition[][] = [];
  for (const chunk of chunks) {
    const seek = windowIn(planned, chunk)?.seekSeconds;
    const workDir = join(run.cwd, `chunk-${chunk.number}`);
    parts.push(
      (await encodeChunk({ ...common, workDir, chunk, ...(seek !== undefined && { seekSeconds: seek }) })).written,
    );
  }
  const written = [...joined(parts), ...(plan.audio.length > 0 ? await encodeAudio(common) : [])];
  const names = fileNames(spec);
  const images = { plan, written, outDir, read: readFromFolder(outDir), spec, names, binaries, run };
  return { ...(await writeImages(images)), written };
}

/** Encodes one chunk, without an index, in directories of its own. Throws what `encodeChunk` throws. */
export async function encodedChunk(input: string, plan: StoredPlan, chunk: Chunk): Promise<WrittenRendition[]> {
  const { cwd } = await runIn();
  const run = { cwd, reads: [input], writes: [cwd] };
  const outDir = join(cwd, "out");
  const workDir = join(cwd, "chunk");
  try {
    return (await encodeChunk({ input, outDir, workDir, plan, chunk, spec: encodingSpec, binaries, run })).written;
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/** The renditions over all chunks. */
export function joined(parts: WrittenRendition[][]): WrittenRendition[] {
  const [first = [], ...others] = parts;
  return first.map((rendition) => {
    const rest = others.map((part) => part.find(({ name }) => name === rendition.name));
    return { ...rendition, segments: [rendition, ...rest].flatMap((one) => one?.segments ?? []) };
  });
}
