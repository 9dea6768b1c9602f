import { and, eq, type SQL } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import {
  type JobRow,
  type QueuedRow,
  type TaskLeaseRow,
  type TaskRow,
  taskLeases,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { type Claimant, isHolder, isLeased, type Lease, leaseEnd, leaseHashOf, leaseToken, stale } from "../lease.ts";
import { applyTask, endLease } from "./lifecycle.ts";

/** What a callback names: the task in its path, or null for the one that is known as the job; and the token of its lease. */
export type TaskRef = { jobId: number; taskId: number | null; token: string };
/** A task and its last lease. */
export type LeasedTask = { job: JobRow; task: TaskRow; lease: TaskLeaseRow; attempt: { id: number } };

type Changes = Omit<Parameters<typeof applyTask>[4], "leaseId">;

/** Leases a queued task, with the `columns` that change with it. */
export async function leaseTask(
  tx: Db,
  app: App,
  task: TaskRow,
  { key, workerId }: Claimant,
  columns: Changes = {},
): Promise<{ task: TaskRow; lease: Lease }> {
  const now = app.clock.now();
  const { id } = task;
  const named = { ...task, ...columns };
  // Only the token of a task that is known as one contains the id of the lease.
  const leaseHash = named.knownAsJob ? leaseHashOf(tokenOf(app, named, { leaseId: 0, key })) : "";
  const { id: leaseId } = await tx
    .insert(taskLeases)
    .values({ taskId: id, idempotencyKey: key, leaseHash, workerId, startedAt: now })
    .returning({ id: taskLeases.id })
    .get();
  const token = tokenOf(app, named, { leaseId, key });
  if (!named.knownAsJob)
    await tx
      .update(taskLeases)
      .set({ leaseHash: leaseHashOf(token) })
      .where(eq(taskLeases.id, leaseId));
  const expiresAt = leaseEnd(app);
  const times = { leaseExpiresAt: expiresAt, progressedAt: now, startedAt: now };
  const leased = await applyTask(tx, app, "lease", id, { ...columns, ...times, leaseId, workerId });
  return { task: leased, lease: { token, attemptId: leased.attemptId, expiresAt } };
}

type Named = Pick<QueuedRow, "id" | "jobId" | "attemptId" | "knownAsJob">;
/** The token of a lease of a task. That of one that is known as the job is derived as before jobs consisted of tasks. */
export const tokenOf = (
  app: App,
  { id, jobId, attemptId, knownAsJob }: Named,
  { leaseId, key }: { leaseId: number; key: string },
): string =>
  knownAsJob
    ? leaseToken(app, "job", { id: jobId, number: attemptId ?? 0, key })
    : leaseToken(app, "task", { id, number: leaseId, key });

/**
 * The task of a token, in any state. Throws 404 for no such job, 409 for another's token and for a task of an attempt
 * whose tasks were deleted.
 */
export async function taskOfToken(db: Db, { jobId, taskId, token }: TaskRef): Promise<LeasedTask> {
  const job = (await db.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get()) ?? notFound("job");
  const found = await leasedWhere(
    db,
    taskId === null
      ? and(eq(transcodingTasks.attemptId, job.attemptId ?? -1), eq(transcodingTasks.knownAsJob, true))
      : and(eq(transcodingTasks.id, taskId), eq(transcodingTasks.knownAsJob, false)),
  );
  return found?.task.jobId === jobId && isHolder(found.lease.leaseHash, token) ? { job, ...found } : stale();
}

/** A task by a condition, and its last lease. */
export async function leasedWhere(db: Db, where: SQL | undefined): Promise<Omit<LeasedTask, "job"> | undefined> {
  const found = await db
    .select({ task: transcodingTasks, lease: taskLeases })
    .from(transcodingTasks)
    // Either is found by the other: an index of the last leases would not be used for anything else.
    .innerJoin(taskLeases, and(eq(taskLeases.id, transcodingTasks.leaseId), eq(taskLeases.taskId, transcodingTasks.id)))
    .where(where)
    .get();
  return found && { ...found, task: found.task as TaskRow, attempt: { id: found.task.attemptId ?? -1 } };
}

/** The task of a token whose lease is valid. Throws 404, 409. */
export async function liveTask(db: Db, app: App, ref: TaskRef): Promise<LeasedTask> {
  const leased = await taskOfToken(db, ref);
  if (isCanceled(leased)) return stale(`The ${ref.taskId === null ? "job" : "task"} was canceled.`);
  return isLiveTask(leased, app.clock.now()) ? leased : stale();
}

/** Whether what was leased has been canceled; a task that is known as the job only with the job. */
export const isCanceled = ({ job, task }: Pick<LeasedTask, "job" | "task">): boolean =>
  task.status === "canceled" && (!task.knownAsJob || job.status === "canceled");

/** Whether the last lease of a task is valid at `now`, and its attempt is the current one of its job. */
export const isLiveTask = ({ task, lease, job }: Omit<LeasedTask, "attempt">, now: number): boolean =>
  task.status === "running" &&
  lease.outcome === null &&
  isLeased(task, now) &&
  job.status === "running" &&
  job.attemptId === task.attemptId;

/** The job, if the holder of the token has completed the task with this result already; else null. Throws 404, 409. */
export async function completedWith(db: Db, ref: TaskRef, resultHash: string): Promise<JobRow | null> {
  const { job, task, lease } = await taskOfToken(db, ref);
  const isCompleted = task.status === "completed" && (!task.knownAsJob || job.status === "completed");
  return isCompleted && lease.resultHash === resultHash ? job : null;
}

/** Completes a task; `resultHash` is that of the request, and `result` what is stored of it. */
export async function finishTask(
  tx: Db,
  app: App,
  task: TaskRow,
  resultHash: string,
  result: unknown = null,
): Promise<TaskRow> {
  await endLease(tx, app, task.leaseId ?? -1, "completed", resultHash);
  const finished = { progress: 100, leaseExpiresAt: null, yieldTo: null, result, finishedAt: app.clock.now() };
  return applyTask(tx, app, "complete", task.id, finished);
}
