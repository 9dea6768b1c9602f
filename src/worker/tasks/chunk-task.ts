import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { ByteRange } from "#lib/isobmff";
import { fileNames } from "#media/finish.ts";
import { type EncodedChunk, encodeChunk } from "#media/parallel/chunk.ts";
import { earlyNames, initSeconds, writeEarly, writeInits } from "#media/parallel/head.ts";
import {
  firstAudioRanges,
  type SourceIndex,
  videoTrackOf,
  type Window,
  windowOf,
  windowRanges,
} from "#media/parallel/source-index.ts";
import type { StoredPlan } from "#media/parallel/stored-plan.ts";
import { videoRenditions } from "#media/parallel/video-runs.ts";
import { encodedAdditional } from "#media/plan.ts";
import { requireAdditionalEncoders } from "#media/require-encoder.ts";
import type { Chunk, Task } from "#protocol/task.ts";
import type { TaskResult } from "#protocol/worker-client.ts";
import { addCaptions } from "../captions.ts";
import { LeaseLost } from "../lease-client.ts";
import type { Publisher } from "../publisher.ts";
import { fetchWatermark, requestedSpec } from "../requested-spec.ts";
import { runConcurrently } from "../run-concurrently.ts";
import { requestedNames, toCompletion } from "../transcode-job.ts";
import { sumOf } from "../transfer.ts";
import { DOWNLOADED, openSource, type TaskSource } from "./source.ts";
import {
  ENCODED,
  factsOf,
  filesOf,
  isOfSource,
  notCopied,
  publisherOf,
  type Running,
  sourceTextsOf,
  taskRun,
} from "./task-run.ts";

/** The body of `complete`, once the files are in storage. Throws MediaError, Inexact and the errors of transfers. */
export async function chunkTask({ job, context, workspace }: Running, plan: StoredPlan): Promise<TaskResult> {
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
