import { readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Asset } from "#features/assets/schema.ts";
import type { Batch, NewBatch } from "#protocol/batch.ts";
import type { ManifestFiles } from "#protocol/manifest.ts";
import { type EncodedMedia, type Encoder, mediaOf, ownFolder, replaceFile } from "./encode-file.ts";
import { RequestRefused } from "./http.ts";
import { MEDIA, objectsOf, sendObjects, sourceKey } from "./objects.ts";
import { type Pushed, type Sender, unchanged } from "./send.ts";
import { type File, stateOf } from "./state.ts";

type Committed = Batch & { assets: Asset[] };
type Delivery = { encoder: Encoder; withSource: boolean; keepState?: boolean | undefined };

/** A laptop may be closed over a weekend. */
const LEASE_SECONDS = 3 * 86_400;
/** Thousands of objects are verified and copied before the response. */
const COMMIT_MS = 300_000;
const MANIFEST = "manifest.json";

/**
 * Encodes a file locally and delivers it through its own batch, so that a fault in one file does not affect the others.
 * Results of an earlier run are reused.
 */
export async function pushEncoded(
  sender: Sender,
  file: File,
  { encoder, withSource, keepState = false }: Delivery,
): Promise<Pushed> {
  const { call, patience, fields, server } = sender;
  const store = stateOf(file, server, "encoded");
  const folder = await ownFolder(encoder.dir, store.name);
  let batch = await earlierBatch(sender, store.load()?.batchId);
  let manifest =
    batch?.status === "committed" ? await readFile(join(folder, MANIFEST), "utf8").catch(() => null) : null;
  // Committed by a run in another directory: its result can no longer be determined.
  if (batch?.status === "committed" && manifest === null) batch = null;
  if (manifest === null) {
    const { made: media, isFresh } = await mediaOf(encoder, file, folder);
    if (isFresh && batch) {
      await cancelBatch(sender, batch.id);
      batch = null;
    }
    batch ??= await newBatch(sender, file, store);
    await sendObjects(sender, batch.id, objectsOf(media, folder, withSource ? file : null));
    await unchanged(file).catch(async (error) => {
      // The file has changed, and no later run would resume this batch.
      await cancelBatch(sender, (batch as Batch).id);
      store.forget();
      await rm(folder, { recursive: true, force: true });
      throw error;
    });
    manifest = JSON.stringify(manifestOf(media, file, { fields, withSource }));
    // Stored first: an identical repeat returns the same response, if this run does not receive it.
    await replaceFile(join(folder, MANIFEST), manifest);
  }
  const { id } = batch as Batch;
  const body: unknown = JSON.parse(manifest);
  const path = `/ingest_batches/${id}/manifest/commit`;
  const { assets } = await patience
    .until(() => call<Committed>("POST", path, body, { answerMs: COMMIT_MS }))
    .catch(async (error) => {
      // It would be refused each time; the encoded files are kept for another attempt.
      if (error instanceof RequestRefused && error.status === 422) {
        await cancelBatch(sender, id);
        store.forget();
      }
      throw error;
    });
  const [asset] = assets as [Asset];
  const { collection_id } = fields;
  if (collection_id !== undefined)
    await patience.until(() => call("PATCH", `/assets/${asset.id}`, { video_asset: { collection_id } }));
  const { result } = JSON.parse(await readFile(join(folder, "made.json"), "utf8")) as EncodedMedia;
  // Large files first, the manifests last.
  await rm(join(folder, "out"), { recursive: true, force: true });
  if (keepState) stateOf(file, server).save({ attempt: "", done: true });
  store.forget();
  await rm(folder, { recursive: true, force: true });
  return {
    path: file.path,
    batch_id: id,
    asset_id: asset.id,
    external_id: asset.external_id,
    bytes: file.bytes,
    encoded_bytes: result.bytes,
    watch_url: asset.playback_policy === "public" ? `${server}/watch/${asset.external_id}` : null,
    warnings: asset.warnings ?? [],
  };
}

async function earlierBatch({ call, patience }: Sender, id: number | undefined): Promise<Batch | null> {
  if (id === undefined) return null;
  const batch = await patience
    .until(() => call<Batch>("GET", `/ingest_batches/${id}`))
    .catch((error) => {
      if (error instanceof RequestRefused && error.status === 404) return null;
      throw error;
    });
  return batch?.status === "open" || batch?.status === "committed" ? batch : null;
}

async function newBatch(
  { call, patience, tenantId }: Sender,
  file: File,
  store: ReturnType<typeof stateOf>,
): Promise<Batch> {
  // An attempt without a batch id is one whose response was lost.
  const before = store.load();
  const { attempt } = before && before.batchId === undefined ? before : store.begin();
  const body: NewBatch = {
    name: shortName(file),
    expires_in: LEASE_SECONDS,
    ...(tenantId !== undefined && { tenant_id: tenantId }),
  };
  const headers = { "idempotency-key": attempt };
  const batch = await patience.until(() => call<Batch>("POST", "/ingest_batches", body, { headers }));
  store.save({ attempt, batchId: batch.id });
  return batch;
}

/** If that fails, the batch expires. */
const cancelBatch = ({ call }: Sender, id: number) => call("POST", `/ingest_batches/${id}/cancel`).catch(() => {});

// File names may contain characters that titles may not.
const nameOf = (file: File) =>
  basename(file.path)
    .replaceAll(/\p{Cc}/gu, " ")
    .trim() || "video";
const shortName = (file: File) => Array.from(nameOf(file)).slice(0, 100).join("");

type UploadOptions = { fields: Sender["fields"]; withSource: boolean };

/** The fields of the asset are the user's, and the server validates them. */
type Manifest = { assets: (ManifestFiles & { title: unknown; tags?: unknown; playback_policy?: unknown })[] };

function manifestOf(
  { result, sourceSha256, warnings, subtitles }: EncodedMedia,
  file: File,
  { fields, withSource }: UploadOptions,
): Manifest {
  const { title, tags, playback_policy } = fields;
  const name = nameOf(file);
  return {
    assets: [
      {
        title: title ?? (name.replace(/(?<=.)\.[^.]*$/, "") || name),
        original_filename: name,
        duration_seconds: result.durationSeconds,
        source_sha256: sourceSha256,
        ...(warnings.length > 0 && { warnings }),
        ...(withSource && { source_key: sourceKey(file) }),
        hls: {
          manifest_path: MEDIA + result.manifest,
          renditions: result.renditions.map((each) => ({
            name: each.name,
            width: each.width,
            height: each.height,
            bandwidth: each.bandwidth,
            codecs: each.codecs,
            frame_rate: each.frame_rate,
            playlist_path: MEDIA + each.playlist_path,
          })),
        },
        dash: { manifest_path: MEDIA + result.dash },
        thumbnail_path: MEDIA + result.thumbnail,
        ...(result.storyboard && { storyboard_path: MEDIA + result.storyboard }),
        ...(result.mp4 && { mp4_path: MEDIA + result.mp4 }),
        ...(subtitles.length > 0 && {
          subtitles: subtitles.map(({ name, language, label, isDefault }, position) => ({
            path: MEDIA + name,
            language,
            label,
            position,
            is_default: isDefault,
          })),
        }),
        ...(tags !== undefined && { tags }),
        ...(playback_policy !== undefined && { playback_policy }),
      },
    ],
  };
}
