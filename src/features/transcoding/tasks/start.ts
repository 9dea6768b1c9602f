import { and, eq, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { TASK_KINDS } from "#model/enums.ts";
import type { Chunk, Task } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import { prepared } from "#storage/db/prepared.ts";
import {
  type AssetRow,
  assets,
  type JobRow,
  type QueuedRow,
  type TaskRow,
  taskLeases,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { type Claimant, type Lease, staleKey } from "../lease.ts";
import { startAttempt } from "../lifecycle/attempts.ts";
import { type Capabilities, isMetBy } from "../requirements.ts";
import { isUrgent } from "../service-classes.ts";
import { leaseTask, liveTask, tokenOf } from "./lease.ts";
import { planOf } from "./plan-of.ts";
import { allWritten } from "./written.ts";

export type ClaimedTask = { job: JobRow; asset: AssetRow; lease: Lease; task: TaskRow };

/**
 * Leases a queued task. One that no worker has begun becomes an attempt of its job: it is planned where its parts can then be
 * encoded in parallel, and by a worker that takes them; any other worker encodes all of it, and knows it as the job.
 */
export async function claimTask(
  tx: Db,
  app: App,
  id: number,
  { capabilities, isParallel, ...claimant }: Claimant & { capabilities: Capabilities; isParallel: boolean },
): Promise<ClaimedTask> {
  const task = (await taskById(tx).get({ id })) as QueuedRow;
  const { attemptId } = task;
  if (attemptId !== null)
    return { ...(await runningOf(tx, task)), ...(await leaseTask(tx, app, { ...task, attemptId }, claimant)) };
  const job = (await jobById(tx).get({ id: task.jobId })) as JobRow;
  const isPlanned = isParallel && job.partsRequire !== null && isMetBy(job.partsRequire, capabilities);
  return startAttempt(tx, app, { job, task, isPlanned }, claimant);
}

const isId = (column: SQLiteColumn) => eq(column, sql.placeholder("id"));
const taskById = prepared((db) => db.select().from(transcodingTasks).where(isId(transcodingTasks.id)).prepare());
const jobById = prepared((db) => db.select().from(transcodingJobs).where(isId(transcodingJobs.id)).prepare());

/** What this key has claimed, while that lease is valid; null for a key that has claimed nothing. Throws 409. */
export async function claimedTask(tx: Db, app: App, key: string): Promise<ClaimedTask | null> {
  const claimed = await tx
    .select({
      leaseId: taskLeases.id,
      id: transcodingTasks.id,
      jobId: transcodingTasks.jobId,
      attemptId: transcodingTasks.attemptId,
      knownAsJob: transcodingTasks.knownAsJob,
    })
    .from(taskLeases)
    .innerJoin(transcodingTasks, eq(transcodingTasks.id, taskLeases.taskId))
    .where(eq(taskLeases.idempotencyKey, key))
    .get();
  if (!claimed) return null;
  const { id, jobId, knownAsJob, leaseId } = claimed;
  const token = tokenOf(app, claimed, { leaseId, key });
  const { task } = await liveTask(tx, app, { jobId, taskId: knownAsJob ? null : id, token }).catch((error) => {
    if (error instanceof HttpError) return staleKey();
    throw error;
  });
  const lease = { token, attemptId: task.attemptId, expiresAt: task.leaseExpiresAt ?? 0 };
  return { ...(await runningOf(tx, task)), lease, task };
}

async function runningOf(tx: Db, { jobId }: QueuedRow): Promise<{ job: JobRow; asset: AssetRow }> {
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
  const { id, attemptId } = task;
  const kind = TASK_KINDS.find((each) => each === task.kind);
  if (!kind) throw new Error(`Task ${id} is a ${task.kind}, which workers know as a job only`);
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
