import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import type { Db } from "#storage/db/open.ts";
import { type AttemptRow, assets, type JobRow, type QueuedRow, transcodingAttempts } from "#storage/db/schema.ts";
import type { Claimant } from "../lease.ts";
import { PLAN_WEIGHT } from "../tasks/chunks.ts";
import { leaseTask } from "../tasks/lease.ts";
import { cancelTasks, deleteTasks, positionOf, queueTask } from "../tasks/lifecycle.ts";
import { applyTransition } from "./apply.ts";

/** A job that runs, and its attempt. */
export type Running = { job: JobRow; attempt: Pick<AttemptRow, "id"> };
type Begun = { job: JobRow; task: QueuedRow; isPlanned: boolean };

/**
 * Starts an attempt of a queued job, with the task that it is. With `isPlanned` that becomes its plan, from which the other
 * tasks follow; otherwise its worker runs all of it, and knows it as the job.
 */
export async function startAttempt(tx: Db, app: App, { job, task, isPlanned }: Begun, claimant: Claimant) {
  const now = app.clock.now();
  const { workerId } = claimant;
  const attemptId = await newAttempt(tx, app, job, { workerId });
  if (job.attemptId !== null) await deleteTasks(tx, job.id, task.id);
  const begun = { attemptId, plansEarly: false };
  const columns = isPlanned
    ? { ...begun, kind: "plan" as const, requires: null, weight: PLAN_WEIGHT }
    : { ...begun, knownAsJob: true };
  const leased = await leaseTask(tx, app, { ...task, attemptId }, claimant, columns);
  const shown = { progress: 0, stage: isPlanned ? "planning" : "leased" };
  const started = { ...shown, attemptId, workerId, position: 0, startedAt: now };
  const subject = { assetId: job.assetId, jobId: job.id };
  return { ...(await applyTransition(tx, app, "start", subject, { job: started, asset: shown })), ...leased };
}

/** Also the attempt that continues another one without being counted. Its id. */
export const newAttempt = async (
  tx: Db,
  app: App,
  job: JobRow,
  columns: Pick<Partial<AttemptRow>, "workerId" | "plan" | "uncuttable">,
): Promise<number> => {
  const attempt = { ...columns, jobId: job.id, attempt: job.failures + 1, startedAt: app.clock.now() };
  const { id } = transcodingAttempts;
  return (await tx.insert(transcodingAttempts).values(attempt).returning({ id }).get()).id;
};

export type Fault = {
  code: string;
  message: string;
  retryable: boolean;
  logTail: string | null;
  outcome: "failed" | "expired";
};

/** The first retry is immediate; after that the delay increases up to ten minutes. */
export const backoffMs = (failures: number) => (failures <= 1 ? 0 : Math.min(600_000, 5000 * 2 ** (failures - 2)));

/**
 * Ends a failed attempt: the job is queued again or, when no attempt is left or the input is invalid, it and its asset
 * fail. An asset that is playable stays `ready`, whatever made it so (an earlier job, early playback, a batch, its
 * registration): only its `error` shows the failure.
 */
export async function failAttempt(tx: Db, app: App, { job, attempt }: Running, fault: Fault): Promise<JobRow> {
  const now = app.clock.now();
  const failures = job.failures + 1;
  const willRetry = fault.retryable && failures < job.maxAttempts;
  await endAttempt(tx, app, { job, attempt }, fault.outcome);
  const failed = {
    failures,
    progress: 0,
    stage: willRetry ? "queued" : "failed",
    errorCode: fault.code,
    errorMessage: fault.message,
    logTail: fault.logTail,
    finishedAt: willRetry ? null : now,
  };
  const subject = { assetId: job.assetId, jobId: job.id };
  if (!willRetry)
    return (await applyTransition(tx, app, "fail", subject, { job: failed, asset: failureOf(fault) })).job;
  const asset = { progress: 0, stage: "queued" };
  const { job: queued } = await applyTransition(tx, app, "failAttempt", subject, { job: failed, asset });
  await requeue(tx, app, queued, now + backoffMs(failures));
  return queued;
}

/** The worker returns the job, because it stops or something else must be done first. The attempt is not counted. */
export async function releaseAttempt(tx: Db, app: App, { job, attempt }: Running): Promise<JobRow> {
  await endAttempt(tx, app, { job, attempt }, "released");
  const shown = { progress: 0, stage: "queued" };
  const subject = { assetId: job.assetId, jobId: job.id };
  const changes = { job: { ...shown, workerId: null }, asset: shown };
  const { job: queued } = await applyTransition(tx, app, "release", subject, changes);
  await requeue(tx, app, queued, app.clock.now());
  return queued;
}

/** Queues a job for another attempt, in the place of the last one. */
const requeue = async (tx: Db, app: App, job: JobRow, availableAt: number) =>
  queueTask(tx, app, job, { queuePosition: await positionOf(tx, job.id), availableAt });

/** Cancels a queued or running job until it is retried. */
export async function cancelAttempt(tx: Db, app: App, job: JobRow): Promise<JobRow> {
  if (job.status === "running" && job.attemptId !== null)
    await endAttempt(tx, app, { job, attempt: { id: job.attemptId } }, "canceled");
  else await cancelTasks(tx, app, job.id);
  const canceled = { stage: "canceled", finishedAt: app.clock.now() };
  const asset = failureOf({ code: "canceled", message: "The transcoding job was canceled." });
  const subject = { assetId: job.assetId, jobId: job.id };
  return (await applyTransition(tx, app, "cancel", subject, { job: canceled, asset })).job;
}

/** What an asset shows of a failure. */
const failureOf = ({ code, message }: Pick<Fault, "code" | "message">) => ({
  progress: sql<number>`iif(${assets.playbackStatus} = 'ready', 100, 0)`,
  stage: null,
  encoding: sql<"failed" | null>`iif(${assets.encoding} is null, null, 'failed')`,
  errorCode: code,
  errorMessage: message,
});

/** Ends an attempt with all of its tasks. */
export async function endAttempt(
  tx: Db,
  app: App,
  { job, attempt }: Running,
  outcome: "completed" | Fault["outcome"] | "released" | "canceled",
): Promise<void> {
  await tx
    .update(transcodingAttempts)
    .set({ outcome, endedAt: app.clock.now() })
    .where(eq(transcodingAttempts.id, attempt.id));
  await cancelTasks(tx, app, job.id);
}
