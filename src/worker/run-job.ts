import { join } from "node:path";
import { MediaError } from "#media/error.ts";
import { Inexact } from "#media/parallel/inexact.ts";
import { Yielded } from "#media/parallel/yielded.ts";
import type { Failure, WorkerContract } from "#protocol/worker-client.ts";
import { CaptionFailed } from "./captions.ts";
import { cutClip } from "./clip-job.ts";
import type { JobContext } from "./context.ts";
import { inJobSpan } from "./job-span.ts";
import { joinMedia } from "./join-job.ts";
import { LeaseLost, ServerRefused, ServerUnreachable } from "./lease-client.ts";
import { LeaseHeartbeat } from "./lease-heartbeat.ts";
import { SpeechFailed } from "./speech-failed.ts";
import { runTask } from "./tasks/run-task.ts";
import { timeAfterStop } from "./time-after-stop.ts";
import { transcode } from "./transcode-job.ts";
import { transcribeMedia } from "./transcribe-job.ts";
import { removeFolder, SourceCorrupt } from "./transfer.ts";
import { watchSpace } from "./watch-space.ts";

export type JobEnd = "completed" | "failed" | "released" | "canceled" | "lost" | "no_room";

/** The results are about as large as the source, all renditions together. */
const SPACE_PER_SOURCE = 2;

const RESERVE_REACHED = "The disk that the worker writes to has reached its reserve; free space there, then retry.";

/** How long a stopping worker waits for a `complete` that is in progress. */
const COMPLETE_GRACE_MS = 4000;

/** Runs one leased job to its end and reports the result. Never throws for faults of the job or the server. */
export const runJob = (job: WorkerContract, context: JobContext): Promise<JobEnd> =>
  inJobSpan(job, context, () => runLeased(job, context));

async function runLeased(job: WorkerContract, context: JobContext): Promise<JobEnd> {
  const { client, log, signal } = context;
  const { task, clip, join: joined, speech } = job;
  const fields = {
    job_id: job.job.id,
    asset_id: job.job.asset_id,
    attempt: job.job.attempt,
    ...(task && { task_id: task.id, task: task.kind, ...(task.chunk && { chunk: task.chunk.number }) }),
  };
  // Other tasks of the job may write to the same directory.
  const isAlone = !task || task.kind === "whole";
  const needed = (job.source.local_path ? 0 : (job.source.bytes ?? 0)) * SPACE_PER_SOURCE;
  if (!(await context.scratch.hasSpace(needed))) {
    log.warn({ ...fields, bytes: needed }, "Job released: no disk space for its source.");
    await client.release(job).catch(() => {});
    return "no_room";
  }
  const heartbeat = new LeaseHeartbeat(client, job, {
    signal,
    onTrouble: (error) => log.warn({ ...fields, error: String(error) }, "Heartbeat failed."),
    onStage: (stage, tookMs) => log.info({ ...fields, stage, took_ms: Math.round(tookMs) }, "Stage completed."),
    onNews: (stage, progress) => context.onProgress?.({ id: job.job.id, stage, progress }),
  });
  const work = await context.scratch.jobFolder(`job-${job.job.id}`);
  const outDir = job.artifacts.local_path ?? join(work, "out");
  const stopWatching = watchSpace([work, outDir], context.minFreeBytes, () => heartbeat.abandon("full"));
  let isAnnounced = false;
  log.info(fields, "Job started.");
  try {
    const workspace = { heartbeat, work, outDir };
    const completion = await (speech
      ? transcribeMedia({ ...job, speech }, context, workspace)
      : clip
        ? cutClip({ ...job, clip }, context, workspace)
        : joined
          ? joinMedia({ ...job, join: joined }, context, workspace)
          : task
            ? runTask({ ...job, task }, context, workspace)
            : transcode(job, context, workspace));
    // From here on the files may be in use by viewers, even if no response arrives.
    isAnnounced = true;
    // A heartbeat that arrived after it would be answered 409 and look like a lost lease.
    await heartbeat.stop();
    await client.complete(job, completion, timeAfterStop(signal, COMPLETE_GRACE_MS));
    log.info(fields, "Job completed.");
    return "completed";
  } catch (error) {
    await heartbeat.stop();
    if (!isAnnounced && isAlone) await removeFolder(outDir);
    return await reportFailure(
      heartbeat.reason === "full" ? new MediaError("out_of_space", RESERVE_REACHED, true) : error,
    );
  } finally {
    stopWatching();
    await heartbeat.stop();
    await removeFolder(work);
  }

  async function reportFailure(error: unknown): Promise<JobEnd> {
    if (heartbeat.reason === "canceled" || heartbeat.reason === "lost" || error instanceof LeaseLost) {
      const end = heartbeat.reason === "canceled" ? "canceled" : "lost";
      log.warn(fields, end === "canceled" ? "Job canceled." : "Lease lost; the result is discarded.");
      return end;
    }
    try {
      if (signal.aborted || error instanceof Yielded) {
        await client.release(job);
        log.info(fields, "Job released.");
        return "released";
      }
      const failure = toFailure(error);
      log.error({ ...fields, code: failure.code, error: failure.message }, "Job failed.");
      await client.fail(job, failure, signal);
      return "failed";
    } catch (untold) {
      // The lease expires, and the server retries the job.
      log.warn({ ...fields, error: String(untold) }, "The outcome of the job could not be reported to the server.");
      return "lost";
    }
  }
}

function toFailure(error: unknown): Failure {
  if (error instanceof MediaError) {
    return { code: error.code, message: error.message, retryable: error.retryable, log_tail: error.logTail };
  }
  if (error instanceof Inexact) {
    return { code: "inexact", message: error.message, retryable: false, log_tail: "" };
  }
  if (error instanceof CaptionFailed) {
    return { code: "caption_failed", message: error.message, retryable: error.retryable, log_tail: "" };
  }
  if (error instanceof SpeechFailed) {
    return { code: error.code, message: error.message, retryable: error.retryable, log_tail: error.detail };
  }
  if (error instanceof SourceCorrupt) {
    return { code: "source_corrupt", message: error.message, retryable: false, log_tail: "" };
  }
  if ((error as NodeJS.ErrnoException)?.code === "ENOSPC") {
    return { code: "out_of_space", message: "No disk space left for the job.", retryable: true, log_tail: "" };
  }
  if (error instanceof ServerUnreachable || error instanceof ServerRefused) {
    return { code: "transfer_failed", message: error.message, retryable: true, log_tail: "" };
  }
  // Not known to be the source's fault, so another worker may retry.
  return {
    code: "worker_error",
    message: "Unexpected worker error.",
    retryable: true,
    log_tail: String(error),
  };
}
