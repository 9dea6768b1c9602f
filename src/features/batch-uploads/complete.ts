import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type BatchRow, type BatchUploadRow, batchUploads } from "#storage/db/schema.ts";
import { type NamedPart, NoSuchMultipart, PartsMismatch } from "#storage/objects/store.ts";
import { batchUploadLock, storageKey, storedParts } from "./batch-upload.ts";
import { forgetParts } from "./forget-parts.ts";
import { getIntent, requireOpen, requirePending } from "./queries.ts";

const mismatch = (message: string, field = "bytes_received"): never => {
  throw new HttpError(422, "bytes_mismatch", message, { details: { [field]: [message] } });
};

export type Ending = { parts?: readonly NamedPart[] | undefined; partCount?: number; bytesReceived: number };
type Target = { batchId: number; uploadId: number };

/** Verifies that the object exists and is complete, and joins its parts if it was uploaded in parts. Idempotent. */
export async function completeIntent(app: App, caller: Caller, at: Target, ending: Ending): Promise<BatchUploadRow> {
  return batchUploadLock(app).withLock(at.uploadId, async () => {
    const { batch, batchUpload } = (await getIntent(app.db, caller, at.batchId, at.uploadId)) ?? notFound("upload");
    if (batchUpload.status === "completed") return batchUpload;
    requireOpen(batch, app.clock.now());
    requirePending(batchUpload);
    const { bytesExpected } = batchUpload;
    if (ending.bytesReceived !== bytesExpected)
      mismatch(`bytes_received is ${ending.bytesReceived}, but ${bytesExpected} bytes were announced.`);
    if (batchUpload.multipartId !== null) await assemble(app, batch, batchUpload, ending);
    else if (batchUpload.mode === "multipart" || ending.partCount !== undefined)
      mismatch("No part has been uploaded yet.", "parts");
    await checkObject(app, batch, batchUpload);
    return app.write((tx) => markCompleted(tx, app, batchUpload));
  });
}

/** Runs in a transaction; throws 409 when the upload or its batch ended in the meantime. */
export async function markCompleted(tx: Db, app: App, { id, bytesExpected }: BatchUploadRow): Promise<BatchUploadRow> {
  const done = await tx
    .update(batchUploads)
    .set({ status: "completed", bytesReceived: bytesExpected, updatedAt: app.clock.now() })
    .where(and(eq(batchUploads.id, id), eq(batchUploads.status, "pending")))
    .returning()
    .get();
  if (!done) throw new HttpError(409, "upload_conflict", "The upload has ended.");
  await forgetParts(tx, id);
  return done;
}

/** A presigned S3 URL does not limit the size: an object that is too large is detected here, and deleted. */
async function checkObject(app: App, batch: BatchRow, batchUpload: BatchUploadRow): Promise<void> {
  const objects = storageOf(app);
  const key = storageKey(batch, batchUpload);
  const stored = await objects.head(key);
  if (!stored) return mismatch("Nothing has been uploaded yet; PUT the bytes first.");
  if (stored.bytes > batchUpload.bytesExpected) {
    await objects.delete(key);
    const message = `The stored object has ${stored.bytes} bytes, more than the ${batchUpload.bytesExpected} announced; it was deleted.`;
    throw new HttpError(413, "payload_too_large", message);
  }
  if (stored.bytes < batchUpload.bytesExpected)
    mismatch(`The stored object has ${stored.bytes} bytes, not ${batchUpload.bytesExpected}.`);
}

async function assemble(
  app: App,
  batch: BatchRow,
  batchUpload: BatchUploadRow,
  { parts, partCount }: Ending,
): Promise<void> {
  const objects = storageOf(app);
  const key = storageKey(batch, batchUpload);
  const stored = await storedParts(app, batch, batchUpload);
  const named = (parts ?? stored).toSorted((a, b) => a.partNumber - b.partNumber);
  try {
    if (named.length === 0) throw new NoSuchMultipart();
    if (partCount !== undefined && named.length !== partCount)
      mismatch(`${named.length} parts are stored, not ${partCount}.`, "part_count");
    const sizes = new Map(stored.map((part) => [part.partNumber, part.bytes]));
    const total = named.reduce((sum, { partNumber }) => sum + (sizes.get(partNumber) ?? 0), 0);
    if (named.every(({ partNumber }) => sizes.has(partNumber)) && total !== batchUpload.bytesExpected)
      mismatch(`The parts have ${total} bytes, not ${batchUpload.bytesExpected}.`, "parts");
    await objects.completeMultipart(key, batchUpload.multipartId as string, named);
  } catch (error) {
    if (error instanceof PartsMismatch) mismatch(error.message, "parts");
    if (!(error instanceof NoSuchMultipart)) throw error;
    // The process died after writing the object and before its row: the object is used.
    if (!(await objects.head(key))) mismatch("No part has been uploaded yet.", "parts");
  }
}
