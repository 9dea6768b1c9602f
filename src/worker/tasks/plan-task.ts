import { join } from "node:path";
import { encoderFor } from "#lib/codecs";
import { planSource } from "#media/parallel/plan-source.ts";
import { probeSource } from "#media/timeline.ts";
import type { TaskResult } from "#protocol/worker-client.ts";
import type { JobContext } from "../context.ts";
import { fetchWatermark, requestedSpec } from "../requested-spec.ts";
import type { Workspace } from "../transcode-job.ts";
import { sumOf } from "../transfer.ts";
import { DOWNLOADED, openSource } from "./source.ts";
import { type TaskContract, taskRun } from "./task-run.ts";

/** While a large source is read, of 100. */
const READ = 50;

/** Runs a `plan` task: decides what is produced from the source. Throws MediaError and the errors of transfers. */
export async function planTask(job: TaskContract, context: JobContext, workspace: Workspace): Promise<TaskResult> {
  const { binaries, encoders } = context;
  const { heartbeat, work } = workspace;
  await using source = await openSource(job, context, workspace);
  heartbeat.report("probing", DOWNLOADED);
  const run = taskRun(context, workspace, source.path);
  const { path: input } = source;
  const { signal, pidDir, memoryBytes } = run;
  const common = { cwd: work, memoryBytes, ...(signal && { signal }), ...(pidDir && { pidDir }) };
  try {
    const { index } = source;
    const { need } = source;
    const onMove = () => heartbeat.advance("probing", READ);
    const media = await probeSource(input, binaries, { ...common, index, need, makeWhole: () => need("all"), onMove });
    const isSparse = !source.isWhole();
    const spec = requestedSpec(job);
    const watermark = await fetchWatermark(spec, context, { work, signal: heartbeat.signal });
    const onProgress = (fraction: number) => heartbeat.report("probing", DOWNLOADED + fraction * (100 - DOWNLOADED));
    const encoder = encoderFor(encoders, spec.video.codec);
    const trials = { encoder, watermark, workDir: join(work, "trials"), need, onProgress };
    return { plan: await planSource({ input, probe: media, spec, binaries, run, index, isSparse, trials }) };
  } catch (error) {
    // A source that was damaged in transit is reported as such.
    if (job.source.sha256 && !heartbeat.signal.aborted) {
      await source.need("all");
      await sumOf(input, job.source.sha256, heartbeat.signal);
    }
    throw error;
  }
}
