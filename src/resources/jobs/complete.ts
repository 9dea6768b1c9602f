import { eq, sql } from "drizzle-orm";
import type * as v from "valibot";
import type { Db } from "../../../storage/db/open.ts";
import { assets, type JobRow, subtitles, transcodingJobs } from "../../../storage/db/schema.ts";
import { deletePrefix } from "../../../storage/objects/delete-prefix.ts";
import type { ObjectStore } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { sha256 } from "../../lib/tokens.ts";
import { addUsage } from "../tenants/queries.ts";
import { announcedSum } from "./contract.ts";
import { endAttempt, failAttempt } from "./end.ts";
import { emitAsset } from "./events.ts";
import { attemptOfToken, attemptPrefix, liveLease } from "./lease.ts";
import { readPublished } from "./published.ts";
import { type LeaveReceipt, leaveNone } from "./receipts.ts";
import type { Completion } from "./schema.ts";

type Result = v.InferOutput<typeof Completion>;

const incomplete = (field: string, message: string): never => {
  throw new HttpError(422, "invalid_transcoding_result", `${field}: ${message}`, { details: { [field]: [message] } });
};

/** Publishes what an attempt made. A repeat with the same token and body answers the same and changes nothing. */
export async function complete(
  app: App,
  jobId: number,
  token: string,
  result: Result,
  receipt: LeaveReceipt = leaveNone,
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
  const bytes = await bytesUnder(objects, prefix);
  const media = await mediaOf(objects, result);

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
    const completed = await tx
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
    const texts = await tx
      .select({ bytes: sql<number>`coalesce(sum(${subtitles.bytes}), 0)` })
      .from(subtitles)
      .where(eq(subtitles.assetId, job.assetId))
      .get();
    const storageBytes = (before?.sourceBytes ?? 0) + bytes + (texts?.bytes ?? 0);
    const asset = await tx
      .update(assets)
      .set({
        ...paths,
        // Its worker has read it, whatever was said when it was registered.
        inputStatus: "uploaded",
        playbackStatus: "ready",
        ...(sum && { sourceSha256: sum }),
        storageBytes,
        durationSeconds: media.duration_seconds,
        ...(media.width != null && { width: Math.round(media.width) }),
        ...(media.height != null && { height: Math.round(media.height) }),
        ...(media.frame_rate != null && { frameRate: media.frame_rate }),
        renditions: media.renditions,
        progress: 100,
        stage: null,
        errorCode: null,
        errorMessage: null,
        readyAt: now,
        updatedAt: now,
      })
      .where(eq(assets.id, job.assetId))
      .returning()
      .get();
    await addUsage(tx, job.tenantId, {
      storageBytes: storageBytes - (before?.storageBytes ?? 0),
      transcodingMs: media.duration_seconds * 1000,
    });
    await emitAsset(tx, app, "video.asset.ready", asset);
    // Only what jobs of this asset have made: a folder that a client named may be another's.
    const made = before?.mediaPrefix?.startsWith(`tenants/${job.tenantId}/assets/${job.assetId}/`);
    await receipt(tx, completed);
    return { completed, outdated: made && before?.mediaPrefix !== prefix ? before?.mediaPrefix : null };
  });
  if (corrupt) throw new HttpError(422, "source_corrupt", corrupt);
  if (outdated)
    await deletePrefix(objects, outdated).catch((error) =>
      app.log.warn({ err: error, prefix: outdated }, "old artifacts were not removed"),
    );
  return completed;
}

/** What the worker tells of its work; where it tells nothing, what the manifest says. */
async function mediaOf(objects: ObjectStore, { media = {}, manifest_path }: Result) {
  const { duration_seconds, renditions } = media;
  if (duration_seconds !== undefined && renditions !== undefined) return { ...media, duration_seconds, renditions };
  const published = await readPublished(objects, manifest_path as string);
  const [top] = published.renditions;
  const shown = { width: top?.width, height: top?.height, frame_rate: top?.frame_rate };
  return {
    ...shown,
    ...media,
    duration_seconds: duration_seconds ?? published.durationSeconds,
    renditions: renditions ?? published.renditions,
  };
}

/** All paths under the attempt's own prefix and in storage. Which ones are required the worker contract has said. */
async function checkArtifacts(objects: ObjectStore, prefix: string, result: Result) {
  const required = {
    manifest_path: result.manifest_path,
    dash_manifest_path: result.dash_manifest_path,
    thumbnail_path: result.thumbnail_path,
    ...Object.fromEntries(
      Object.entries(result.subtitle_paths).map(([language, path]) => [`subtitle_paths.${language}`, path]),
    ),
  };
  const isThere = (field: string, path: string) => {
    if (!path.startsWith(prefix) || path.split("/").some((part) => part === "" || part === "." || part === ".."))
      return incomplete(field, `must lie under ${prefix}`);
    return objects.head(path);
  };
  await Promise.all(
    Object.entries(required).map(async ([field, path]) => {
      if (!path) return incomplete(field, "is required");
      return (await isThere(field, path)) ?? incomplete(field, "is not in storage");
    }),
  );
  // Workers that know nothing of these may send the contract's outputs back as they came.
  const found = async (field: string, path: string | null | undefined) =>
    path && (await isThere(field, path)) ? path : null;
  return {
    mediaPrefix: prefix,
    manifestPath: result.manifest_path as string,
    dashManifestPath: result.dash_manifest_path as string,
    thumbnailPath: result.thumbnail_path as string,
    storyboardPath: await found("storyboard_path", result.storyboard_path),
    mp4Path: await found("mp4_path", result.mp4_path),
  };
}

async function bytesUnder(objects: ObjectStore, prefix: string): Promise<number> {
  let bytes = 0;
  let cursor: string | undefined;
  do {
    const page = await objects.list(prefix, { cursor });
    for (const object of page.objects) bytes += object.bytes;
    cursor = page.cursor ?? undefined;
  } while (cursor);
  return bytes;
}
