import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { markReferenced, scheduleDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, assets } from "#storage/db/schema.ts";
import { emitAssetEvent } from "./events.ts";
import { imagesFolder } from "./images-folder.ts";
import { addStoredBytes } from "./stored-bytes.ts";

/** A client that has just read the row may still request the old image. */
const OLD_IMAGE_MS = 60_000;

/** A chosen poster in storage. */
export type StoredPoster = { path: string; bytes: number; width: number; height: number };

/** The object key of the image that represents an asset: the chosen poster, else the encoder's thumbnail. */
export const posterOf = ({ posterPath, thumbnailPath }: Pick<AssetRow, "posterPath" | "thumbnailPath">) =>
  posterPath ?? thumbnailPath;

type Pictured = Pick<AssetRow, "posterPath" | "thumbnailPath" | "sharedPrefix" | "width">;

/** Whether `thumbnail.jpg` exists: that of a clip is its first frame, which is rendered on request. */
export const hasPoster = (asset: Pictured): boolean => posterOf(asset) !== null || isFirstFrame(asset);

/** Whether the poster is the first frame of the video, which is not stored. */
export const isFirstFrame = (asset: Pictured): boolean =>
  posterOf(asset) === null && asset.sharedPrefix !== null && asset.width !== null;

/**
 * Sets the poster of an asset that was read in the same transaction, or removes it with null. The earlier one and the
 * images that were generated from it are deleted.
 */
export async function setPoster(tx: Db, app: App, before: AssetRow, poster: StoredPoster | null): Promise<AssetRow> {
  if (poster === null && before.posterPath === null) return before;
  if (poster) await markReferenced(tx, poster.path);
  const outdated = [imagesFolder(before), ...(before.posterPath === null ? [] : [before.posterPath])];
  await scheduleDeletion(tx, app, outdated, OLD_IMAGE_MS);
  await addStoredBytes(tx, app, before, (poster?.bytes ?? 0) - before.posterBytes);
  const changed = await tx
    .update(assets)
    .set({
      posterPath: poster?.path ?? null,
      posterBytes: poster?.bytes ?? 0,
      posterWidth: poster?.width ?? null,
      posterHeight: poster?.height ?? null,
      updatedAt: app.clock.now(),
    })
    .where(eq(assets.id, before.id))
    .returning()
    .get();
  await emitAssetEvent(tx, app, "video.asset.updated", changed);
  return changed;
}
