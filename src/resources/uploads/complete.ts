import { eq, sql } from "drizzle-orm";
import { type AssetRow, assets, type JobRow, type UploadRow, uploads } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { emit } from "../../events/emit.ts";
import type { Caller } from "../../http/caller.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { enqueue } from "../jobs/enqueue.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireStored } from "../tenants/quota.ts";
import { addUsage } from "../tenants/usage.ts";
import { requirePending } from "./multipart.ts";
import { firstJob, getUpload } from "./queries.ts";

export type Completed = { upload: UploadRow; asset: AssetRow; job: JobRow };

export const mismatch = (message: string, field = "bytes_received"): never => {
  throw new HttpError(422, "bytes_mismatch", message, { details: { [field]: [message] } });
};

export function checkSize(bytesReceived: number, bytesExpected: number): void {
  if (bytesReceived > bytesExpected)
    mismatch(`${bytesReceived} bytes are more than the ${bytesExpected} that were announced.`);
  if (bytesReceived === 0) mismatch("An empty file is no video.");
}

/** Confirms the source and queues its job: once, however often it is called. */
export async function completeUpload(app: App, caller: Caller, id: number, bytesReceived: number): Promise<Completed> {
  const objects = storageOf(app);
  const found = (await getUpload(app.db, caller, id)) ?? notFound("upload");
  if (found.upload.status === "pending") {
    const { bytesExpected, objectKey } = found.upload;
    checkSize(bytesReceived, bytesExpected);
    const stored = await objects.head(objectKey);
    if (!stored) return mismatch("Nothing has been uploaded yet; PUT the bytes to upload_url first.");
    if (stored.bytes !== bytesReceived) mismatch(`Storage holds ${stored.bytes} bytes, not ${bytesReceived}.`);
  }
  const completed = await app.write(async (tx) => {
    const { upload, asset } = (await getUpload(tx, caller, id)) ?? notFound("upload");
    if (upload.status === "completed") return { upload, asset, job: (await firstJob(tx, asset.id)) ?? notFound("job") };
    const now = app.clock.now();
    requirePending(upload, now);
    requireStored(app, await requireTenant(tx, { kind: "admin" }, upload.tenantId), bytesReceived);
    const done = await tx
      .update(uploads)
      .set({ status: "completed", bytesReceived, completedAt: now, updatedAt: now })
      .where(eq(uploads.id, id))
      .returning()
      .get();
    const uploaded = await tx
      .update(assets)
      .set({
        inputStatus: "uploaded",
        sourceBytes: bytesReceived,
        // Beside the subtitles that came before the source.
        storageBytes: sql`${assets.storageBytes} + ${bytesReceived}`,
        updatedAt: now,
      })
      .where(eq(assets.id, asset.id))
      .returning()
      .get();
    await addUsage(tx, upload.tenantId, { storageBytes: bytesReceived }, now);
    const data = {
      upload_id: id,
      asset_id: String(asset.id),
      external_id: asset.externalId,
      filename: upload.filename,
      bytes_received: bytesReceived,
    };
    await emit(tx, { tenantId: upload.tenantId, type: "video.upload.completed", data, now });
    const queued = await enqueue(tx, app, uploaded);
    return { upload: done, ...queued };
  });
  app.signals.emit("job.queued");
  return completed;
}
