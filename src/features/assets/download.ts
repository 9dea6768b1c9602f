import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { fileNameOf } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import { type AssetRow, uploads } from "#storage/db/schema.ts";

const DOWNLOAD_SECONDS = 300;

/** A presigned URL of the original source, valid for five minutes. Throws 404 while there is none, 410 when it was deleted. */
export async function downloadOf(app: App, asset: AssetRow) {
  const objects = storageOf(app);
  if (asset.provider !== "managed") return notFound("source");
  if (asset.sourceDeletedAt !== null)
    throw new HttpError(410, "source_deleted", "The source of the asset was deleted; the asset can only be played.");
  const stored =
    asset.inputStatus === "uploaded" && asset.sourceKey !== "" ? await objects.head(asset.sourceKey) : null;
  if (!stored) return notFound("source");
  const upload = await app.db
    .select({ contentType: uploads.contentType })
    .from(uploads)
    .where(and(eq(uploads.assetId, asset.id), eq(uploads.objectKey, asset.sourceKey)))
    .get();
  const filename = asset.originalFilename ?? fileNameOf(asset.sourceKey);
  const contentType = upload?.contentType ?? "application/octet-stream";
  const expiresAt = new Date(app.clock.now() + DOWNLOAD_SECONDS * 1000);
  const { url, method } = await objects.signGet(asset.sourceKey, { expiresAt, filename, contentType });
  return {
    url,
    method,
    filename,
    content_type: contentType,
    bytes: stored.bytes,
    expires_at: expiresAt.toISOString(),
    expires_in: DOWNLOAD_SECONDS,
  };
}
