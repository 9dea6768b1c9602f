import type * as v from "valibot";
import type { App } from "#app.ts";
import { type Heartbeat, STAGES } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import type { JobRow, TaskRow } from "#storage/db/schema.ts";
import { leaseEnd } from "../lease.ts";
import { applyTransition } from "../lifecycle/apply.ts";
import { type StoreReceipt, storeNoReceipt } from "../receipts.ts";
import { noteWorker } from "../workers.ts";
import { isCanceled, liveTask, type TaskRef, taskOfToken } from "./lease.ts";
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
    ...(logTail !== undefined && { logTail }),
    ...(attemptId !== undefined && { attemptId }),
  };
  const subject = { assetId: job.assetId, jobId: job.id };
  return (await applyTransition(tx, app, "progress", subject, { job: columns, asset: shown })).job;
}

/** Whether a position is more than the one before: by a hundredth, so that an attempt cannot make progress without end. */
const isProgress = (position: number, before: number): boolean =>
  Math.floor(position * 100 + ROUNDING) > Math.floor(before * 100 + ROUNDING);
const ROUNDING = 1e-6;

/** More than the progress of a stage, which is 0 to 100. */
const STAGE = 1000;

type Beat = v.InferOutput<typeof Heartbeat>;

/**
 * How far a task is that is known as the job: its latest stage, and the progress in it, which may begin at 0 again with each
 * stage. An earlier stage, or one that is not known, is none that was reached.
 */
function reached(before: number, { progress = 0, stage }: Beat): number {
  const place = (STAGES as readonly string[]).indexOf(stage ?? "") + 1 || Math.floor(before / STAGE);
  return Math.max(before, place * STAGE + progress);
}

/**
 * Renews the lease of a task, and adds its progress to that of the job. The former lease holder of a canceled task
 * receives the task as it is. Throws 404, 409.
 */
export async function heartbeatTask(
  app: App,
  ref: TaskRef,
  beat: Beat,
  receipt: StoreReceipt<TaskRow> = storeNoReceipt,
): Promise<TaskRow> {
  await noteWorker(app, beat.worker_id);
  return app.write(async (tx) => {
    const last = await taskOfToken(tx, ref);
    if (isCanceled(last) && last.lease.outcome === "canceled") return receipt(tx, last.task);
    const { job, task } = await liveTask(tx, app, ref);
    return receipt(tx, await (task.knownAsJob ? moveAsJob : moveTask)(tx, app, { job, task }, beat));
  });
}

type Moved = { job: JobRow; task: TaskRow };

async function moveTask(
  tx: Db,
  app: App,
  { job, task }: Moved,
  { progress: reported, stage, worker_id: workerId, log_tail: logTail }: Beat,
): Promise<TaskRow> {
  const progress = Math.max(reported ?? 0, task.progress);
  const renewed = await applyTask(tx, app, "progress", task.id, {
    progress,
    ...(stage !== undefined && { stage }),
    ...(isProgress(progress, task.progress) && { progressedAt: app.clock.now() }),
    ...(workerId !== undefined && { workerId }),
    ...(logTail !== undefined && { logTail }),
    leaseExpiresAt: leaseEnd(app),
  });
  // It is the only task that runs: what it reports is what the job does.
  const changes = task.kind === "whole" ? { stage, logTail } : {};
  await moveJob(tx, app, job, doneOf(renewed) - doneOf(task), changes);
  return renewed;
}

/** What the worker reports is shown on the job and its asset as it is. */
async function moveAsJob(
  tx: Db,
  app: App,
  { job, task }: Moved,
  { progress, stage, worker_id, log_tail: logTail, ...beat }: Beat,
): Promise<TaskRow> {
  const place = reached(task.reached, { ...beat, progress, stage });
  const workerId = worker_id ?? task.workerId;
  const shown = {
    progress: progress === undefined ? job.progress : Math.round(progress),
    stage: stage ?? job.stage,
  };
  const columns = { ...shown, workerId, ...(logTail !== undefined && { logTail }) };
  const subject = { assetId: job.assetId, jobId: job.id };
  await applyTransition(tx, app, "progress", subject, { job: columns, asset: shown });
  return applyTask(tx, app, "progress", task.id, {
    ...shown,
    workerId,
    reached: place,
    ...(isProgress(place, task.reached) && { progressedAt: app.clock.now() }),
    leaseExpiresAt: leaseEnd(app),
  });
}
