import { and, eq, isNull } from "drizzle-orm";
import { type App, lockNamespace } from "#app.ts";
import { HttpError } from "#lib/base";
import { MAX_PARTS } from "#model/multipart.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import { type UploadRow, uploads } from "#storage/db/schema.ts";
import { NoSuchMultipart, type Part } from "#storage/objects/store.ts";

const MIB = 2 ** 20;
const PART_BYTES = 16 * MIB;

/** Size of every part but the last: large enough to stay within S3's number of parts. */
export const partSizeFor = (bytes: number) => Math.max(PART_BYTES, Math.ceil(bytes / MAX_PARTS / MIB) * MIB);
export const partCountOf = ({ bytesExpected, partSize }: UploadRow) =>
  partSize === null ? 0 : Math.max(1, Math.ceil(bytesExpected / partSize));

/** Concurrent completion, abortion and expiry of an upload would delete each other's parts. By id. */
export const uploadLock = lockNamespace<number>("upload");

/** Throws 409 unless the upload still waits for its bytes. */
export function requirePending({ status, expiresAt }: UploadRow, now: number): void {
  if (status === "pending" && expiresAt > now) return;
  const state = status === "pending" ? "expired" : status;
  throw new HttpError(409, "upload_conflict", `The upload is ${state}; start a new one.`);
}

export function requireMultipart({ mode }: UploadRow): void {
  if (mode === "multipart") return;
  const way = mode === "tus" ? "by tus" : "in one PUT to upload_url";
  throw new HttpError(409, "upload_conflict", `This is not a multipart upload; it is sent ${way}.`);
}

/** The storage's multipart id of an upload; created if a crash prevented that. */
export async function multipartIdOf(app: App, upload: UploadRow): Promise<string> {
  if (upload.multipartId !== null) return upload.multipartId;
  const { id, objectKey: key, bytesExpected: bytes, partSize, contentType } = upload;
  const objects = storageOf(app);
  const multipart = await objects.createMultipart(key, { bytes, partSize: partSize ?? PART_BYTES, contentType });
  const updated = await app.write(async (tx) => {
    const first = and(eq(uploads.id, id), isNull(uploads.multipartId), eq(uploads.status, "pending"));
    const set = await tx.update(uploads).set({ multipartId: multipart }).where(first).returning().get();
    return set ?? (await rowOf(tx, id));
  });
  if (updated?.multipartId === multipart) return multipart;
  // A concurrent request was faster, or the upload has ended.
  await objects.abortMultipart(key, multipart);
  if (updated?.multipartId && updated.status === "pending") return updated.multipartId;
  throw new HttpError(409, "upload_conflict", "The upload has ended; initiate a new one.");
}

const rowOf = (db: Db, id: number): Promise<UploadRow | undefined> =>
  db.select().from(uploads).where(eq(uploads.id, id)).get();

/** The complete parts; empty when storage no longer knows the multipart upload. */
export async function partsOf(app: App, { objectKey, multipartId }: UploadRow): Promise<Part[]> {
  if (multipartId === null) return [];
  try {
    return await storageOf(app).listParts(objectKey, multipartId);
  } catch (error) {
    if (error instanceof NoSuchMultipart) return [];
    throw error;
  }
}

/** Deletes the storage of ended uploads. What a crash leaves is swept. */
export async function dropParts(app: App, rows: readonly UploadRow[]): Promise<void> {
  for (const { id, objectKey, multipartId, mode } of rows) {
    const { objects } = app;
    if (!objects) continue;
    try {
      if (mode !== "multipart") await objects.appends?.discard(objectKey);
      if (multipartId !== null)
        await uploadLock(app).withLock(id, () => objects.abortMultipart(objectKey, multipartId));
    } catch (error) {
      app.log.warn({ err: error, upload_id: id }, "the parts of an ended upload could not be deleted yet");
    }
  }
}
