import { and, eq, ne } from "drizzle-orm";
import type { App } from "#app.ts";
import { MAX_FRAME_RATE, type PlanResult } from "#protocol/task.ts";
import type { Db } from "#storage/db/open.ts";
import { type JobRow, transcodingAttempts } from "#storage/db/schema.ts";
import { incomplete } from "../captions.ts";
import { keepTitle } from "../encoding-profile.ts";
import { queuePositionFor } from "../fair-queue.ts";
import { wantedCaptions } from "../source-upload.ts";
import { partsOf, WHOLE_TASK, whyUncut } from "./chunks.ts";
import { earlyPartsOf } from "./early-parts.ts";
import { INEXACT } from "./fail.ts";
import type { LeasedTask } from "./lease.ts";
import { createTasks } from "./lifecycle.ts";

/** It is sent with every task. */
const MAX_PLAN_CHARS = 128 * 1024;
/** Why there are no captions. */
export const NO_AUDIO = "The source has no audio.";

/** The plan that a task reports. Throws 422 `invalid_transcoding_result`. */
export function checkedPlan(plan: PlanResult | null | undefined): PlanResult {
  if (!plan) return incomplete("plan", "is required");
  if (JSON.stringify(plan.plan).length > MAX_PLAN_CHARS)
    return incomplete("plan.plan", `must have at most ${MAX_PLAN_CHARS} characters as JSON`);
  const rate = plan.frame_rate;
  if (rate && rate.num / rate.den > MAX_FRAME_RATE)
    return incomplete("plan.frame_rate", `must be at most ${MAX_FRAME_RATE} per second`);
  const frames = plan.segment_frames;
  if (frames?.some((frame, at) => (at === 0 ? frame !== 0 : frame <= (frames[at - 1] as number))))
    return incomplete("plan.segment_frames", "must ascend from 0");
  return plan;
}

/** Stores the plan of an attempt, and creates the tasks that follow from it: many parts, or one that is the whole. */
export async function storePlan(tx: Db, app: App, { job, task }: LeasedTask, plan: PlanResult): Promise<void> {
  const now = app.clock.now();
  const { attemptId } = task;
  const { chunk_seconds: chunkSeconds, parallel } = app.config;
  // Without the segments that it will have, it cannot be listed before it is encoded.
  const isEarly = job.earlyPlayback && Boolean(plan.early);
  const uncuttable = whyUncut(plan, {
    chunkSeconds,
    isParallel: parallel === "auto",
    isEarly,
    wasInexact: await wasInexact(tx, job, attemptId),
  });
  if (plan.title) await keepTitle(tx, job, plan.title);
  await tx.update(transcodingAttempts).set({ plan, uncuttable }).where(eq(transcodingAttempts.id, attemptId));
  const partsFor = isEarly ? earlyPartsOf : partsOf;
  const drafts = uncuttable === null ? partsFor(plan, chunkSeconds) : [WHOLE_TASK];
  // The plan itself takes no time: what follows has its position in the queue.
  const position = await queuePositionFor(tx, job.tenantId, now);
  await createTasks(tx, app, job, drafts, { attemptId, firstPosition: task.queuePosition, position });
}

/** Whether an earlier attempt of the job found that its chunks are not exact. */
async function wasInexact(tx: Db, job: JobRow, attemptId: number): Promise<boolean> {
  const earlier = await tx
    .select({ id: transcodingAttempts.id })
    .from(transcodingAttempts)
    .where(
      and(
        eq(transcodingAttempts.jobId, job.id),
        ne(transcodingAttempts.id, attemptId),
        eq(transcodingAttempts.uncuttable, INEXACT),
      ),
    )
    .limit(1)
    .get();
  return earlier !== undefined;
}

/** Captions are requested of the audio task; without one, this is why there are none. */
export async function captionsWithoutAudio(
  db: Db,
  job: JobRow,
): Promise<{ required: boolean; errors: Record<string, string> }> {
  const { languages, required } = await wantedCaptions(db, job.assetId);
  return {
    required: required && languages.length > 0,
    errors: Object.fromEntries(languages.map((tag) => [tag, NO_AUDIO])),
  };
}
