import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { isBelow } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { isSharedSource, isUploadedSource } from "../assets/delete.ts";
import { getAsset } from "../assets/queries.ts";
import { heldSourceBytes, setStoredBytes } from "../assets/stored-bytes.ts";
import { lastJob } from "./lifecycle/repair.ts";

/** A client that has just received a download URL may still read. */
const OLD_SOURCE_MS = 60_000;

/**
 * Deletes the source of an asset, which plays on. Idempotent. Throws 404, and 409 `asset_conflict` unless the asset is
 * ready and completely encoded, and has a source of its own.
 */
export const deleteSource = (app: App, caller: Caller, id: number): Promise<AssetRow> =>
  app.write(async (tx) => {
    const asset = (await getAsset(tx, caller, id)) ?? notFound("asset");
    if (asset.sourceDeletedAt !== null) return asset;
    const reason = await whySourceIsNeeded(tx, asset);
    if (reason !== null) throw new HttpError(409, "asset_conflict", reason);
    return removeSource(tx, app, asset);
  });

/** Null when the source of the asset may be deleted. */
export async function whySourceIsNeeded(tx: Db, asset: AssetRow): Promise<string | null> {
  if (asset.provider !== "managed") return "The asset is served externally; vodbox has no source of it.";
  if (asset.sourceKey === "") return "The asset has no source.";
  if (asset.playbackStatus !== "ready") return `The asset is ${asset.playbackStatus}; its source is needed.`;
  const job = await lastJob(tx, asset.id);
  if (job && job.status !== "completed")
    return `The asset is not completely encoded: job ${job.id} is ${job.status}. Its source is needed.`;
  // Media of a client may use any file that was delivered with them.
  const isOfMedia = asset.mediaPrefix !== null && isBelow(asset.mediaPrefix, asset.sourceKey);
  if (isOfMedia || !isUploadedSource(asset))
    return "The source was delivered together with the media, which may use it; it is deleted with the asset.";
  return null;
}

/**
 * Removes the source of an asset that was read in the same transaction and does not need it. The object is deleted unless
 * another asset has the same source. `source_bytes` is kept: duplicates are found by it.
 */
export async function removeSource(tx: Db, app: App, asset: AssetRow): Promise<AssetRow> {
  const now = app.clock.now();
  if (!(await isSharedSource(tx, asset))) await scheduleDeletion(tx, app, [asset.sourceKey], OLD_SOURCE_MS);
  await setStoredBytes(tx, app, asset, Math.max(0, asset.storageBytes - heldSourceBytes(asset)));
  return tx
    .update(assets)
    .set({ sourceKey: "", sourceDeletedAt: now, updatedAt: now })
    .where(eq(assets.id, asset.id))
    .returning()
    .get();
}
