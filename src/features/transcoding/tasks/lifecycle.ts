import { and, desc, eq, inArray, isNotNull, isNull, ne, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Chunk, TaskKind } from "#protocol/task.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type JobRow, type QueuedRow, type TaskRow, taskLeases, transcodingTasks } from "#storage/db/schema.ts";
import { requirementsOf, requirementsOfTask } from "../requirements.ts";
import type { ServiceClass } from "../service-classes.ts";
import { workerWaker } from "../wake.ts";
import { TASK_TRANSITIONS, type TaskTransitionName } from "./transitions.ts";

/** Conditions as literals: SQLite uses no partial index for a status that is a parameter, but reads all tasks. */
export const IS_QUEUED = sql`${transcodingTasks.status} = 'queued'`;
export const IS_RUNNING = sql`${transcodingTasks.status} = 'running'`;

type Columns = Omit<Partial<typeof transcodingTasks.$inferInsert>, "status">;
export type TaskDraft = {
  kind: TaskKind;
  chunk?: Chunk;
  weight: number;
  serviceClass?: ServiceClass;
  /** Order among the tasks of the job. */
  rank?: number;
  publishes?: boolean;
};
type Outcome = NonNullable<(typeof taskLeases.$inferSelect)["outcome"]>;

/** A bug: the caller checks the lease before it applies a transition. */
export class IllegalTaskTransition extends Error {
  constructor(name: TaskTransitionName, id: number) {
    super(`"${name}" is not a legal transition for task ${id}`);
    this.name = "IllegalTaskTransition";
  }
}

/**
 * Changes the status of a task in the caller's transaction, and wakes workers after the commit when it is queued. Throws
 * IllegalTaskTransition, which rolls the transaction back.
 */
export async function applyTask(
  tx: Db,
  app: App,
  name: TaskTransitionName,
  id: number,
  columns: Columns = {},
): Promise<TaskRow> {
  const { from, to } = TASK_TRANSITIONS[name];
  const task = await tx
    .update(transcodingTasks)
    .set({ ...columns, status: to, updatedAt: app.clock.now() })
    .where(and(eq(transcodingTasks.id, id), inArray(transcodingTasks.status, [...from])))
    .returning()
    .get();
  if (!task) throw new IllegalTaskTransition(name, id);
  if (task.status === "queued") afterCommit(tx, workerWaker(app));
  return task as TaskRow;
}

/** Queues a job as the one task that it consists of until a worker begins it, in the fair queue at `queuePosition`. */
export async function queueTask(
  tx: Db,
  app: App,
  job: JobRow,
  { queuePosition, availableAt }: Pick<QueuedRow, "queuePosition" | "availableAt">,
): Promise<void> {
  const now = app.clock.now();
  const kind: TaskRow["kind"] = job.clip ? "clip" : job.joined ? "join" : "whole";
  const { requires } = requirementsOf(job);
  // As SQL: the builder takes longer for the columns that have their defaults than SQLite for the row.
  await tx.run(sql`insert into transcoding_tasks (tenant_id, job_id, kind, plans_early, status, priority, queue_position, available_at,
      requires, weight, max_attempts, created_at, updated_at)
    values (${job.tenantId}, ${job.id}, ${kind}, ${job.earlyPlayback ? 1 : 0}, 'queued', ${job.priority}, ${queuePosition}, ${availableAt},
      ${requires && JSON.stringify(requires)}, 100, ${job.maxAttempts}, ${now}, ${now})`);
  afterCommit(tx, workerWaker(app));
}

/** Those that attempts of jobs began with. */
const BEGAN = sql`(${transcodingTasks.knownAsJob} = 1 or ${transcodingTasks.kind} = 'plan')`;

/** The place in the fair queue of the attempt of a job that began last. */
export async function positionOf(tx: Db, jobId: number): Promise<number> {
  const began = await tx
    .select({ queuePosition: transcodingTasks.queuePosition })
    .from(transcodingTasks)
    .where(and(eq(transcodingTasks.jobId, jobId), BEGAN))
    .orderBy(desc(transcodingTasks.id))
    .limit(1)
    .get();
  return began?.queuePosition ?? 0;
}

/** Rows of one statement, so that its JSON stays small. */
const BATCH = 200;

/**
 * Creates tasks of an attempt. They are queued in their order behind the tenant's last, from `position` on, but the first
 * takes `firstPosition`, that of the task that it continues; `images` waits for the others.
 */
export async function createTasks(
  tx: Db,
  app: App,
  job: JobRow,
  drafts: readonly TaskDraft[],
  { attemptId, firstPosition, position }: { attemptId: number; firstPosition: number; position: number },
): Promise<void> {
  const now = app.clock.now();
  const requiresOf = (kind: TaskKind) => {
    const requires = requirementsOfTask(job, kind);
    return requires && JSON.stringify(requires);
  };
  const rows = drafts.map(({ kind, chunk, weight, serviceClass = "normal", rank = 0, publishes = false }, index) => [
    kind,
    chunk?.number ?? 0,
    chunk?.first_segment ?? null,
    chunk?.segments ?? null,
    chunk?.first_frame ?? null,
    chunk?.end_frame ?? null,
    kind === "images" ? "waiting" : "queued",
    index === 0 ? firstPosition : position + index - 1,
    weight,
    serviceClass,
    rank,
    publishes ? 1 : 0,
    chunk?.renditions ? JSON.stringify(chunk.renditions) : null,
    requiresOf(kind),
  ]);
  for (let from = 0; from < rows.length; from += BATCH) {
    const batch = JSON.stringify(rows.slice(from, from + BATCH));
    const columns = Array.from({ length: rows[0]?.length ?? 0 }, (_, index) =>
      sql.raw(`json_extract(each.value, '$[${index}]')`),
    );
    await tx.run(sql`insert into transcoding_tasks (kind, number, first_segment, segments, first_frame, end_frame, status,
        queue_position, weight, service_class, rank, publishes, renditions, requires, tenant_id, job_id, attempt_id, priority, available_at, max_attempts, created_at, updated_at)
      select ${sql.join(columns, sql`, `)}, ${job.tenantId}, ${job.id}, ${attemptId}, ${job.priority}, ${now},
        ${job.maxAttempts}, ${now}, ${now}
      from json_each(${batch}) as each order by each.key`);
  }
  afterCommit(tx, workerWaker(app));
}

/** Cancels all tasks of a job that have not ended, and forgets what the others have written. */
export async function cancelTasks(tx: Db, app: App, jobId: number): Promise<void> {
  const now = app.clock.now();
  const { from, to } = TASK_TRANSITIONS.cancel;
  const tasks = transcodingTasks;
  const unfinished = and(eq(tasks.jobId, jobId), inArray(tasks.status, [...from]));
  const ids = tx.select({ id: tasks.id }).from(tasks).where(unfinished);
  await tx
    .update(taskLeases)
    .set({ outcome: "canceled", endedAt: now })
    .where(and(inArray(taskLeases.taskId, ids), isNull(taskLeases.outcome)));
  await tx.update(tasks).set({ status: to, leaseExpiresAt: null, finishedAt: now, updatedAt: now }).where(unfinished);
  await tx
    .update(tasks)
    .set({ result: null })
    .where(and(eq(tasks.jobId, jobId), isNotNull(tasks.result)));
}

/**
 * Deletes the tasks of all earlier attempts of a job, when another one starts with the task `id`. Those that they began with stay:
 * a claim with one of their keys is stale, and callbacks that name their attempt are answered from its receipts.
 */
export const deleteTasks = (tx: Db, jobId: number, id: number) =>
  tx
    .delete(transcodingTasks)
    .where(and(eq(transcodingTasks.jobId, jobId), ne(transcodingTasks.id, id), sql`not ${BEGAN}`));

/** Ends the lease of a task; `resultHash` is that of the body of `complete`. */
export const endLease = (tx: Db, app: App, leaseId: number, outcome: Outcome, resultHash: string | null = null) =>
  tx.update(taskLeases).set({ outcome, resultHash, endedAt: app.clock.now() }).where(eq(taskLeases.id, leaseId));
