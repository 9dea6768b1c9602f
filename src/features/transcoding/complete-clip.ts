import { eq } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { containsRun, isShared, type SharedMedia } from "#lib/manifests";
import { isBelow, movedKey } from "#model/object-keys.ts";
import type { Completion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets, type ClipJob, type JobRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { scheduleRelease } from "../assets/shared-media.ts";
import { subtitlesOf } from "../subtitles/queries.ts";
import { changeSubtitle, type StoredText, storeText } from "../subtitles/store.ts";
import { conflict, cutTexts, type TrimmedTexts, trimTexts } from "../subtitles/trim-texts.ts";
import { startOfMedia } from "./added-audio/clock.ts";
import { type CutAudio, cutAddedTracks, startCutTracks, trimAddedTracks } from "./added-audio/cut.ts";
import { incomplete } from "./captions.ts";
import type { VerifiedResult } from "./lifecycle/results.ts";
import { bytesUnder, requireObjects } from "./verify-artifacts.ts";
import { checkReferences } from "./verify-references.ts";

type Result = v.InferOutput<typeof Completion>;
type Place = { objects: ObjectStore; prefix: string; signal: AbortSignal };

/** The verified result of a job that cut an exact clip: its media, and what it still shares. */
export type VerifiedClip = VerifiedResult & {
  shared: SharedMedia;
  /** By their old object keys. */
  texts: Map<string, StoredText>;
  /** The texts and the added audio of an asset that is trimmed. */
  trimmed: (TrimmedTexts & { audio: CutAudio[] }) | null;
};

/**
 * Checks that all named objects are in storage, and that the clip shares nothing that it has no reference to. Its subtitles
 * are copied away from the prefix of the job's manifests. Throws 422 `invalid_transcoding_result`.
 */
export async function verifyClip(
  app: App,
  { objects, prefix, signal }: Place,
  { asset, clip, result }: { asset: AssetRow; clip: ClipJob; result: Result },
): Promise<VerifiedClip> {
  const { clip: cut, media } = result;
  if (!cut) return incomplete("clip", "is required");
  const duration_seconds = media?.duration_seconds;
  if (duration_seconds === undefined) return incomplete("media.duration_seconds", "is required");
  const { trim } = clip;
  const all: SharedMedia = (trim ?? asset).sharedMedia ?? { startSeconds: 0, segments: [], objects: [] };
  for (const [index, run] of cut.segments.entries())
    if (!all.segments.some((other) => containsRun(other, run)))
      incomplete(`clip.segments.${index}`, "are not segments of the clip");
  const shared = {
    startSeconds: all.startSeconds + cut.skipped_seconds,
    segments: cut.segments,
    objects: all.objects.filter((path) => !cut.own.includes(path)),
  };
  const hidden = cut.own.findIndex((path) => isShared(shared, path));
  if (hidden >= 0) incomplete(`clip.own.${hidden}`, "is shared");
  await requireObjects(objects, prefix, {
    manifest_path: result.manifest_path,
    ...(clip.dashManifestPath !== null && { dash_manifest_path: result.dash_manifest_path }),
    ...(clip.storyboardPath !== null && { storyboard_path: result.storyboard_path }),
    ...Object.fromEntries(cut.own.map((path, index) => [`clip.own.${index}`, prefix + path])),
  });
  const dashManifestPath = clip.dashManifestPath === null ? null : (result.dash_manifest_path as string);
  const storyboardPath = clip.storyboardPath === null ? null : (result.storyboard_path as string);
  const manifestPath = result.manifest_path as string;
  const { tenantId } = asset;
  await checkReferences(app, { objects, prefix, tenantId }, { manifestPath, dashManifestPath, storyboardPath });
  const old = trim?.mediaPrefix ?? clip.prefix;
  const moved = (key: string) => movedKey(key, old, prefix);
  const below = (one: AssetRow["renditions"][number]) => ({
    ...one,
    bytes: null,
    playlist_path: moved(one.playlist_path),
  });
  return {
    paths: {
      mediaPrefix: prefix,
      manifestPath,
      dashManifestPath,
      storyboardPath,
      // Without one, the poster is the first frame.
      thumbnailPath: trim && asset.width !== null ? null : asset.thumbnailPath,
      mp4Path: null,
    },
    bytes: await bytesUnder(objects, prefix, []),
    media: {
      duration_seconds,
      width: asset.width,
      height: asset.height,
      frame_rate: asset.frameRate,
      renditions: asset.renditions.map(below),
      audio_renditions: asset.audioRenditions.map(below),
    },
    shared,
    texts: trim ? new Map() : await copyTexts(app, objects, asset, clip),
    trimmed: trim
      ? {
          ...(await cutTexts(app, asset, trim, signal)),
          audio: await cutAudio(app, { objects, signal }, asset, { shared, duration_seconds }),
        }
      : null,
  };
}

/** The added tracks of an asset that is trimmed, from its first frame to its last: what was added and deleted since it was queued is regarded. */
async function cutAudio(
  app: App,
  { objects, signal }: Omit<Place, "prefix">,
  asset: AssetRow,
  { shared, duration_seconds }: { shared: SharedMedia; duration_seconds: number },
): Promise<CutAudio[]> {
  const start = Math.max(0, shared.startSeconds - (await startOfMedia(app, asset)));
  return cutAddedTracks(app, objects, { asset, range: { start, end: start + duration_seconds }, signal });
}

async function copyTexts(app: App, objects: ObjectStore, asset: AssetRow, { prefix }: ClipJob) {
  const texts: VerifiedClip["texts"] = new Map();
  for (const { objectKey, warnings } of await subtitlesOf(app.db, asset.id)) {
    const text = isBelow(prefix, objectKey) ? await readSmallObject(objects, objectKey) : null;
    if (text) texts.set(objectKey, await storeText(app, asset, { text: text.toString("utf8"), warnings }));
  }
  return texts;
}

/** After the transition to the verified media, in its transaction. Throws 409 as `trimTexts`. */
export async function applyClip(tx: Db, app: App, job: JobRow, verified: VerifiedClip): Promise<void> {
  const { shared, texts, trimmed } = verified;
  const isAsset = eq(assets.id, job.assetId);
  if (trimmed) {
    const after = (await tx.select().from(assets).where(isAsset).get()) as AssetRow;
    await trimTexts(tx, app, after, trimmed);
    if (!(await trimAddedTracks(tx, app, after, { cut: trimmed.audio, isKept: true }))) conflict();
    return;
  }
  const asset = (await tx.update(assets).set({ sharedMedia: shared }).where(isAsset).returning().get()) as AssetRow;
  for (const row of await subtitlesOf(tx, asset.id)) {
    const stored = texts.get(row.objectKey);
    if (stored) await changeSubtitle(tx, app, row, {}, stored);
  }
  await startCutTracks(tx, asset, shared.startSeconds);
  // Its parent may be deleted already, and the segments at both ends are not shared any more.
  await scheduleRelease(tx, app, asset);
}
