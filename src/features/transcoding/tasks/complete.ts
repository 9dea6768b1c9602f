import { and, eq, inArray } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { sha256 } from "#lib/base";
import { attemptPrefix } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { PlanResult } from "#protocol/task.ts";
import type { TaskCompletion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type JobRow, transcodingAttempts, transcodingTasks } from "#storage/db/schema.ts";
import { checkCaptions } from "../captions.ts";
import { complete } from "../complete.ts";
import { leaseLock, nameOfLease } from "../lease-urls.ts";
import { checkSourceTexts } from "../source-texts.ts";
import { wantedCaptions } from "../source-upload.ts";
import { checkSubtitlePaths } from "../verify-artifacts.ts";
import { deferSlow } from "./defer.ts";
import { failTask, INEXACT } from "./fail.ts";
import { completedWith, finishTask, type LeasedTask, liveTask, type TaskRef } from "./lease.ts";
import { applyTask } from "./lifecycle.ts";
import { captionsWithoutAudio, checkedPlan, NO_AUDIO, storePlan } from "./plan.ts";
import { doneOf, moveJob } from "./progress.ts";
import {
  initHash,
  initHashes,
  type PartResult,
  partResult,
  reportedByParts,
  reportsCaptions,
  reportsClosedCaptions,
  whyNotExact,
} from "./written.ts";
import { shorten } from "./yield.ts";

type Completion = v.InferOutput<typeof TaskCompletion>;

/**
 * Completes a task: a plan creates the other tasks, the last part queues `images`, and `images` or `whole` completes the
 * job. A repeat with the same token and body changes nothing. Throws 404, 409, 422 `invalid_transcoding_result`.
 */
export async function completeTask(app: App, ref: TaskRef, result: Completion): Promise<JobRow> {
  const resultHash = sha256(JSON.stringify(result));
  const existing = await completedWith(app.db, ref, resultHash);
  if (existing) return existing;
  const leased = await liveTask(app.db, app, ref);
  const locked = <T>(work: () => Promise<T>) => leaseLock(app).withLock(nameOfLease(leased.task), work);
  switch (leased.task.kind) {
    case "plan":
      return completePlan(app, ref, resultHash, result);
    case "chunk":
    case "audio":
      return locked(async () => completePart(app, ref, resultHash, await checkedPart(app, leased, result)));
    case "whole":
    case "clip":
    case "join":
      return complete(app, ref, result, { resultHash });
    case "images":
      return complete(app, ref, await withPartsOf(app.db, leased, result), { resultHash });
  }
}

async function completePlan(app: App, ref: TaskRef, resultHash: string, result: Completion): Promise<JobRow> {
  const plan = checkedPlan(result.plan);
  return app.write(async (tx) => {
    const again = await completedWith(tx, ref, resultHash);
    if (again) return again;
    const leased = await liveTask(tx, app, ref);
    const { job, task } = leased;
    if (!plan.has_audio && (await captionsWithoutAudio(tx, job)).required) {
      const fault = { code: "caption_failed", message: NO_AUDIO, retryable: false, logTail: null };
      return failTask(tx, app, leased, { ...fault, outcome: "failed" });
    }
    const finished = await finishTask(tx, app, task, resultHash);
    await storePlan(tx, app, leased, plan);
    return moveJob(tx, app, job, doneOf(finished) - doneOf(task), { stage: "encoding" });
  });
}

/** The result of a part, whose captions are valid. */
async function checkedPart(app: App, { job, task }: LeasedTask, result: Completion): Promise<PartResult> {
  const { closed_captions, ...part } = partResult(result, task.kind);
  const objects = storageOf(app);
  const prefix = attemptPrefix(job, task.attemptId);
  const isReporter = closed_captions !== undefined && (await reportsClosedCaptions(app.db, task));
  if (isReporter) await checkSourceTexts(app, { objects, prefix, tenantId: job.tenantId }, closed_captions);
  const reported = { ...part, ...(isReporter && { closed_captions }) };
  if (!reportsCaptions(task)) return reported;
  await checkSubtitlePaths(objects, prefix, part);
  const wanted = await wantedCaptions(app.db, job.assetId);
  await checkCaptions(app, objects, { job, wanted, result: part });
  return reported;
}

async function completePart(app: App, ref: TaskRef, resultHash: string, part: PartResult): Promise<JobRow> {
  return app.write(async (tx) => {
    const again = await completedWith(tx, ref, resultHash);
    if (again) return again;
    const whole = await liveTask(tx, app, ref);
    const leased = await shorten(tx, app, whole, part);
    const { job, task } = leased;
    const reason = whyNotExact(task, part) ?? (await whyNotAlike(tx, leased, part));
    if (reason !== null) {
      const fault = { code: INEXACT, message: reason, retryable: true, logTail: null };
      return failTask(tx, app, leased, { ...fault, outcome: "failed" });
    }
    const finished = await finishTask(tx, app, task, resultHash, part);
    await deferSlow(tx, app, leased);
    const stage = (await queueImages(tx, app, leased)) ? "publishing" : undefined;
    return moveJob(tx, app, job, doneOf(finished) - doneOf(whole.task), { stage });
  });
}

/**
 * A chunk has the renditions that it should have, each with the same init segment as in all other chunks: a player reads
 * only one of them.
 */
async function whyNotAlike(tx: Db, { task }: LeasedTask, { written }: PartResult): Promise<string | null> {
  if (task.kind !== "chunk") return null;
  const isAttempt = eq(transcodingAttempts.id, task.attemptId);
  const attempt = await tx
    .select({ renditionsHash: transcodingAttempts.renditionsHash, plan: transcodingAttempts.plan })
    .from(transcodingAttempts)
    .where(isAttempt)
    .get();
  const known = initHashes(attempt?.renditionsHash);
  const planned = (attempt?.plan as PlanResult | null)?.early?.renditions.map(({ name }) => name);
  const expected = new Set(task.renditions ?? planned ?? Object.keys(known));
  const names = written.map(({ name }) => name);
  const others = `Chunk ${task.number} has other renditions or init segments than the first one.`;
  if (expected.size > 0 && (names.length !== expected.size || !names.every((name) => expected.has(name))))
    return others;
  const hashes = { ...known };
  for (const one of written) {
    const hash = initHash(one);
    if (Object.hasOwn(known, one.name) && known[one.name] !== hash) return others;
    hashes[one.name] = hash;
  }
  if (names.some((name) => !Object.hasOwn(known, name)))
    await tx
      .update(transcodingAttempts)
      .set({ renditionsHash: JSON.stringify(hashes) })
      .where(isAttempt);
  return null;
}

/** Queues the task that publishes, when no other is left. It takes little time: its position is that of the last part. */
async function queueImages(tx: Db, app: App, { task }: LeasedTask): Promise<boolean> {
  const tasks = transcodingTasks;
  const ofAttempt = eq(tasks.attemptId, task.attemptId);
  const left = and(ofAttempt, inArray(tasks.status, ["queued", "running"]));
  if (await tx.select({ id: tasks.id }).from(tasks).where(left).limit(1).get()) return false;
  const images = await tx
    .select({ id: tasks.id })
    .from(tasks)
    .where(and(ofAttempt, eq(tasks.status, "waiting")))
    .get();
  if (!images) throw new Error(`Attempt ${task.attemptId} has no task that publishes it`);
  await applyTask(tx, app, "queue", images.id, {
    queuePosition: task.queuePosition,
    availableAt: app.clock.now(),
  });
  return true;
}

/** The result of the last task with what the parts have reported of captions and of the source. */
async function withPartsOf(db: Db, { job, task }: LeasedTask, result: Completion): Promise<Completion> {
  const { captions, closedCaptions, sourceSha256 } = await reportedByParts(db, task.attemptId);
  const errors = async () => ({ subtitle_paths: {}, caption_errors: (await captionsWithoutAudio(db, job)).errors });
  const media = { ...result.media, ...(sourceSha256 && { source_sha256: sourceSha256 }) };
  return { ...result, ...(captions ?? (await errors())), closed_captions: closedCaptions, media };
}
