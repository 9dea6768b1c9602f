import { mkdir } from "node:fs/promises";
import { parsePlan } from "#media/parallel/stored-plan.ts";
import type { TaskResult } from "#protocol/worker-client.ts";
import type { JobContext } from "../context.ts";
import { transcode, type Workspace } from "../transcode-job.ts";
import { audioTask } from "./audio-task.ts";
import { chunkTask } from "./chunk-task.ts";
import { imagesTask } from "./images-task.ts";
import { planTask } from "./plan-task.ts";
import type { TaskContract } from "./task-run.ts";

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
      return chunkTask(running, parsePlan(job.task.plan));
    case "audio":
      return audioTask(running, parsePlan(job.task.plan));
    case "images":
      return imagesTask(running, parsePlan(job.task.plan));
    case "whole":
      return transcode(job, context, workspace);
  }
}
