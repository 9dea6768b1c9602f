import { readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { type EncodedMedia, type Encoder, mediaOf, ownFolder, replaceFile } from "./encode-file.ts";
import { RequestRefused } from "./http.ts";
import { MEDIA, objectsOf, sendObjects, sourceKey } from "./objects.ts";
import { type Pushed, type Sender, unchanged } from "./send.ts";
import { type File, stateOf } from "./state.ts";

type Batch = { id: number; status: "open" | "committed" | "canceled" | "expired" };
type Committed = Batch & { assets: { id: number; external_id: string; playback_policy: string }[] };
type Delivery = { encoder: Encoder; withSource: boolean; keepState?: boolean | undefined };

/** A laptop may be shut over a weekend. */
const LEASE_SECONDS = 3 * 86_400;
/** Thousands of objects are looked at and copied before it answers. */
const COMMIT_MS = 300_000;
const MANIFEST = "manifest.json";

/**
 * Encodes a file here and delivers it through a batch of its own, so that what is wrong with one holds up no other.
 * What an earlier run has encoded or sent is not done again.
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
  // Committed, and not by a run of this folder: what it made is no longer to be found out.
  if (batch?.status === "committed" && manifest === null) batch = null;
  if (manifest === null) {
    const { made, isFresh } = await mediaOf(encoder, file, folder);
    if (isFresh && batch) {
      await giveUp(sender, batch.id);
      batch = null;
    }
    batch ??= await newBatch(sender, file, store);
    await sendObjects(sender, batch.id, objectsOf(made, folder, withSource ? file : null));
    await unchanged(file).catch(async (error) => {
      // It is another file by now, and nobody would come back for this one.
      await giveUp(sender, (batch as Batch).id);
      store.forget();
      await rm(folder, { recursive: true, force: true });
      throw error;
    });
    manifest = JSON.stringify(manifestOf(made, file, { fields, withSource }));
    // The very same again is answered the same, should this run not live to hear the answer.
    await replaceFile(join(folder, MANIFEST), manifest);
  }
  const { id } = batch as Batch;
  const asked: unknown = JSON.parse(manifest);
  const path = `/ingest_batches/${id}/manifest/commit`;
  const { assets } = await patience
    .until(() => call<Committed>("POST", path, asked, { answerMs: COMMIT_MS }))
    .catch(async (error) => {
      // It would be refused for ever; what was encoded is kept for another try.
      if (error instanceof RequestRefused && error.status === 422) {
        await giveUp(sender, id);
        store.forget();
      }
      throw error;
    });
  const [asset] = assets as [Committed["assets"][number]];
  const { collection_id } = fields;
  if (collection_id !== undefined)
    await patience.until(() => call("PATCH", `/assets/${asset.id}`, { video_asset: { collection_id } }));
  const { result } = JSON.parse(await readFile(join(folder, "made.json"), "utf8")) as EncodedMedia;
  // Large things first, what tells that all is done last.
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

async function newBatch({ call, patience }: Sender, file: File, store: ReturnType<typeof stateOf>): Promise<Batch> {
  // An attempt without a batch is one whose answer was lost.
  const before = store.load();
  const { attempt } = before && before.batchId === undefined ? before : store.begin();
  const body = { name: shortName(file), expires_in: LEASE_SECONDS };
  const headers = { "idempotency-key": attempt };
  const batch = await patience.until(() => call<Batch>("POST", "/ingest_batches", body, { headers }));
  store.save({ attempt, batchId: batch.id });
  return batch;
}

/** It runs out by itself where that fails. */
const giveUp = ({ call }: Sender, id: number) => call("POST", `/ingest_batches/${id}/cancel`).catch(() => {});

// Names of files hold what names of videos may not.
const nameOf = (file: File) =>
  basename(file.path)
    .replaceAll(/\p{Cc}/gu, " ")
    .trim() || "video";
const shortName = (file: File) => Array.from(nameOf(file)).slice(0, 100).join("");

type Said = { fields: Sender["fields"]; withSource: boolean };

function manifestOf({ result, sourceSha256 }: EncodedMedia, file: File, { fields, withSource }: Said) {
  const { title, tags, playback_policy } = fields;
  const name = nameOf(file);
  return {
    assets: [
      {
        title: title ?? (name.replace(/(?<=.)\.[^.]*$/, "") || name),
        original_filename: name,
        duration_seconds: result.durationSeconds,
        source_sha256: sourceSha256,
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
        ...(tags !== undefined && { tags }),
        ...(playback_policy !== undefined && { playback_policy }),
      },
    ],
  };
}
