import { join } from "node:path";
import { INIT_NAME } from "#media/arguments.ts";
import { fileNames } from "#media/finish.ts";
import { writeImages } from "#media/parallel/images.ts";
import type { StoredPlan } from "#media/parallel/stored-plan.ts";
import { makeFolder, readResult, writeResult } from "#media/results.ts";
import { readFromFolder, type SegmentReader } from "#media/sample-video.ts";
import type { WrittenRendition } from "#protocol/task.ts";
import type { TaskResult } from "#protocol/worker-client.ts";
import { requestedSpec } from "../requested-spec.ts";
import { requestedNames, toCompletion } from "../transcode-job.ts";
import { ENCODED, factsOf, publisherOf, type Running, taskRun } from "./task-run.ts";

/** The body of `complete`, once the files are in storage. Throws MediaError, Inexact and the errors of transfers. */
export async function imagesTask({ job, context, workspace }: Running, plan: StoredPlan): Promise<TaskResult> {
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
