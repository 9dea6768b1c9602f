import type { Db } from "../../../../storage/db/open.ts";
import type { JobRow, TaskRow } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { newKeyName } from "../../../lib/object-keys.ts";
import { attemptById } from "../lease.ts";
import { backoffMs, endAttempt, type Fault, failAttempt, newAttempt } from "../lifecycle/attempts.ts";
import { PLANNED, WHOLE_TASK } from "./chunks.ts";
import type { LeasedTask } from "./lease.ts";
import { applyTask, createTasks, endLease } from "./lifecycle.ts";
import { doneOf, moveJob } from "./progress.ts";

/** Failures of a part that an encode in one run would repeat. */
const OF_THE_SOURCE: ReadonlySet<string> = new Set(["source_corrupt", "caption_failed"]);

/** The code of a chunk that does not have exactly the frames of its range. */
export const INEXACT = "inexact";

type Failed = Pick<LeasedTask, "job" | "task">;

/**
 * Ends a failed run of a task. It is queued again without an event or, when no attempt of it is left, the attempt of the
 * job fails with the same fault. A chunk that cannot be encoded exactly, or a part that fails for good, is encoded with
 * all others in one run instead.
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
  const isPart = task.kind === "chunk" || task.kind === "audio";
  const isUncuttable = isPart && (fault.code === INEXACT || (!fault.retryable && !OF_THE_SOURCE.has(fault.code)));
  if (!isUncuttable && fault.retryable && failures < task.maxAttempts) {
    await applyTask(tx, app, "requeue", task.id, { ...failed, stage: null, availableAt: now + backoffMs(failures) });
    return moveJob(tx, app, job, -doneOf(task), { logTail: fault.logTail });
  }
  await applyTask(tx, app, "fail", task.id, { ...failed, finishedAt: now });
  return isUncuttable ? fallBack(tx, app, job, task) : failAttempt(tx, app, { job, attempt: { id: task.attemptId } }, fault);
}

/** The worker returns the task, because it stops. Not counted as an attempt of it. */
export async function releaseTask(tx: Db, app: App, { job, task }: Failed): Promise<JobRow> {
  await endLease(tx, app, task.leaseId ?? -1, "released");
  const released = { progress: 0, stage: null, leaseExpiresAt: null, workerId: null, availableAt: app.clock.now() };
  await applyTask(tx, app, "requeue", task.id, released);
  return moveJob(tx, app, job, -doneOf(task));
}

/**
 * Replaces all tasks by one that encodes the source in one run. It continues the attempt of the job, without an event,
 * but writes under a prefix of its own: workers that do not know yet that their chunks are canceled would overwrite its
 * segments.
 */
async function fallBack(tx: Db, app: App, job: JobRow, { attemptId, turn }: TaskRow): Promise<JobRow> {
  const { plan, workerId } = await attemptById(tx, attemptId);
  await endAttempt(tx, app, attemptId, "released");
  const claimant = { key: `whole ${newKeyName()}`, workerId };
  const attempt = await newAttempt(tx, app, job, claimant, { plan, uncuttable: INEXACT });
  const position = job.position ?? 0;
  const moved = await moveJob(tx, app, job, PLANNED - position, { attemptId: attempt.id, stage: "encoding" });
  await createTasks(tx, app, moved, [WHOLE_TASK], { attemptId: attempt.id, firstTurn: turn, turn });
  return moved;
}
