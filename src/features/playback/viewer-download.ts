import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { storageOf } from "#platform/http/storage.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { downloadOf } from "../assets/download.ts";
import { rememberedPlayer } from "../tenants/queries.ts";

const DOWNLOAD_SECONDS = 300;

/** Whether there is a file that viewers can download: the MP4 file, else the source. */
export const hasDownload = ({ mp4Path, provider, sourceDeletedAt, inputStatus, sourceKey }: AssetRow): boolean =>
  mp4Path !== null ||
  (provider === "managed" && sourceDeletedAt === null && inputStatus === "uploaded" && sourceKey !== "");

export const downloadNotAllowed = () =>
  new HttpError(403, "download_not_allowed", "Downloads of this video are not allowed.");

/**
 * A presigned URL of the file that viewers download, valid for five minutes, and its size. Throws 403
 * `download_not_allowed` unless the tenant allows downloads, and 404 without a file.
 */
export async function viewerDownload(app: App, asset: AssetRow): Promise<{ url: string; bytes: number }> {
  const { allow_download } = await rememberedPlayer(app, asset.tenantId, "");
  if (!allow_download) throw downloadNotAllowed();
  if (asset.playbackStatus !== "ready" || !hasDownload(asset)) return notFound("download");
  if (asset.mp4Path === null) return downloadOf(app, asset);
  const objects = storageOf(app);
  const { bytes } = (await objects.head(asset.mp4Path)) ?? notFound("download");
  const expiresAt = new Date(app.clock.now() + DOWNLOAD_SECONDS * 1000);
  const filename = `${(asset.title || "video").slice(0, 200)}.mp4`;
  const { url } = await objects.signGet(asset.mp4Path, { expiresAt, filename, contentType: "video/mp4" });
  return { url, bytes };
}
