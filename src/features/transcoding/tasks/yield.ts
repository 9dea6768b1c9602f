import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type TaskRow, transcodingTasks } from "#storage/db/schema.ts";
import { isUrgent } from "../service-classes.ts";
import { workerWaker } from "../wake.ts";
import type { LeasedTask } from "./lease.ts";
import { planOf } from "./plan-of.ts";
import { columnsOf, placesOf, rangeOfTask, requestTask } from "./split.ts";
import type { PartResult } from "./written.ts";

/**
 * A chunk of the background takes many seconds. When a viewer requests a segment in the middle of one, its worker is asked to
 * complete it with the segments that it has: the rest is queued again, and the requested segment becomes a task of its own.
 */

/** A viewer waits at most this long for a running chunk: as long as the detour takes. */
const MAX_WAIT_MS = 3500;

const tasks = transcodingTasks;

/** Whether a running chunk reaches a segment so late that its worker should be asked to yield. It is asked once. */
export function shouldYield(task: TaskRow, number: number, now: number): boolean {
  if (task.kind !== "chunk" || task.status !== "running" || task.publishes) return false;
  // Urgent ones are short.
  if (isUrgent(task) || task.yieldTo !== null) return false;
  const from = task.firstSegment ?? 0;
  const wanted = number + 1 - from;
  // The last chunk ends with the source; it is as long as the others.
  const length = Math.max(task.segments ?? wanted, wanted);
  const done = (length * task.progress) / 100;
  const elapsed = now - (task.startedAt ?? now);
  // At the speed so far. Before there is any progress, next to nothing is lost.
  return done === 0 || ((wanted - done) * elapsed) / done > MAX_WAIT_MS;
}

/** The result has the first segments of the chunk only: the rest of it becomes another task. Returns the shortened one. */
export async function shorten(
  tx: Db,
  app: App,
  leased: LeasedTask,
  { written, isPartial }: PartResult,
): Promise<LeasedTask> {
  const { task } = leased;
  const plan = isPartial && task.kind === "chunk" ? await planOf(tx, task.attemptId) : null;
  const count = written[0]?.segments.length ?? 0;
  const { from, to, renditions } = rangeOfTask(task);
  // What does not fit fails the check of the result.
  if (!plan || count === 0 || (to !== null && from + count >= to)) return leased;
  const whole = (to ?? plan.early?.segments ?? from + count + 1) - from;
  const share = Math.min(1, count / whole);
  const now = app.clock.now();
  const shortened = await tx
    .update(tasks)
    .set({ ...columnsOf(plan, { from, to: from + count, renditions }, task.number), weight: task.weight * share })
    .where(eq(tasks.id, task.id))
    .returning()
    .get();
  const { tenantId, jobId, attemptId, kind, priority, queuePosition, serviceClass, rank, requires, maxAttempts } = task;
  const rest = await tx
    .insert(tasks)
    .values({
      tenantId,
      jobId,
      attemptId,
      kind,
      priority,
      queuePosition,
      serviceClass,
      rank,
      requires,
      maxAttempts,
      ...columnsOf(plan, { from: from + count, to, renditions }, await placesOf(tx, task)),
      status: "queued",
      weight: task.weight * (1 - share),
      availableAt: now,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  afterCommit(tx, workerWaker(app));
  await requestRest(tx, app, { ...rest, attemptId }, task.yieldTo);
  return { ...leased, task: { ...shortened, attemptId } };
}

/** The segment `ref` that a worker was asked for is encoded next. `queued`: the task that contains what the worker has not done. */
export async function requestRest(tx: Db, app: App, queued: TaskRow, ref: TaskRow["yieldTo"]): Promise<void> {
  if (!ref) return;
  const plan = await planOf(tx, queued.attemptId);
  const { from, to } = rangeOfTask(queued);
  if (!plan?.early || ref.number < from || (to !== null && ref.number >= to)) return;
  await requestTask(tx, app, queued, { plan, ref });
}
