import { join } from "node:path";
import type { ByteRange } from "#lib/isobmff";
import { encodeAudio } from "#media/parallel/audio.ts";
import { audioStep } from "#media/parallel/audio-grid.ts";
import { encodeAudioPart } from "#media/parallel/audio-part.ts";
import { Inexact } from "#media/parallel/inexact.ts";
import { audioPartRanges, audioRanges, type SourceIndex } from "#media/parallel/source-index.ts";
import type { StoredPlan } from "#media/parallel/stored-plan.ts";
import type { Chunk, WrittenRendition } from "#protocol/task.ts";
import type { TaskResult } from "#protocol/worker-client.ts";
import { addCaptions, createCaptions } from "../captions.ts";
import { requestedSpec } from "../requested-spec.ts";
import { runConcurrently } from "../run-concurrently.ts";
import { sumOf } from "../transfer.ts";
import { DOWNLOADED, openSource } from "./source.ts";
import {
  ENCODED,
  filesOf,
  isOfSource,
  notCopied,
  publisherOf,
  type Running,
  sourceTextsOf,
  type TaskContract,
  taskRun,
} from "./task-run.ts";

/** The body of `complete`, once the files are in storage. Throws MediaError, Inexact and the errors of transfers. */
export async function audioTask({ job, context, workspace }: Running, plan: StoredPlan): Promise<TaskResult> {
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
