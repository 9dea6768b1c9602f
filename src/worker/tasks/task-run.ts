import type { SourceRun } from "#media/ffmpeg.ts";
import type { Task } from "#protocol/task.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import type { JobContext } from "../context.ts";
import type { Workspace } from "../transcode-job.ts";

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
