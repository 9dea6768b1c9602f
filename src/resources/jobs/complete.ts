import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type JobRow, transcodingJobs } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { metricsOf } from "../../http/metrics.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { sha256 } from "../../lib/tokens.ts";
import { addUsage } from "../tenants/usage.ts";
import { applyResult } from "./apply-result.ts";
import { endAttempt, failAttempt } from "./attempts.ts";
import { publishCaptions, readCaptions } from "./captions.ts";
import { announcedSum } from "./contract.ts";
import { emitAsset } from "./events.ts";
import { attemptOfToken, attemptPrefix, liveLease } from "./lease.ts";
import { type StoreReceipt, storeNoReceipt } from "./receipts.ts";
import type { Completion } from "./schema.ts";
import { NO_CAPTIONS, sourceUpload } from "./source-upload.ts";
import { checkArtifacts, removeStale, verifyResult } from "./verify-artifacts.ts";

type Result = v.InferOutput<typeof Completion>;

/** Publishes what an attempt made. A repeat with the same token and body answers the same and changes nothing. */
export async function complete(
  app: App,
  jobId: number,
  token: string,
  result: Result,
  receipt: StoreReceipt = storeNoReceipt,
): Promise<JobRow> {
  const resultHash = sha256(JSON.stringify(result));
  const repeated = async (db: Db) => {
    const { job, attempt } = await attemptOfToken(db, jobId, token);
    return job.status === "completed" && attempt.resultHash === resultHash ? job : null;
  };
  const already = await repeated(app.db);
  if (already) return already;

  const { job, attempt } = await liveLease(app.db, app, jobId, token);
  const prefix = attemptPrefix(job, attempt.id);
  const objects = storageOf(app);
  const paths = await checkArtifacts(objects, prefix, result);
  const wanted = (await sourceUpload(app.db, job.assetId))?.captions ?? NO_CAPTIONS;
  const captions = await readCaptions(app, objects, { job, wanted, result });
  // Captions move to where subtitles lie, and are counted there.
  const made = await verifyResult(
    app,
    { objects, prefix, tenantId: job.tenantId },
    { paths, result, but: captions.paths },
  );
  const { media } = made;
  const sum = media.source_sha256 ?? null;
  const { completed, outdated, corrupt } = await app.write(async (tx) => {
    const again = await repeated(tx);
    if (again) return { completed: again, outdated: null };
    // The storage took its time: the lease may have ended meanwhile.
    const leased = await liveLease(tx, app, jobId, token);
    const now = app.clock.now();
    const before = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
    const announced = before ? announcedSum(before) : null;
    if (announced && sum && announced !== sum) {
      const message = `The source has the SHA-256 ${sum}, but ${announced} was announced; it was damaged on its way.`;
      const fault = { code: "source_corrupt", message, retryable: false, logTail: null, outcome: "failed" as const };
      return { completed: await failAttempt(tx, app, leased, fault), outdated: null, corrupt: message };
    }
    await endAttempt(tx, app, attempt.id, "completed", resultHash);
    const ended = await tx
      .update(transcodingJobs)
      .set({
        status: "completed",
        progress: 100,
        stage: "completed",
        leaseExpiresAt: null,
        errorCode: null,
        errorMessage: null,
        finishedAt: now,
        updatedAt: now,
      })
      .where(eq(transcodingJobs.id, jobId))
      .returning()
      .get();
    const { outdated } = await applyResult(tx, app, leased.job, made);
    const asset = await tx
      .update(assets)
      .set({ progress: 100, stage: null, ...(sum && { sourceSha256: sum }) })
      .where(eq(assets.id, job.assetId))
      .returning()
      .get();
    await addUsage(tx, job.tenantId, { transcodingMs: media.duration_seconds * 1000 }, now);
    const completed = await publishCaptions(tx, app, { job: ended, asset, captions });
    // Told when it began to play, if that was earlier.
    if (leased.job.publishedAt === null) await emitAsset(tx, app, "video.asset.ready", asset);
    await receipt(tx, completed);
    return { completed, outdated };
  });
  if (corrupt) throw new HttpError(422, "source_corrupt", corrupt);
  if (captions.errors.size > 0) metricsOf(app).services.add("transcription", captions.errors.size);
  await removeStale(app, outdated);
  return completed;
}
