import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { AssetRow, JobRow, UploadRow } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireStored } from "../tenants/quota.ts";
import { queueJob } from "../transcoding/lifecycle/queue.ts";
import { receiveSource } from "../transcoding/lifecycle/uploads.ts";
import { requirePending } from "./multipart.ts";
import { firstJob, getUpload } from "./queries.ts";

export type Completed = { upload: UploadRow; asset: AssetRow; job: JobRow };

export const mismatch = (message: string, field = "bytes_received"): never => {
  throw new HttpError(422, "bytes_mismatch", message, { details: { [field]: [message] } });
};

export function checkSize(bytesReceived: number, bytesExpected: number): void {
  if (bytesReceived > bytesExpected)
    mismatch(`bytes_received is ${bytesReceived}, more than the ${bytesExpected} announced.`);
  if (bytesReceived === 0) mismatch("An empty file is not a video.");
}

/** Confirms the source and queues its job; idempotent. */
export async function completeUpload(app: App, caller: Caller, id: number, bytesReceived: number): Promise<Completed> {
  const objects = storageOf(app);
  const upload = (await getUpload(app.db, caller, id)) ?? notFound("upload");
  if (upload.upload.status === "pending") {
    const { bytesExpected, objectKey } = upload.upload;
    checkSize(bytesReceived, bytesExpected);
    const stored = await objects.head(objectKey);
    if (!stored) return mismatch("Nothing has been uploaded yet; PUT the bytes to upload_url first.");
    if (stored.bytes !== bytesReceived) mismatch(`The stored object has ${stored.bytes} bytes, not ${bytesReceived}.`);
  }
  return app.write(async (tx) => {
    const { upload, asset } = (await getUpload(tx, caller, id)) ?? notFound("upload");
    if (upload.status === "completed") return { upload, asset, job: (await firstJob(tx, asset.id)) ?? notFound("job") };
    requirePending(upload, app.clock.now());
    requireStored(app, await requireTenant(tx, { kind: "admin" }, upload.tenantId), bytesReceived);
    const received = await receiveSource(tx, app, upload, bytesReceived);
    return { upload: received.upload, ...(await queueJob(tx, app, received.asset)) };
  });
}
