import { and, eq, inArray, ne, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { attemptPrefix } from "#model/object-keys.ts";
import type { Db } from "#storage/db/open.ts";
import { assets, type JobRow, type TaskRow, transcodingAttempts, transcodingTasks } from "#storage/db/schema.ts";
import { backoffMs, endAttempt, type Fault, failAttempt, newAttempt, releaseAttempt } from "../lifecycle/attempts.ts";
import { PLANNED, WHOLE_TASK } from "./chunks.ts";
import type { LeasedTask } from "./lease.ts";
import { applyTask, createTasks, endLease } from "./lifecycle.ts";
import { doneOf, moveJob } from "./progress.ts";
import { requestRest } from "./yield.ts";

/** Failures of a part that an encode in one run would repeat. */
const OF_THE_SOURCE: ReadonlySet<string> = new Set(["source_corrupt", "caption_failed"]);

/** Tasks that encode a part of the source. */
const PARTS: TaskRow["kind"][] = ["chunk", "audio"];

/** The code of a chunk that does not have exactly the frames of its range. */
export const INEXACT = "inexact";

type Failed = Pick<LeasedTask, "job" | "task">;

/** Tasks that are all that their job consists of at the time: what happens to them happens to the job. */
const isWholeJob = ({ kind, knownAsJob }: TaskRow) => knownAsJob || kind === "plan" || kind === "whole";

/**
 * Ends a failed run of a task. It is queued again without an event or, when no attempt of it is left, the attempt of the
 * job fails with the same fault. A chunk that cannot be encoded exactly, or a part that fails for good, is encoded with
 * all others in one run instead. A plan, and a task that encodes the whole source, are the attempt of the job.
 */
export async function failTask(tx: Db, app: App, { job, task }: Failed, given: Fault): Promise<JobRow> {
  const now = app.clock.now();
  const fault = { ...given, logTail: given.logTail ?? task.logTail };
  const failures = task.failures + 1;
  await endLease(tx, app, task.leaseId ?? -1, fault.outcome);
  const failed = {
    failures,
    progress: 0,
    leaseExpiresAt: null,
    errorCode: fault.code,
    errorMessage: fault.message,
    logTail: fault.logTail,
  };
  const isUncuttable =
    fault.code === INEXACT
      ? !isWholeJob(task)
      : PARTS.includes(task.kind) && !fault.retryable && !OF_THE_SOURCE.has(fault.code);
  if (!isWholeJob(task) && !isUncuttable && fault.retryable && failures < task.maxAttempts) {
    const columns = { ...failed, stage: null, yieldTo: null, availableAt: now + backoffMs(failures) };
    await applyTask(tx, app, "requeue", task.id, columns);
    return moveJob(tx, app, job, -doneOf(task), { logTail: fault.logTail });
  }
  await applyTask(tx, app, "fail", task.id, { ...failed, finishedAt: now });
  return isUncuttable
    ? fallBack(tx, app, job, task)
    : failAttempt(tx, app, { job, attempt: { id: task.attemptId } }, fault);
}

/**
 * The worker returns the task, because it stops or has nothing to yield. Not counted as an attempt of it. While the attempt
 * has nothing to lose, the whole job is queued again: any worker can then start it, also one without support for tasks.
 */
export async function releaseTask(tx: Db, app: App, { job, task }: Failed): Promise<JobRow> {
  await endLease(tx, app, task.leaseId ?? -1, "released");
  if (isWholeJob(task) || !((await hasOthers(tx, task)) || (await isPublished(tx, job, task))))
    return releaseAttempt(tx, app, { job, attempt: { id: task.attemptId } });
  const reset = { workerId: null, progress: 0, stage: null, leaseExpiresAt: null, yieldTo: null };
  const queued = await applyTask(tx, app, "requeue", task.id, { ...reset, availableAt: app.clock.now() });
  await requestRest(tx, app, queued, task.yieldTo);
  return moveJob(tx, app, job, -doneOf(task));
}

/** Whether other tasks of the attempt run, or a part is complete. Audio counts too: its captions may have been paid for. */
async function hasOthers(tx: Db, { id, attemptId }: TaskRow): Promise<boolean> {
  const tasks = transcodingTasks;
  const isCompletePart = and(eq(tasks.status, "completed"), inArray(tasks.kind, PARTS));
  const others = and(eq(tasks.attemptId, attemptId), ne(tasks.id, id), or(eq(tasks.status, "running"), isCompletePart));
  return (await tx.select({ id: tasks.id }).from(tasks).where(others).limit(1).get()) !== undefined;
}

/** Whether viewers play the media of the attempt: the segments that are missing there belong to its tasks. */
async function isPublished(tx: Db, job: JobRow, { attemptId }: TaskRow): Promise<boolean> {
  const asset = await tx
    .select({ mediaPrefix: assets.mediaPrefix })
    .from(assets)
    .where(eq(assets.id, job.assetId))
    .get();
  return asset?.mediaPrefix === attemptPrefix(job, attemptId);
}

/**
 * Replaces all tasks by one that encodes the source in one run. It writes under a prefix of its own: workers that do not
 * know yet that their chunks are canceled would overwrite its segments.
 */
async function fallBack(tx: Db, app: App, job: JobRow, task: TaskRow): Promise<JobRow> {
  await endAttempt(tx, app, { job, attempt: { id: task.attemptId } }, "released");
  const attemptId = await continueAttempt(tx, app, job, task, INEXACT);
  const back = PLANNED - (job.position ?? 0);
  const moved = await moveJob(tx, app, job, back, { attemptId, stage: "encoding" });
  await createTasks(tx, app, moved, [WHOLE_TASK], {
    attemptId,
    firstPosition: task.queuePosition,
    position: task.queuePosition,
  });
  return moved;
}

/**
 * Another row of the attempt of a job, and so another prefix: neither an attempt that counts nor an event. Returns its
 * id.
 */
async function continueAttempt(
  tx: Db,
  app: App,
  job: JobRow,
  { attemptId }: TaskRow,
  reason?: typeof INEXACT,
): Promise<number> {
  const isAttempt = eq(transcodingAttempts.id, attemptId);
  const before = await tx.select().from(transcodingAttempts).where(isAttempt).get();
  if (!before) throw new Error(`A running job references attempt ${attemptId}, which does not exist`);
  const { plan, workerId, uncuttable } = before;
  return newAttempt(tx, app, job, { workerId, plan, uncuttable: reason ?? uncuttable });
}
