import { INIT_NAME } from "#media/arguments.ts";
import { isSourceFault } from "#media/error.ts";
import type { SourceRun } from "#media/ffmpeg.ts";
import { Inexact } from "#media/parallel/inexact.ts";
import type { StoredPlan } from "#media/parallel/stored-plan.ts";
import { segmentName } from "#media/parallel/written-rows.ts";
import type { Task, WrittenRendition } from "#protocol/task.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "../context.ts";
import { Publisher } from "../publisher.ts";
import { writeSourceTexts } from "../source-texts.ts";
import type { SourceFacts, Workspace } from "../transcode-job.ts";
import type { TaskSource } from "./source.ts";

export type TaskContract = WorkerContract & { task: Task };

/** What all runs of ffmpeg of a task share; `input` is the source that they read. */
export function taskRun(
  { scratch, memoryBytes }: JobContext,
  { heartbeat, work, outDir }: Workspace,
  input?: string,
): SourceRun {
  return {
    cwd: work,
    reads: input === undefined ? [] : [input],
    writes: [outDir],
    memoryBytes,
    signal: heartbeat.signal,
    pidDir: scratch.pidDir,
    onLog: (line) => heartbeat.logLine(line),
    onMove: () => heartbeat.move(),
  };
}

/** The rest of 100 is for publishing. */
export const ENCODED = 95;

/** What a task is run with. */
export type Running = { job: TaskContract; context: JobContext; workspace: Workspace };

/** Another look at the source may help: not after a full disk, or when the task was aborted. */
export const isOfSource = (error: unknown) => error instanceof Inexact || isSourceFault(error);

/** As in one run: a source that has faults is not copied but encoded. */
export const notCopied = (error: unknown) => new Inexact(`it cannot be copied: ${(error as Error).message}`);

/** Uploads what a task writes to its output directory. */
export const publisherOf = ({ job, context, workspace }: Running) =>
  new Publisher({
    client: context.client,
    job,
    dir: workspace.outDir,
    signal: workspace.heartbeat.signal,
    onMove: () => workspace.heartbeat.move(),
  });

/** Files of a task's renditions, relative to the output directory. */
export const filesOf = (written: readonly WrittenRendition[]) =>
  written.flatMap(({ name, first, segments }) => [
    `${name}/${INIT_NAME}`,
    ...segments.map((_, index) => `${name}/${segmentName(first + index)}`),
  ]);

/** The texts in the source that the job wants: its closed captions and text tracks. */
export const sourceTextsOf = (
  { job, context, workspace: { work, heartbeat } }: Running,
  { plan, source, signal }: { plan: StoredPlan; source: TaskSource; signal: AbortSignal },
) =>
  writeSourceTexts(job, context, {
    input: source.path,
    plan,
    startSeconds: plan.originSeconds ?? plan.startSeconds ?? 0,
    source,
    work,
    signal,
    onMove: () => heartbeat.move(),
  });

/** What the plan has of the source. */
export const factsOf = ({ video, warnings }: StoredPlan): SourceFacts => ({
  spherical: video?.track.spherical ?? null,
  warnings,
});
