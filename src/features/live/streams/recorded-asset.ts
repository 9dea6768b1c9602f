import { join } from "node:path";
import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { insertAsset } from "#features/assets/stored-bytes.ts";
import { trackOfService } from "#features/subtitles/caption-services.ts";
import { subtitlesOf } from "#features/subtitles/queries.ts";
import { addSubtitle, type StoredText, storeTextUnder } from "#features/subtitles/store.ts";
import { requireStored } from "#features/tenants/quota.ts";
import { emitAssetReady } from "#features/transcoding/lifecycle/events.ts";
import { mapBounded, newExternalId, notFound, ownName } from "#lib/base";
import type { FinishedRecording } from "#live/ingest/messages.ts";
import type { Rendition } from "#media/manifests/renditions.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { markReferenced } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, tenants } from "#storage/db/schema.ts";

const AT_ONCE = 8;

/** Stores one file of the directory `folder`, which is never changed again. */
export const storeFile = (app: App, { folder, path, prefix }: { folder: string; path: string; prefix: string }) =>
  storageOf(app).putFile(prefix + path, join(folder, path), { contentType: contentTypeOf(path) });

/** Stores files of the directory `folder` under `prefix`. Throws the first error. */
export const storeFiles = (
  app: App,
  paths: readonly string[],
  { folder, prefix, signal }: { folder: string; prefix: string; signal?: AbortSignal },
) => mapBounded(paths, { atOnce: AT_ONCE, signal }, (path) => storeFile(app, { folder, path, prefix }));

/** Copies objects that are below the prefix `from`. Throws the first error. */
export const copyFiles = (
  app: App,
  paths: readonly string[],
  { from, prefix, signal }: { from: string; prefix: string; signal?: AbortSignal },
) => mapBounded(paths, { atOnce: AT_ONCE, signal }, (path) => storageOf(app).copy(from + path, prefix + path));

/** A text of captions that the publisher sent, or of recognized speech. */
type StoredCaptions = { service: string; language: string | null; stored: StoredText };

/**
 * Stores the captions of a recording under `prefix`, before the asset has them. `isTranscribed`: the recording will be
 * transcribed in these languages. Throws the first error.
 */
export const storeCaptions = (
  app: App,
  prefix: string,
  { captions }: Pick<FinishedRecording, "captions">,
  isTranscribed: readonly string[] = [],
): Promise<StoredCaptions[]> => {
  const kept = captions.filter(({ language }) => language === null || !isTranscribed.includes(language));
  return mapBounded(kept, { atOnce: 1 }, async ({ service, language, vtt }) => ({
    service,
    language,
    stored: await storeTextUnder(app, prefix, { text: vtt, warnings: [] }),
  }));
};

/** Where their language is not known, tracks are named after their service. */
async function addCaptions(tx: Db, app: App, asset: AssetRow, captions: readonly StoredCaptions[]): Promise<void> {
  for (const { service, language, stored } of captions) {
    const fields =
      language === null
        ? trackOfService(service, await subtitlesOf(tx, asset.id))
        : { language, label: ownName(language), source: "auto" as const };
    await addSubtitle(tx, app, asset, fields, { stored });
  }
}

type Recorded = {
  tenantId: number;
  title: string;
  playbackPolicy: AssetRow["playbackPolicy"];
  recording: FinishedRecording;
  /** The prefix of its objects, which are stored and registered as pending. */
  prefix: string;
  /** The key of its source, which is stored and registered as pending; null without one. */
  sourceKey?: string | null;
  encodingProfile?: string | null;
  /** What `storeCaptions` has stored. */
  captions: readonly StoredCaptions[];
  /** A recording is kept even if it exceeds the plan, which its stream did not when it began. */
  mayExceedQuota?: boolean;
};

/** Creates the asset, ready to play, in the caller's transaction. Throws 403 `quota_exceeded`. */
export async function insertRecorded(tx: Db, app: App, recorded: Recorded): Promise<AssetRow> {
  const { tenantId, title, playbackPolicy, recording, prefix, mayExceedQuota = false } = recorded;
  const { sourceKey = null, encodingProfile = null } = recorded;
  const sourceBytes = sourceKey === null ? 0 : (recording.source?.bytes ?? 0);
  if (!mayExceedQuota) {
    const tenant = (await tx.select().from(tenants).where(eq(tenants.id, tenantId)).get()) ?? notFound("channel");
    requireStored(app, tenant, recording.bytes);
  }
  await markReferenced(tx, prefix);
  if (sourceKey !== null) await markReferenced(tx, sourceKey);
  const now = app.clock.now();
  const below = (one: Rendition) => ({ ...one, playlist_path: prefix + one.playlist_path });
  const asset = await insertAsset(tx, app, {
    tenantId,
    externalId: newExternalId(),
    title,
    inputStatus: "uploaded",
    playbackStatus: "ready",
    playbackPolicy,
    storageBytes: recording.bytes + sourceBytes,
    durationSeconds: recording.durationSeconds,
    sourceKey: sourceKey ?? "",
    sourceBytes,
    sourceDeletedAt: sourceKey === null ? now : null,
    encodingProfile,
    mediaPrefix: prefix,
    manifestPath: prefix + recording.manifest,
    dashManifestPath: prefix + recording.dashManifest,
    renditions: recording.renditions.map(below),
    audioRenditions: recording.audioRenditions.map(below),
    width: recording.width,
    height: recording.height,
    frameRate: recording.frameRate,
    progress: 100,
    readyAt: now,
  });
  await emitAssetReady(tx, app, asset);
  await addCaptions(tx, app, asset, recorded.captions);
  return asset;
}
