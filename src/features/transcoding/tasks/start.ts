import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import type { Chunk, Task } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import {
  type AssetRow,
  assets,
  type JobRow,
  type TaskRow,
  taskLeases,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { type Claimant, type Lease, leaseToken, staleKey } from "../lease.ts";
import { startUnleased } from "../lifecycle/attempts.ts";
import { isUrgent } from "../service-classes.ts";
import { PLAN_TASK } from "./chunks.ts";
import { leaseTask, liveTask } from "./lease.ts";
import { createTasks } from "./lifecycle.ts";
import { planOf } from "./plan-of.ts";
import { allWritten } from "./written.ts";

export type ClaimedTask = { job: JobRow; asset: AssetRow; lease: Lease; task: TaskRow };

/** Starts an attempt of a queued job, and leases the task that plans it. */
export async function startWithPlan(tx: Db, app: App, job: JobRow, claimant: Claimant): Promise<ClaimedTask> {
  const { attempt, ...started } = await startUnleased(tx, app, job, claimant);
  const { queuePosition: position } = job;
  await createTasks(tx, app, started.job, [PLAN_TASK], { attemptId: attempt.id, firstPosition: position, position });
  const plan = (await tx
    .select()
    .from(transcodingTasks)
    .where(eq(transcodingTasks.attemptId, attempt.id))
    .get()) as TaskRow;
  return { ...started, ...(await leaseTask(tx, app, plan, claimant)) };
}

/** Leases a queued task of a job that runs. */
export async function claimTask(tx: Db, app: App, task: TaskRow, claimant: Claimant): Promise<ClaimedTask> {
  return { ...(await jobOf(tx, task)), ...(await leaseTask(tx, app, task, claimant)) };
}

/** What this key has claimed, while that lease is valid; null for a key that has claimed no task. Throws 409. */
export async function claimedTask(tx: Db, app: App, key: string): Promise<ClaimedTask | null> {
  const claimed = await tx
    .select({ leaseId: taskLeases.id, taskId: taskLeases.taskId, jobId: transcodingTasks.jobId })
    .from(taskLeases)
    .innerJoin(transcodingTasks, eq(transcodingTasks.id, taskLeases.taskId))
    .where(eq(taskLeases.idempotencyKey, key))
    .get();
  if (!claimed) return null;
  const token = leaseToken(app, "task", { id: claimed.taskId, number: claimed.leaseId, key });
  const { task } = await liveTask(tx, app, { ...claimed, token }).catch((error) => {
    if (error instanceof HttpError) return staleKey();
    throw error;
  });
  const lease = { token, attemptId: task.attemptId, expiresAt: task.leaseExpiresAt ?? 0 };
  return { ...(await jobOf(tx, task)), lease, task };
}

async function jobOf(tx: Db, { jobId }: TaskRow): Promise<{ job: JobRow; asset: AssetRow }> {
  const found = await tx
    .select({ job: transcodingJobs, asset: assets })
    .from(transcodingJobs)
    .innerJoin(assets, eq(assets.id, transcodingJobs.assetId))
    .where(and(eq(transcodingJobs.id, jobId), eq(transcodingJobs.status, "running")))
    .get();
  if (!found) throw new Error(`Job ${jobId} has tasks but does not run`);
  return found;
}

/** The task as its contract describes it. */
export async function taskOfContract(db: Db, task: TaskRow): Promise<Task> {
  const { id, kind, attemptId } = task;
  const plan = kind === "plan" || kind === "whole" ? null : await planFor(db, attemptId);
  const written = kind === "images" ? await allWritten(db, attemptId) : null;
  return {
    id,
    kind,
    plan,
    chunk: task.firstSegment === null ? null : chunkOf(task),
    publishes: task.publishes,
    written,
  };
}

async function planFor(db: Db, attemptId: number): Promise<Record<string, unknown>> {
  const stored = await planOf(db, attemptId);
  if (!stored) throw new Error(`Attempt ${attemptId} has tasks but no plan`);
  return stored.plan;
}

const chunkOf = ({
  number,
  firstSegment,
  segments,
  firstFrame,
  endFrame,
  renditions,
  serviceClass,
}: TaskRow): Chunk => ({
  number,
  first_segment: firstSegment ?? 0,
  segments,
  first_frame: firstFrame ?? 0,
  end_frame: endFrame,
  renditions,
  is_urgent: isUrgent({ serviceClass }),
});
