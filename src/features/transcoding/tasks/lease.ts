import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import {
  type JobRow,
  type TaskLeaseRow,
  type TaskRow,
  taskLeases,
  transcodingJobs,
  transcodingTasks,
} from "#storage/db/schema.ts";
import { type Claimant, isHolder, isLeased, type Lease, leaseEnd, leaseHashOf, leaseToken, stale } from "../lease.ts";
import { applyTask } from "./lifecycle.ts";

/** What a callback of a task names: its path, and the token of its lease. */
export type TaskRef = { jobId: number; taskId: number; token: string };
/** A task and its last lease. */
export type LeasedTask = { job: JobRow; task: TaskRow; lease: TaskLeaseRow; attempt: { id: number } };

/** Leases a queued task. */
export async function leaseTask(
  tx: Db,
  app: App,
  { id, attemptId }: Pick<TaskRow, "id" | "attemptId">,
  { key, workerId }: Claimant,
): Promise<{ task: TaskRow; lease: Lease }> {
  const now = app.clock.now();
  const lease = await tx
    .insert(taskLeases)
    .values({ taskId: id, idempotencyKey: key, leaseHash: "", workerId, startedAt: now })
    .returning({ id: taskLeases.id })
    .get();
  const token = leaseToken(app, "task", { id, number: lease.id, key });
  await tx
    .update(taskLeases)
    .set({ leaseHash: leaseHashOf(token) })
    .where(eq(taskLeases.id, lease.id));
  const expiresAt = leaseEnd(app);
  const task = await applyTask(tx, app, "lease", id, {
    leaseId: lease.id,
    leaseExpiresAt: expiresAt,
    workerId,
    progressedAt: now,
    startedAt: now,
  });
  return { task, lease: { token, attemptId, expiresAt } };
}

/**
 * The task of a token, in any state. Throws 404 for no such job, 409 for another's token and for a task of an attempt
 * whose tasks were deleted.
 */
export async function taskOfToken(db: Db, { jobId, taskId, token }: TaskRef): Promise<LeasedTask> {
  const job = (await db.select().from(transcodingJobs).where(eq(transcodingJobs.id, jobId)).get()) ?? notFound("job");
  const found = await db
    .select({ task: transcodingTasks, lease: taskLeases })
    .from(transcodingTasks)
    .innerJoin(taskLeases, eq(taskLeases.id, transcodingTasks.leaseId))
    .where(and(eq(transcodingTasks.id, taskId), eq(transcodingTasks.jobId, jobId)))
    .get();
  if (!found || !isHolder(found.lease.leaseHash, token)) return stale();
  return { job, ...found, attempt: { id: found.task.attemptId } };
}

/** The same, with a valid lease. */
export async function liveTask(db: Db, app: App, ref: TaskRef): Promise<LeasedTask> {
  const leased = await taskOfToken(db, ref);
  if (leased.task.status === "canceled") return stale("The task was canceled.");
  return isLiveTask(leased, app.clock.now()) ? leased : stale();
}

/** Whether the last lease of a task is valid at `now`, and its attempt is the current one of its job. */
export const isLiveTask = ({ task, lease, job }: Omit<LeasedTask, "attempt">, now: number): boolean =>
  task.status === "running" &&
  lease.outcome === null &&
  isLeased(task, now) &&
  job.status === "running" &&
  job.attemptId === task.attemptId;
