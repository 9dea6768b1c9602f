import { eq, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { STAGES } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type AttemptRow, assets, type JobRow, transcodingAttempts } from "#storage/db/schema.ts";
import type { Leased } from "../job-lease.ts";
import { type Claimant, type Lease, leaseEnd, leaseHashOf, leaseToken } from "../lease.ts";
import { cancelTasks, deleteTasks } from "../tasks/lifecycle.ts";
import { applyTransition, type Changed } from "./apply.ts";

/** Leases a queued job to a new attempt. */
export async function startAttempt(
  tx: Db,
  app: App,
  job: JobRow,
  claimant: Claimant,
): Promise<Changed & { lease: Lease }> {
  const attempt = await newAttempt(tx, app, job, claimant);
  const { key } = claimant;
  const token = leaseToken(app, "job", { id: job.id, number: attempt.id, key });
  await tx
    .update(transcodingAttempts)
    .set({ leaseHash: leaseHashOf(token) })
    .where(eq(transcodingAttempts.id, attempt.id));
  const expiresAt = leaseEnd(app);
  const changed = await start(tx, app, job, attempt, { stage: "leased", leaseExpiresAt: expiresAt });
  return { ...changed, lease: { token, attemptId: attempt.id, expiresAt } };
}

/**
 * Starts an attempt of a queued job that consists of tasks, which are leased one by one: the job has no lease, and no
 * token is one of the attempt.
 */
export async function startUnleased(
  tx: Db,
  app: App,
  job: JobRow,
  claimant: Claimant,
): Promise<Changed & { attempt: AttemptRow }> {
  const attempt = await newAttempt(tx, app, job, claimant);
  const changed = await start(tx, app, job, attempt, { stage: "planning", leaseExpiresAt: null });
  return { ...changed, attempt };
}

/** Also the attempt that continues another one without being counted, whose key is no claim's. */
export const newAttempt = (
  tx: Db,
  app: App,
  job: JobRow,
  { key, workerId }: Claimant,
  columns: Pick<Partial<AttemptRow>, "plan" | "uncuttable"> = {},
): Promise<AttemptRow> =>
  tx
    .insert(transcodingAttempts)
    .values({
      ...columns,
      jobId: job.id,
      attempt: job.failures + 1,
      idempotencyKey: key,
      leaseHash: "",
      workerId,
      startedAt: app.clock.now(),
    })
    .returning()
    .get();

async function start(
  tx: Db,
  app: App,
  job: JobRow,
  attempt: AttemptRow,
  { stage, leaseExpiresAt }: { stage: string; leaseExpiresAt: number | null },
): Promise<Changed> {
  const now = app.clock.now();
  await deleteTasks(tx, job.id);
  const shown = { progress: 0, stage };
  const started = {
    ...shown,
    attemptId: attempt.id,
    workerId: attempt.workerId,
    position: 0,
    progressedAt: now,
    startedAt: now,
    leaseExpiresAt,
  };
  return applyTransition(tx, app, "start", { assetId: job.assetId, jobId: job.id }, { job: started, asset: shown });
}

/** Whether a position is more than the one before: by a hundredth, so that an attempt cannot make progress without end. */
export const isProgress = (position: number, before: number): boolean =>
  Math.floor(position * 100 + ROUNDING) > Math.floor(before * 100 + ROUNDING);
const ROUNDING = 1e-6;

/** More than the progress of a stage, which is 0 to 100. */
const STAGE = 1000;

/**
 * How far an attempt is: its latest stage, and the progress in it, which may begin at 0 again with each stage. An earlier stage,
 * or one that is not known, is none that was reached.
 */
function reached(
  before: number,
  { progress = 0, stage }: { progress?: number | undefined; stage?: string | undefined },
): number {
  const place = (STAGES as readonly string[]).indexOf(stage ?? "") + 1 || Math.floor(before / STAGE);
  return Math.max(before, place * STAGE + progress);
}

/** Renews the lease; `progress` (0 to 100) and `stage` are shown on the job and its asset. */
export async function recordProgress(
  tx: Db,
  app: App,
  job: JobRow,
  beat: {
    progress?: number | undefined;
    stage?: string | undefined;
    workerId?: string | null | undefined;
    logTail?: string | undefined;
  },
): Promise<JobRow> {
  const now = app.clock.now();
  const position = reached(job.position ?? 0, beat);
  const hasProgressed = isProgress(position, job.position ?? 0);
  const shown = {
    progress: beat.progress === undefined ? job.progress : Math.round(beat.progress),
    stage: beat.stage ?? job.stage,
  };
  const renewed = {
    ...shown,
    position,
    ...(hasProgressed && { progressedAt: now }),
    workerId: beat.workerId ?? job.workerId,
    leaseExpiresAt: leaseEnd(app),
    ...(beat.logTail !== undefined && { logTail: beat.logTail }),
  };
  const subject = { assetId: job.assetId, jobId: job.id };
  return (await applyTransition(tx, app, "progress", subject, { job: renewed, asset: shown })).job;
}

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
export async function failAttempt(tx: Db, app: App, { job, attempt }: Leased, fault: Fault): Promise<JobRow> {
  const now = app.clock.now();
  const failures = job.failures + 1;
  const willRetry = fault.retryable && failures < job.maxAttempts;
  await endAttempt(tx, app, attempt.id, fault.outcome);
  const failed = {
    failures,
    availableAt: now + backoffMs(failures),
    leaseExpiresAt: null,
    progress: 0,
    stage: willRetry ? "queued" : "failed",
    errorCode: fault.code,
    errorMessage: fault.message,
    logTail: fault.logTail,
    finishedAt: willRetry ? null : now,
  };
  const subject = { assetId: job.assetId, jobId: job.id };
  const changed = willRetry
    ? await applyTransition(tx, app, "failAttempt", subject, { job: failed, asset: { progress: 0, stage: "queued" } })
    : await applyTransition(tx, app, "fail", subject, { job: failed, asset: failureOf(fault) });
  return changed.job;
}

/** The worker returns the job, because it stops or something else must be done first. The attempt is not counted. */
export async function releaseAttempt(tx: Db, app: App, { job, attempt }: Leased): Promise<JobRow> {
  await endAttempt(tx, app, attempt.id, "released");
  const shown = { progress: 0, stage: "queued" };
  const released = { ...shown, availableAt: app.clock.now(), leaseExpiresAt: null, workerId: null };
  const subject = { assetId: job.assetId, jobId: job.id };
  return (await applyTransition(tx, app, "release", subject, { job: released, asset: shown })).job;
}

/** Cancels a queued or running job until it is retried. */
export async function cancelAttempt(tx: Db, app: App, job: JobRow): Promise<JobRow> {
  if (job.status === "running" && job.attemptId !== null) await endAttempt(tx, app, job.attemptId, "canceled");
  const canceled = { leaseExpiresAt: null, stage: "canceled", finishedAt: app.clock.now() };
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
  attemptId: number,
  outcome: "completed" | Fault["outcome"] | "released" | "canceled",
  resultHash: string | null = null,
): Promise<void> {
  await tx
    .update(transcodingAttempts)
    .set({ outcome, resultHash, endedAt: app.clock.now() })
    .where(eq(transcodingAttempts.id, attemptId));
  await cancelTasks(tx, app, attemptId);
}
