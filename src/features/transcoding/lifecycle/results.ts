import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { supplementedTags } from "#features/assets/change.ts";
import { replaceMedia } from "#features/assets/replaced-media.ts";
import { passOnMedia, releaseMedia, trimMedia } from "#features/assets/shared-media.ts";
import { heldSourceBytes, setStoredBytes, trackBytesOf } from "#features/assets/stored-bytes.ts";
import { subtitlesOf } from "#features/subtitles/queries.ts";
import { addUsage } from "#features/tenants/usage.ts";
import type { SharedMedia } from "#lib/manifests";
import { assetPrefix, imagesPrefix, isBelow, isDeliveredPrefix } from "#model/object-keys.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Completion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type JobRow } from "#storage/db/schema.ts";
import { applyTransition, type Changes } from "./apply.ts";
import { endAttempt, type Running } from "./attempts.ts";

type Media = NonNullable<v.InferOutput<typeof Completion>["media"]>;

/** The verified result of an attempt in storage. */
export type VerifiedResult = {
  paths: Pick<
    AssetRow,
    "mediaPrefix" | "manifestPath" | "dashManifestPath" | "thumbnailPath" | "storyboardPath" | "mp4Path"
  >;
  bytes: number;
  media: Media & { duration_seconds: number; renditions: AssetRow["renditions"] };
  /** What a clip still shares. */
  shared?: SharedMedia;
};

export type Published = { job: JobRow };

/** Publishes renditions that are complete, while the job continues. */
export async function publishMedia(tx: Db, app: App, { job }: Running, result: VerifiedResult): Promise<Published> {
  const publishedAt = job.publishedAt ?? app.clock.now();
  return apply(tx, app, "publish", { job, result, changes: { job: { publishedAt }, asset: { encoding: "partial" } } });
}

/**
 * Publishes the result of an attempt and ends its job. `sourceSha256` is the checksum that the worker computed;
 * `captionErrors` are the requested captions that are missing, by language.
 */
export async function completeJob(
  tx: Db,
  app: App,
  { job, attempt }: Running,
  result: VerifiedResult,
  { sourceSha256, captionErrors }: { sourceSha256: string | null; captionErrors: Record<string, string> | null },
): Promise<Published> {
  const now = app.clock.now();
  await endAttempt(tx, app, { job, attempt }, "completed");
  const ended = {
    progress: 100,
    stage: "completed",
    errorCode: null,
    errorMessage: null,
    finishedAt: now,
    ...(captionErrors && { captionErrors }),
  };
  const asset = { progress: 100, stage: null, encoding: null, ...(sourceSha256 && { sourceSha256 }) };
  const published = await apply(tx, app, "complete", { job, result, changes: { job: ended, asset } });
  // Only the ends of a clip are encoded, and nothing of joined assets.
  if (!job.clip && !job.joined)
    await addUsage(tx, job.tenantId, { transcodingMs: result.media.duration_seconds * 1000 }, now);
  return published;
}

/** Switches the asset to the new media, in the transition that makes them playable. */
async function apply(
  tx: Db,
  app: App,
  name: "publish" | "complete",
  { job, result, changes }: { job: JobRow; result: VerifiedResult; changes: Changes },
): Promise<Published> {
  const { paths, bytes, media, shared } = result;
  const isAsset = eq(assets.id, job.assetId);
  const before = (await tx.select().from(assets).where(isAsset).get()) as AssetRow;
  // Only a prefix that a job of this asset wrote: one that a client registered may be shared.
  const isWrittenByJob =
    before.mediaPrefix !== null &&
    isBelow(assetPrefix({ tenantId: job.tenantId, id: job.assetId }), before.mediaPrefix);
  // The media of a batch, or the recording of a live stream, which are encoded later.
  const isDelivered = !isWrittenByJob && (await isOnlyMedia(tx, before));
  // A trimmed asset that is encoded again plays its own media.
  const isReleased = before.sharedMedia !== null && !job.clip;
  let { sharedBytes } = before;
  let { storageBytes } = before;
  if (job.clip?.trim && shared) {
    ({ sharedBytes, storageBytes } = await trimMedia(tx, app, before, { ...job.clip.trim, sharedMedia: shared }));
  } else if ((isWrittenByJob || isDelivered || isReleased) && before.mediaPrefix !== paths.mediaPrefix) {
    await replaceMedia(tx, app, before);
    await passOnMedia(tx, app, before);
  }
  const { vr_projection, vr_stereo } = media;
  // Not once more when what plays already is complete: meanwhile a client may have removed them.
  const isVr = before.encoding !== "partial" && (vr_projection != null || vr_stereo != null);
  // The asset may have had video before, or a size that its client stated.
  const isAudioOnly = media.renditions.length > 0 && media.renditions.every(({ width }) => width == null);
  const texts = await trackBytesOf(tx, job.assetId);
  await setStoredBytes(
    tx,
    app,
    { ...before, storageBytes },
    heldSourceBytes(before) + before.posterBytes + (isReleased ? 0 : sharedBytes) + bytes + texts,
  );
  const changed = await applyTransition(
    tx,
    app,
    name,
    { assetId: job.assetId, jobId: job.id, isPublished: job.publishedAt !== null },
    {
      ...changes,
      asset: {
        ...paths,
        durationSeconds: media.duration_seconds,
        ...(isAudioOnly && { width: null, height: null, frameRate: null }),
        ...(media.width != null && { width: Math.round(media.width) }),
        ...(media.height != null && { height: Math.round(media.height) }),
        ...(media.frame_rate != null && { frameRate: media.frame_rate }),
        ...(isVr && { tags: supplementedTags(before.tags, { vr_projection, vr_stereo }) }),
        renditions: media.renditions,
        audioRenditions: media.audio_renditions ?? [],
        // A cut contains what the media contained.
        warnings: job.clip ? before.warnings : (media.warnings ?? []),
        errorCode: null,
        errorMessage: null,
        readyAt: app.clock.now(),
        ...(isReleased && { sharedPrefix: null, sharedMedia: null, sharedBytes: 0 }),
        ...changes.asset,
      },
    },
  );
  if (isReleased) await releaseMedia(tx, app, before);
  if (before.readyAt !== null) await scheduleDeletion(tx, app, [imagesPrefix(before)]);
  return { job: changed.job };
}

/** Whether the media are under a prefix of their own, where nothing else of the asset is. */
async function isOnlyMedia(tx: Db, { id, tenantId, mediaPrefix, sharedMedia, posterPath }: AssetRow): Promise<boolean> {
  if (mediaPrefix === null || sharedMedia !== null || !isDeliveredPrefix(mediaPrefix, tenantId)) return false;
  const texts = await subtitlesOf(tx, id);
  return [posterPath, ...texts.map(({ objectKey }) => objectKey)].every(
    (key) => key === null || !isBelow(mediaPrefix, key),
  );
}
