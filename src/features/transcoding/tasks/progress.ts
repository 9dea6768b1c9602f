import type * as v from "valibot";
import type { App } from "#app.ts";
import type { Heartbeat } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import type { JobRow, TaskRow } from "#storage/db/schema.ts";
import { leaseEnd } from "../lease.ts";
import { applyTransition } from "../lifecycle/apply.ts";
import { isProgress } from "../lifecycle/attempts.ts";
import { noteWorker } from "../workers.ts";
import { liveTask, type TaskRef, taskOfToken } from "./lease.ts";
import { applyTask } from "./lifecycle.ts";

type Changes = { stage?: string | undefined; logTail?: string | null | undefined; attemptId?: number };

/** How much of its job a task has done, of 100. */
export const doneOf = ({ weight, progress }: Pick<TaskRow, "weight" | "progress">) => (weight * progress) / 100;

/**
 * Adds `delta` to the progress of a job, of 100. What is shown of it never decreases within an attempt of the job, also
 * when a task starts again.
 */
export async function moveJob(tx: Db, app: App, job: JobRow, delta: number, changes: Changes = {}): Promise<JobRow> {
  const before = job.position ?? 0;
  const position = Math.min(100, Math.max(0, before + delta));
  const { stage = job.stage, logTail, attemptId } = changes;
  if (position === before && stage === job.stage && logTail === undefined && attemptId === undefined) return job;
  const shown = { progress: Math.max(job.progress, Math.round(position)), stage };
  const columns = {
    ...shown,
    position,
    progressedAt: app.clock.now(),
    ...(logTail !== undefined && { logTail }),
    ...(attemptId !== undefined && { attemptId }),
  };
  const subject = { assetId: job.assetId, jobId: job.id };
  return (await applyTransition(tx, app, "progress", subject, { job: columns, asset: shown })).job;
}

/**
 * Renews the lease of a task, and adds its progress to that of the job. The former lease holder of a canceled task
 * receives the task as it is. Throws 404, 409.
 */
export async function heartbeatTask(
  app: App,
  ref: TaskRef,
  { progress: reported, stage, worker_id: workerId, log_tail: logTail }: v.InferOutput<typeof Heartbeat>,
): Promise<TaskRow> {
  await noteWorker(app, workerId);
  return app.write(async (tx) => {
    const last = await taskOfToken(tx, ref);
    if (last.task.status === "canceled" && last.lease.outcome === "canceled") return last.task;
    const { job, task } = await liveTask(tx, app, ref);
    const now = app.clock.now();
    const progress = Math.max(reported ?? 0, task.progress);
    const hasProgressed = isProgress(progress, task.progress);
    const renewed = await applyTask(tx, app, "progress", task.id, {
      progress,
      ...(stage !== undefined && { stage }),
      ...(hasProgressed && { progressedAt: now }),
      ...(workerId !== undefined && { workerId }),
      ...(logTail !== undefined && { logTail }),
      leaseExpiresAt: leaseEnd(app),
    });
    // It is the only task that runs: what it reports is what the job does.
    const changes = task.kind === "whole" ? { stage, logTail } : {};
    await moveJob(tx, app, job, doneOf(renewed) - doneOf(task), changes);
    return renewed;
  });
}
