import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import { assets, type UploadRow } from "#storage/db/schema.ts";
import { type NamedPart, NoSuchMultipart, PartsMismatch } from "#storage/objects/store.ts";
import { isSourceElsewhere } from "../assets/delete.ts";
import { type Completed, checkSize, completeUpload, mismatch } from "./complete.ts";
import { multipartIdOf, requireMultipart, requirePending, uploadLock } from "./multipart.ts";
import { getUpload } from "./queries.ts";

export type Assembly = { parts: readonly NamedPart[]; bytesReceived: number };

/** Joins the parts to the object and completes the upload; idempotent, also when called concurrently. */
export const completeMultipart = (app: App, caller: Caller, id: number, assembly: Assembly): Promise<Completed> =>
  uploadLock(app).withLock(id, async () => {
    const { upload } = (await getUpload(app.db, caller, id)) ?? notFound("upload");
    requireMultipart(upload);
    if (upload.status !== "completed") {
      requirePending(upload, app.clock.now());
      await assemble(app, upload, assembly);
    }
    try {
      return await completeUpload(app, caller, id, assembly.bytesReceived);
    } catch (error) {
      if (error instanceof HttpError && [404, 409].includes(error.status)) await letGo(app, upload);
      throw error;
    }
  });

async function assemble(app: App, upload: UploadRow, { parts, bytesReceived }: Assembly): Promise<void> {
  const objects = storageOf(app);
  checkSize(bytesReceived, upload.bytesExpected);
  const named = parts.toSorted((a, b) => a.partNumber - b.partNumber);
  const { objectKey: key } = upload;
  const multipartId = await multipartIdOf(app, upload);
  try {
    const storedParts = new Map(
      (await objects.listParts(key, multipartId)).map((part) => [part.partNumber, part.bytes]),
    );
    const total = named.reduce((sum, { partNumber }) => sum + (storedParts.get(partNumber) ?? 0), 0);
    // Missing or wrong parts are reported by the store, which knows which ones they are.
    const areAllStored = named.every(({ partNumber }) => storedParts.has(partNumber));
    if (areAllStored && total !== bytesReceived) mismatch(`The parts have ${total} bytes, not ${bytesReceived}.`);
    await objects.completeMultipart(key, multipartId, named);
  } catch (error) {
    if (error instanceof PartsMismatch) mismatch(error.message, "parts");
    if (!(error instanceof NoSuchMultipart)) throw error;
    // The process died between the object and its row: the object is used.
    if (!(await objects.head(key))) mismatch("Storage has no parts of this upload; initiate a new one.", "parts");
  }
}

/** The upload had ended before its object was created; nothing else will delete it. */
const letGo = (app: App, { assetId, objectKey }: UploadRow) =>
  app.write(async (tx) => {
    const asset = await tx.select().from(assets).where(eq(assets.id, assetId)).get();
    if (!asset || !(await isSourceElsewhere(tx, asset))) await scheduleDeletion(tx, app, [objectKey]);
  });
