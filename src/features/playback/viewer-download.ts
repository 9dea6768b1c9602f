import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { storageOf } from "#platform/http/storage.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { downloadOf } from "../assets/download.ts";
import { isMp4Current } from "../static-renditions/mp4.ts";
import { rememberedPlayer } from "../tenants/queries.ts";

const DOWNLOAD_SECONDS = 300;

/** Whether there is a file that viewers can download: the MP4 file, else the source. */
export const hasDownload = ({ mp4Path, provider, sourceDeletedAt, inputStatus, sourceKey }: AssetRow): boolean =>
  mp4Path !== null ||
  (provider === "managed" && sourceDeletedAt === null && inputStatus === "uploaded" && sourceKey !== "");

export const downloadNotAllowed = () =>
  new HttpError(403, "download_not_allowed", "Downloads of this video are not allowed.");

/** What viewers download: a presigned URL, valid for five minutes, and its size; or an MP4 file to serve, with its name. */
export type ViewerDownload =
  | { url: string; bytes: number }
  | { asset: AssetRow & { mp4Path: string }; filename: string };

/** Throws 403 `download_not_allowed` unless the tenant allows downloads, and 404 without a file. */
export async function viewerDownload(app: App, asset: AssetRow): Promise<ViewerDownload> {
  const { allow_download } = await rememberedPlayer(app, asset.tenantId, "");
  if (!allow_download) throw downloadNotAllowed();
  if (asset.playbackStatus !== "ready" || !hasDownload(asset)) return notFound("download");
  const { mp4Path } = asset;
  if (mp4Path === null) return downloadOf(app, asset);
  const objects = storageOf(app);
  const filename = `${(asset.title || "video").slice(0, 200)}.mp4`;
  if (!(await isMp4Current(app, asset))) return { asset: { ...asset, mp4Path }, filename };
  const { bytes } = (await objects.head(mp4Path)) ?? notFound("download");
  const expiresAt = new Date(app.clock.now() + DOWNLOAD_SECONDS * 1000);
  const { url } = await objects.signGet(mp4Path, { expiresAt, filename, contentType: "video/mp4" });
  return { url, bytes };
}
