import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { isSourceElsewhere } from "#features/assets/delete.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { lateMs, scheduleDeletion } from "#platform/http/object-gc.ts";
import { afterCommit } from "#storage/db/after-commit.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type UploadRow, uploads } from "#storage/db/schema.ts";
import { applyTransition } from "./apply.ts";

type Upload = { upload: UploadRow; asset: AssetRow };

/** Ends a pending upload whose source is complete in storage, with `bytesReceived` bytes. Queues no job. */
export async function receiveSource(tx: Db, app: App, upload: UploadRow, bytesReceived: number): Promise<Upload> {
  const now = app.clock.now();
  const completed = await setUpload(tx, upload, {
    status: "completed",
    bytesReceived,
    completedAt: now,
    updatedAt: now,
  });
  // In addition to subtitles that arrived before the source.
  await addStoredBytes(tx, app, { id: upload.assetId, tenantId: upload.tenantId }, bytesReceived);
  const subject = { assetId: upload.assetId, upload: completed };
  const changes = { asset: { sourceBytes: bytesReceived } };
  return { upload: completed, asset: (await applyTransition(tx, app, "receive", subject, changes)).asset };
}

/**
 * Ends a pending upload without a source, and schedules deletion of its object. Its parts are dropped by the caller or
 * the sweep. `error` is shown on the asset.
 */
export async function abandonUpload(
  tx: Db,
  app: App,
  upload: UploadRow,
  status: "aborted" | "expired" | "failed",
  error?: { code: string; message: string },
): Promise<Upload> {
  const ended = await setUpload(tx, upload, { status, updatedAt: app.clock.now() });
  const subject = { assetId: upload.assetId, upload: ended };
  const changes = error ? { asset: { errorCode: error.code, errorMessage: error.message } } : {};
  const { asset } = await applyTransition(tx, app, "abandon", subject, changes);
  if (!(await isSourceElsewhere(tx, asset))) {
    // Where its URL cannot be revoked, an object may arrive until it expires: deleted now, and again then.
    const inMs = lateMs(app, upload.expiresAt);
    await scheduleDeletion(tx, app, [upload.objectKey], inMs);
    if (inMs > 0) afterCommit(tx, () => void app.objects?.delete(upload.objectKey).catch(() => {}));
  }
  return { upload: ended, asset };
}

const setUpload = (tx: Db, { id }: UploadRow, columns: Partial<UploadRow>): Promise<UploadRow> =>
  tx.update(uploads).set(columns).where(eq(uploads.id, id)).returning().get();
