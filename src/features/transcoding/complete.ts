import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound, sha256 } from "#lib/base";
import { attemptPrefix } from "#model/object-keys.ts";
import { metricsOf } from "#platform/http/metrics.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Completion } from "#protocol/worker.ts";
import { type AssetRow, assets, type ClipJob, type JobRow } from "#storage/db/schema.ts";
import { missingCaptions } from "../subtitles/caption-request.ts";
import { isTranscriptionConfigured } from "../subtitles/transcribers.ts";
import { conflict } from "../subtitles/trim-texts.ts";
import { applyFitted, fitTracks } from "./added-audio/fit.ts";
import { NO_TRANSCRIBER } from "./caption-jobs/missing.ts";
import { queueRequested } from "./caption-jobs/requested.ts";
import { publishCaptions, readCaptions } from "./captions.ts";
import { applyClip, verifyClip } from "./complete-clip.ts";
import { announcedSum } from "./contract.ts";
import { isOutdatedTrim } from "./job-commands.ts";
import { leaseLock, nameOfLease } from "./lease-urls.ts";
import { failAttempt, type Running } from "./lifecycle/attempts.ts";
import { completeJob } from "./lifecycle/results.ts";
import { type StoreReceipt, storeNoReceipt } from "./receipts.ts";
import { queueSum } from "./source-sums.ts";
import { publishSourceTexts, storeSourceTexts } from "./source-texts.ts";
import { wantedCaptions } from "./source-upload.ts";
import { completedWith, finishTask, liveTask, type TaskRef } from "./tasks/lease.ts";
import { checkArtifacts, verifyResult } from "./verify-artifacts.ts";

type Result = v.InferOutput<typeof Completion>;
/** `resultHash` is that of the request, where `result` contains more. */
type CompleteOptions = { resultHash?: string; receipt?: StoreReceipt };

/**
 * Publishes the result of an attempt with the task that ends it. A repeat with the same token and body returns the same
 * response and changes nothing.
 */
export async function complete(
  app: App,
  ref: TaskRef,
  result: Result,
  { resultHash = sha256(JSON.stringify(result)), receipt = storeNoReceipt }: CompleteOptions = {},
): Promise<JobRow> {
  const existing = await completedWith(app.db, ref, resultHash);
  if (existing) return existing;

  const leased = await liveTask(app.db, app, ref);
  // Nothing that the worker still sends replaces what is verified here.
  return leaseLock(app).withLock(nameOfLease(leased.task), () =>
    untilUnchanged(() => completeLeased(app, ref, leased, result, { resultHash, receipt })),
  );
}

async function completeLeased(
  app: App,
  ref: TaskRef,
  { job, attempt }: Running,
  result: Result,
  { resultHash, receipt }: Required<CompleteOptions>,
): Promise<JobRow> {
  const prefix = attemptPrefix(job, attempt.id);
  const objects = storageOf(app);
  if (job.clip) {
    const options = { job, clip: job.clip, prefix, resultHash, receipt };
    return completeWithClip(app, ref, result, options);
  }
  const place = { objects, prefix, tenantId: job.tenantId };
  const paths = await checkArtifacts(app, place, result);
  const wanted = await wantedCaptions(app.db, job.assetId);
  const captions = await readCaptions(app, objects, { job, wanted, result });
  const texts = await storeSourceTexts(app, place, { job, reported: result.closed_captions });
  // Caption objects move to the prefix of subtitles and are counted there.
  const verified = await verifyResult(app, place, { paths, result, but: [...captions.paths, ...texts.paths] });
  const sum = verified.media.source_sha256 ?? null;
  const encoded = (await app.db.select().from(assets).where(eq(assets.id, job.assetId)).get()) ?? notFound("job");
  const isTranscribed = captions.separate.length === 0 || (await isTranscriptionConfigured(app));
  if (!isTranscribed) for (const language of captions.separate) captions.errors.set(language, NO_TRANSCRIBER);
  const fitting = { durationSeconds: verified.media.duration_seconds, signal: app.stopping };
  const audio = await fitTracks(app, encoded, fitting);
  const { completed, corrupt, missing } = await app.write(async (tx) => {
    const again = await completedWith(tx, ref, resultHash);
    if (again) return { completed: again };
    // The lease may have expired while storage was accessed.
    const leased = await liveTask(tx, app, ref);
    const before = (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get()) as AssetRow;
    const announced = announcedSum(before);
    if (announced && sum && announced !== sum) {
      const message = `The source has the SHA-256 ${sum}, but ${announced} was announced; the file was damaged in transit.`;
      const fault = { code: "source_corrupt", message, retryable: false, logTail: null, outcome: "failed" as const };
      return { completed: await failAttempt(tx, app, leased, fault), corrupt: message };
    }
    await finishTask(tx, app, leased.task, resultHash);
    // A text of the source is kept, as one that exists already, where captions in its language are requested.
    const leftOut = await publishSourceTexts(tx, app, { asset: before, job: leased.job }, texts);
    const captionErrors = await publishCaptions(tx, app, before, captions);
    const unconfigured = await missingCaptions(app, Object.keys(captionErrors ?? {}));
    const warnings = [
      ...(verified.media.warnings ?? []),
      ...texts.warnings,
      ...leftOut,
      ...(unconfigured ? [unconfigured] : []),
    ];
    const warned = { ...verified, media: { ...verified.media, warnings } };
    const { job: ended } = await completeJob(tx, app, leased, warned, { sourceSha256: sum, captionErrors });
    const after = (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get()) as AssetRow;
    if (!(await applyFitted(tx, app, after, audio))) conflict();
    if (!sum) await queueSum(tx, app, before);
    const requested = { asset: after, job: ended, errors: captionErrors };
    const languages = isTranscribed ? captions.separate : [];
    const completed = await queueRequested(tx, app, requested, { languages, labels: wanted.labels });
    await receipt(tx, completed);
    return { completed, missing: Object.keys(completed.captionErrors ?? {}).length };
  });
  if (corrupt) throw new HttpError(422, "source_corrupt", corrupt);
  if (missing) metricsOf(app).services.add("transcription", missing);
  return completed;
}

/** The same for a job that cut an exact clip: it has no captions, and refers to media of another asset. */
async function completeWithClip(
  app: App,
  ref: TaskRef,
  result: Result,
  {
    job,
    clip,
    prefix,
    resultHash,
    receipt,
  }: Required<CompleteOptions> & { job: JobRow; clip: ClipJob; prefix: string },
): Promise<JobRow> {
  const isAsset = eq(assets.id, job.assetId);
  const asset = (await app.db.select().from(assets).where(isAsset).get()) ?? notFound("job");
  const place = { objects: storageOf(app), prefix, signal: app.stopping };
  const verified = await verifyClip(app, place, { asset, clip, result });
  return app.write(async (tx) => {
    const again = await completedWith(tx, ref, resultHash);
    if (again) return again;
    const leased = await liveTask(tx, app, ref);
    const current = (await tx.select().from(assets).where(isAsset).get()) as AssetRow;
    if (isOutdatedTrim(job, current)) {
      const message = "The media of the asset were replaced while they were trimmed.";
      const fault = { code: "clip_not_possible", message, retryable: false, logTail: null, outcome: "failed" as const };
      return failAttempt(tx, app, leased, fault);
    }
    await finishTask(tx, app, leased.task, resultHash);
    const ended = { sourceSha256: null, captionErrors: null };
    const { job: completed } = await completeJob(tx, app, leased, verified, ended);
    await applyClip(tx, app, completed, verified);
    await scheduleDeletion(tx, app, [clip.prefix]);
    await receipt(tx, completed);
    return completed;
  });
}

/** Texts and audio tracks of an asset may change while they are cut: then those that replaced them are cut. */
async function untilUnchanged(complete: () => Promise<JobRow>, rounds = 5): Promise<JobRow> {
  try {
    return await complete();
  } catch (error) {
    if (rounds === 1 || !(error instanceof HttpError && error.code === "asset_conflict")) throw error;
    return untilUnchanged(complete, rounds - 1);
  }
}
