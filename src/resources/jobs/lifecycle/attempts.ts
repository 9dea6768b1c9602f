import { eq, sql } from "drizzle-orm";
import type { Db } from "../../../../storage/db/open.ts";
import { assets, type JobRow, transcodingAttempts } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { sha256 } from "../../../lib/tokens.ts";
import type { Lease } from "../contract.ts";
import { type Leased, leaseMs, leaseToken } from "../lease.ts";
import { applyTransition, type Changed } from "./apply.ts";

/** Leases a queued job to a new attempt. `key` is the claim's idempotency key, to which the lease's token is bound. */
export async function startAttempt(
  tx: Db,
  app: App,
  job: JobRow,
  { key, workerId }: { key: string; workerId: string | null },
): Promise<Changed & { lease: Lease }> {
  const now = app.clock.now();
  const attempt = await tx
    .insert(transcodingAttempts)
    .values({
      jobId: job.id,
      attempt: job.failures + 1,
      idempotencyKey: key,
      leaseHash: "",
      workerId,
      startedAt: now,
    })
    .returning()
    .get();
  const token = leaseToken(app, job.id, attempt.id, key);
  await tx
    .update(transcodingAttempts)
    .set({ leaseHash: sha256(token) })
    .where(eq(transcodingAttempts.id, attempt.id));
  const expiresAt = now + leaseMs(app);
  const shown = { progress: 0, stage: "leased" };
  const changed = await applyTransition(
    tx,
    app,
    "start",
    { assetId: job.assetId, jobId: job.id },
    {
      job: {
        ...shown,
        attemptId: attempt.id,
        workerId,
        position: 0,
        progressedAt: now,
        startedAt: now,
        leaseExpiresAt: expiresAt,
      },
      asset: shown,
    },
  );
  return { ...changed, lease: { token, attemptId: attempt.id, expiresAt } };
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
  const position = beat.progress ?? job.position;
  const hasProgressed = position !== job.position || (beat.stage !== undefined && beat.stage !== job.stage);
  const shown = {
    progress: beat.progress === undefined ? job.progress : Math.round(beat.progress),
    stage: beat.stage ?? job.stage,
  };
  const renewed = {
    ...shown,
    position,
    ...(hasProgressed && { progressedAt: now }),
    workerId: beat.workerId ?? job.workerId,
    leaseExpiresAt: now + leaseMs(app),
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
const backoffMs = (failures: number) => (failures <= 1 ? 0 : Math.min(600_000, 5000 * 2 ** (failures - 2)));

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
  errorCode: code,
  errorMessage: message,
});

export const endAttempt = (
  tx: Db,
  app: App,
  attemptId: number,
  outcome: "completed" | Fault["outcome"] | "released" | "canceled",
  resultHash: string | null = null,
) =>
  tx
    .update(transcodingAttempts)
    .set({ outcome, resultHash, endedAt: app.clock.now() })
    .where(eq(transcodingAttempts.id, attemptId));
