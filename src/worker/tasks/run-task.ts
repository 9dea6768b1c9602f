import { mkdir, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { ByteRange } from "#lib/isobmff";
import { INIT_NAME } from "#media/arguments.ts";
import { isSourceFault } from "#media/error.ts";
import { fileNames } from "#media/finish.ts";
import { encodeAudio } from "#media/parallel/audio.ts";
import { audioStep } from "#media/parallel/audio-grid.ts";
import { encodeAudioPart } from "#media/parallel/audio-part.ts";
import { type EncodedChunk, encodeChunk } from "#media/parallel/chunk.ts";
import { earlyNames, initSeconds, writeEarly, writeInits } from "#media/parallel/head.ts";
import { writeImages } from "#media/parallel/images.ts";
import { Inexact } from "#media/parallel/inexact.ts";
import {
  audioPartRanges,
  audioRanges,
  firstAudioRanges,
  type SourceIndex,
  videoTrackOf,
  type Window,
  windowOf,
  windowRanges,
} from "#media/parallel/source-index.ts";
import { parsePlan, type StoredPlan } from "#media/parallel/stored-plan.ts";
import { videoRenditions } from "#media/parallel/video-runs.ts";
import { segmentName } from "#media/parallel/written-rows.ts";
import { encodedAdditional } from "#media/plan.ts";
import { requireAdditionalEncoders } from "#media/require-encoder.ts";
import { makeFolder, readResult, writeResult } from "#media/results.ts";
import { readFromFolder, type SegmentReader } from "#media/sample-video.ts";
import type { Chunk, Task, WrittenRendition } from "#protocol/task.ts";
import type { TaskResult } from "#protocol/worker-client.ts";
import { addCaptions, createCaptions } from "../captions.ts";
import type { JobContext } from "../context.ts";
import { LeaseLost } from "../lease-client.ts";
import { Publisher } from "../publisher.ts";
import { fetchWatermark, requestedSpec } from "../requested-spec.ts";
import { runConcurrently } from "../run-concurrently.ts";
import { writeSourceTexts } from "../source-texts.ts";
import { requestedNames, type SourceFacts, toCompletion, transcode, type Workspace } from "../transcode-job.ts";
import { sumOf } from "../transfer.ts";
import { planTask } from "./plan-task.ts";
import { DOWNLOADED, openSource, type TaskSource } from "./source.ts";
import { type TaskContract, taskRun } from "./task-run.ts";

/** The rest of 100 is for publishing. */
const ENCODED = 95;

type Running = { job: TaskContract; context: JobContext; workspace: Workspace };

/**
 * Runs one task: its files are in storage when the result is returned, which is the body of its `complete`. Throws
 * MediaError, Inexact and the errors of transfers.
 */
export async function runTask(job: TaskContract, context: JobContext, workspace: Workspace): Promise<TaskResult> {
  const running = { job, context, workspace };
  await mkdir(workspace.outDir, { recursive: true });
  switch (job.task.kind) {
    case "plan":
      return planTask(job, context, workspace);
    case "chunk":
      return chunk(running, parsePlan(job.task.plan));
    case "audio":
      return audio(running, parsePlan(job.task.plan));
    case "images":
      return images(running, parsePlan(job.task.plan));
    case "whole":
      return transcode(job, context, workspace);
  }
}

async function chunk({ job, context, workspace }: Running, plan: StoredPlan): Promise<TaskResult> {
  const { binaries, encoders } = context;
  const { heartbeat, work, outDir } = workspace;
  const { task } = job;
  if (!task.chunk) throw new Error("The contract of a chunk does not state its range.");
  const spec = requestedSpec(job);
  const listing = { ...taskRun(context, workspace), writes: [] };
  await requireAdditionalEncoders(binaries.ffmpeg, { additional: encodedAdditional(plan, spec), encoders }, listing);
  await using source = await openSource(job, context, workspace);
  const publisher = publisherOf({ job, context, workspace });
  // When a source has no audio, no other task may read all of it.
  const isChecking = plan.audio.length === 0 && task.chunk.number === 0;
  const window = await needChunk(source, {
    plan,
    chunk: task.chunk,
    withInits: task.publishes,
    isWhole: isChecking && Boolean(job.source.sha256),
  });
  const sum = isChecking && source.isWhole() ? sumOf(source.path, job.source.sha256, heartbeat.signal) : null;
  sum?.catch(() => {});
  try {
    const report = (fraction: number) => heartbeat.report("encoding", DOWNLOADED + fraction * (ENCODED - DOWNLOADED));
    report(0);
    const options = {
      input: source.path,
      outDir,
      plan,
      spec,
      binaries,
      encoders,
      watermark: await fetchWatermark(spec, context, { work, signal: heartbeat.signal }),
      run: taskRun(context, workspace, source.path),
    };
    const { renditions } = task.chunk;
    // Not the one that publishes, and not one that also reads the whole source: another task would have to do it again.
    const yielding = task.publishes || sum || job.outputs.read_closed_captions ? undefined : heartbeat.yielding;
    const [{ written, isPartial }, closed] = await runConcurrently(
      heartbeat.signal,
      (signal) =>
        encodeExactly(
          {
            ...options,
            run: { ...options.run, signal },
            workDir: join(work, "chunk"),
            chunk: task.chunk as Chunk,
            yielding,
            onPlaced: (files) => publisher.also(files),
            onProgress: report,
          },
          { source, window },
        ),
      async (signal) => {
        if (!task.publishes) return sourceTextsOf({ job, context, workspace }, { plan, source, signal });
        const others = videoRenditions(plan, spec)
          .map(({ name }) => name)
          .filter((name) => !renditions?.includes(name));
        const run = { ...options.run, signal };
        await writeInits({ ...options, run, workDir: join(work, "inits"), renditions: renditions ? others : [] });
        return null;
      },
    );
    heartbeat.report("publishing", ENCODED);
    if (closed) await addCaptions(closed, outDir);
    await publisher.finish([...(closed?.files ?? []), ...filesOf(written)]);
    if (task.publishes) await publishFirst({ job, context, workspace }, { ...options, written, publisher });
    return {
      written,
      ...closed?.reported,
      ...(isPartial && { partial: true }),
      ...(sum && { media: { source_sha256: await sum } }),
    };
  } finally {
    await publisher.stop();
  }
}

/** Publishes what is listed before it is encoded. Without it the asset plays when everything is complete. */
async function publishFirst(
  { job, context, workspace }: Running,
  { publisher, written, ...options }: Omit<Parameters<typeof writeEarly>[0], "names"> & { publisher: Publisher },
): Promise<void> {
  const { signal } = workspace.heartbeat;
  try {
    const names = earlyNames(fileNames(options.spec, requestedNames(job)));
    const result = await writeEarly({ ...options, written, names });
    await publisher.also(result.files);
    const completion = {
      ...toCompletion(result, job.outputs.prefix, factsOf(options.plan)),
      subtitle_paths: {},
      caption_errors: {},
    };
    await context.client.publish(job, completion, signal);
  } catch (error) {
    if (error instanceof LeaseLost || signal.aborted) throw error;
    context.log.warn({ job_id: job.job.id, error: String(error) }, "The asset could not be published early.");
  }
}

type ChunkNeeds = {
  plan: StoredPlan;
  chunk: NonNullable<Task["chunk"]>;
  /** Whether the init segments of audio and of other renditions are encoded too. */
  withInits: boolean;
  isWhole: boolean;
};

/** Downloads what a chunk reads of its source: the returned part of it, or everything. */
async function needChunk(source: TaskSource, { plan, chunk, withInits, isWhole }: ChunkNeeds): Promise<Window | null> {
  const { video } = plan;
  const { index } = source;
  const track = index && video && videoTrackOf(index, video.track);
  const range = { firstFrame: chunk.first_frame, endFrame: chunk.end_frame };
  const window = track && windowOf(track, { ...range, plan: { ...plan, video }, threads: availableParallelism() + 1 });
  const inits = index && withInits ? initsOf(index, plan, chunk) : [];
  await source.need(track && window && inits && !isWhole ? [...windowRanges(track, window), ...inits] : "all");
  return window;
}

/** What the init segments need in addition to a chunk that begins the source; null: everything. */
function initsOf(index: SourceIndex, plan: StoredPlan, { end_frame }: Chunk): ByteRange[] | null {
  const { rate } = plan.video ?? {};
  const seconds = initSeconds(plan);
  const isWithin = rate && (end_frame === null || (end_frame * rate.den) / rate.num >= seconds);
  return isWithin ? firstAudioRanges(index, plan, seconds) : null;
}

/** Another look at the source may help: not after a full disk, or when the task was aborted. */
const isOfSource = (error: unknown) => error instanceof Inexact || isSourceFault(error);

/** Encodes a chunk from a part of its source. If that is not exact, the index may be wrong: then from all of it. */
async function encodeExactly(
  options: Parameters<typeof encodeChunk>[0],
  { source, window }: { source: TaskSource; window: Window | null },
): Promise<EncodedChunk> {
  try {
    if (!window) return await encodeChunk(options);
    try {
      return await encodeChunk({ ...options, seekSeconds: window.seekSeconds });
    } catch (error) {
      if (!isOfSource(error)) throw error;
      options.run.onLog?.(`Encoding again, without the index of the source. ${(error as Error).message}`);
      await source.need("all");
      await rm(options.workDir, { recursive: true, force: true });
      return await encodeChunk(options);
    }
  } catch (error) {
    throw options.plan.video?.passthrough && isOfSource(error) ? notCopied(error) : error;
  }
}

/** As in one run: a source that has faults is not copied but encoded. */
const notCopied = (error: unknown) => new Inexact(`it cannot be copied: ${(error as Error).message}`);

async function audio({ job, context, workspace }: Running, plan: StoredPlan): Promise<TaskResult> {
  const { binaries } = context;
  const { heartbeat, work, outDir } = workspace;
  await using source = await openSource(job, context, workspace);
  const publisher = publisherOf({ job, context, workspace });
  const requested = Object.keys(job.outputs.subtitle_paths ?? {}).length;
  const done = { encoded: 0, captioned: requested > 0 ? 0 : 1 };
  const report = (part: Partial<typeof done>) => {
    Object.assign(done, part);
    const fraction = Math.min(done.encoded, done.captioned);
    heartbeat.report("encoding", DOWNLOADED + fraction * (ENCODED - DOWNLOADED));
  };
  const media = { audio: plan.audio.map(({ track }) => track) };
  const range = job.task.chunk;
  // The checksum needs everything, once. In the last part: the first one is what a viewer waits for.
  const isSummed = !range || range.segments === null;
  const ranges = source.index && audioRangesOf({ job, index: source.index, plan, isWhole: requested > 0 });
  await source.need(ranges && !(isSummed && job.source.sha256) ? ranges : "all");
  const sum = isSummed && source.isWhole() ? sumOf(source.path, job.source.sha256, heartbeat.signal) : null;
  sum?.catch(() => {});
  try {
    const [written, [captions, closed]] = await runConcurrently(
      heartbeat.signal,
      (signal) =>
        plan.audio.length === 0
          ? Promise.resolve([])
          : encodeAudioOf({
              options: {
                input: source.path,
                outDir,
                plan,
                spec: requestedSpec(job),
                binaries,
                run: { ...taskRun(context, workspace, source.path), signal },
                onProgress: (encoded) => report({ encoded }),
                onWritten: (rows) => publisher.also(filesOf(rows)),
              },
              range,
              index: source.index,
              workDir: join(work, "audio"),
              onPlaced: (files) => publisher.also(files),
            }).catch((error) => {
              throw plan.audio.some(({ isCopied }) => isCopied) && isOfSource(error) ? notCopied(error) : error;
            }),
      (signal) =>
        runConcurrently(
          signal,
          (both) =>
            createCaptions(job, context, {
              input: source.path,
              probe: media,
              whole: plan,
              work,
              signal: both,
              onProgress: (captioned) => report({ captioned }),
              onMove: () => heartbeat.move(),
            }),
          (both) => sourceTextsOf({ job, context, workspace }, { plan, source, signal: both }),
        ),
    );
    heartbeat.report("publishing", ENCODED);
    await addCaptions(captions, outDir);
    await addCaptions(closed, outDir);
    await publisher.finish([...captions.files, ...closed.files, ...filesOf(written)]);
    return { written, ...captions.reported, ...closed.reported, ...(sum && { media: { source_sha256: await sum } }) };
  } finally {
    await publisher.stop();
  }
}

const sourceTextsOf = (
  { job, context, workspace: { work, heartbeat } }: Running,
  { plan, source, signal }: { plan: StoredPlan; source: TaskSource; signal: AbortSignal },
) =>
  writeSourceTexts(job, context, {
    ...{ input: source.path, plan, startSeconds: plan.originSeconds ?? plan.startSeconds ?? 0 },
    ...{ source, work, signal, onMove: () => heartbeat.move() },
  });

/** Downloads for a part of the audio, or for all of it; null: everything. */
function audioRangesOf({
  job,
  index,
  plan,
  isWhole,
}: {
  job: TaskContract;
  index: SourceIndex;
  plan: StoredPlan;
  isWhole: boolean;
}): ByteRange[] | null {
  const range = job.task.chunk;
  if (!range || isWhole) return audioRanges(index, plan, job.source.bytes ?? 0);
  const { segment_seconds: seconds } = requestedSpec(job);
  const step = audioStep(plan, index, requestedSpec(job)) ?? 0;
  const from = Math.max(0, range.first_segment - step) * seconds;
  const to = range.segments === null ? Number.POSITIVE_INFINITY : (range.first_segment + range.segments) * seconds;
  return audioPartRanges(index, plan, { from, to, isUrgent: range.is_urgent });
}

/** The audio of a task: of a range of segments, or all. Throws MediaError and Inexact. */
function encodeAudioOf({
  options,
  range,
  index,
  workDir,
  onPlaced,
}: {
  options: Parameters<typeof encodeAudio>[0];
  range: Chunk | null;
  index: SourceIndex | null;
  workDir: string;
  onPlaced: (files: string[]) => Promise<void>;
}): Promise<WrittenRendition[]> {
  if (!range) return encodeAudio(options);
  const step = audioStep(options.plan, index, options.spec);
  if (step === null) throw new Inexact("its audio cannot be encoded in parts.");
  return encodeAudioPart(options, { range, step, workDir, onPlaced });
}

async function images({ job, context, workspace }: Running, plan: StoredPlan): Promise<TaskResult> {
  const { heartbeat, outDir } = workspace;
  const { written } = job.task;
  if (!written) throw new Error("The contract of the last task does not state what was written.");
  const publisher = publisherOf({ job, context, workspace });
  try {
    heartbeat.report("encoding", 0);
    const read = await segmentReader({ job, context, workspace }, written);
    const spec = requestedSpec(job);
    const result = await writeImages({
      plan,
      written,
      outDir,
      read,
      spec,
      names: fileNames(spec, requestedNames(job)),
      binaries: context.binaries,
      run: { ...taskRun(context, workspace), reads: [] },
    });
    heartbeat.report("publishing", ENCODED);
    await publisher.finish(result.files);
    return { ...toCompletion(result, job.outputs.prefix, factsOf(plan)), subtitle_paths: {}, caption_errors: {} };
  } finally {
    await publisher.stop();
  }
}

/** What the plan has of the source. */
const factsOf = ({ video, warnings }: StoredPlan): SourceFacts => ({
  spherical: video?.track.spherical ?? null,
  warnings,
});

/** On a shared disk the segments are files; otherwise each is downloaded when it is needed. */
async function segmentReader(
  { job, context, workspace }: Running,
  written: WrittenRendition[],
): Promise<SegmentReader> {
  const { outDir, heartbeat } = workspace;
  if (job.artifacts.local_path) return readFromFolder(outDir);
  const download: SegmentReader = async (rendition, file) => {
    const data = await context.client.read(job, `${job.outputs.prefix}${rendition}/${file}`, heartbeat.signal);
    heartbeat.move();
    return data;
  };
  for (const { name } of written) {
    await makeFolder(join(outDir, name));
    await writeResult(join(outDir, name, INIT_NAME), await download(name, INIT_NAME));
  }
  return async (rendition, file) =>
    file === INIT_NAME ? readResult(join(outDir, rendition, file)) : download(rendition, file);
}

const publisherOf = ({ job, context, workspace }: Running) =>
  new Publisher({
    client: context.client,
    job,
    dir: workspace.outDir,
    signal: workspace.heartbeat.signal,
    onMove: () => workspace.heartbeat.move(),
  });

/** Files of a task's renditions, relative to the output directory. */
const filesOf = (written: readonly WrittenRendition[]) =>
  written.flatMap(({ name, first, segments }) => [
    `${name}/${INIT_NAME}`,
    ...segments.map((_, index) => `${name}/${segmentName(first + index)}`),
  ]);
