import { and, eq, isNull } from "drizzle-orm";
import type { Db } from "../../../storage/db/open.ts";
import { type UploadRow, uploads } from "../../../storage/db/schema.ts";
import { MAX_PARTS, NoSuchMultipart, type Part } from "../../../storage/objects/store.ts";
import { type App, lockNamespace } from "../../app.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";

const MIB = 2 ** 20;
const PART_BYTES = 16 * MIB;

/** Bytes of every part but the last: as many as keep the number of parts within what S3 takes. */
export const partSizeFor = (bytes: number) => Math.max(PART_BYTES, Math.ceil(bytes / MAX_PARTS / MIB) * MIB);
export const partCountOf = ({ bytesExpected, partSize }: UploadRow) =>
  partSize === null ? 0 : Math.max(1, Math.ceil(bytesExpected / partSize));

/** Completing, aborting and expiring one upload at once would take each other's parts away. By id. */
export const uploadLock = lockNamespace<number>("upload");

/** 409 unless the upload still waits for its bytes. */
export function requirePending({ status, expiresAt }: UploadRow, now: number): void {
  if (status === "pending" && expiresAt > now) return;
  const state = status === "pending" ? "expired" : status;
  throw new HttpError(409, "upload_conflict", `The upload is ${state}; start a new one.`);
}

export function requireMultipart({ mode }: UploadRow): void {
  if (mode === "multipart") return;
  const way = mode === "tus" ? "by tus" : "in one PUT to upload_url";
  throw new HttpError(409, "upload_conflict", `The upload does not come in parts but ${way}.`);
}

/** The store's id of an upload that comes in parts; begun there where a crash kept it from being. */
export async function multipartIdOf(app: App, upload: UploadRow): Promise<string> {
  if (upload.multipartId !== null) return upload.multipartId;
  const { id, objectKey: key, bytesExpected: bytes, partSize, contentType } = upload;
  const objects = storageOf(app);
  const made = await objects.createMultipart(key, { bytes, partSize: partSize ?? PART_BYTES, contentType });
  const kept = await app.write(async (tx) => {
    const first = and(eq(uploads.id, id), isNull(uploads.multipartId), eq(uploads.status, "pending"));
    const set = await tx.update(uploads).set({ multipartId: made }).where(first).returning().get();
    return set ?? (await rowOf(tx, id));
  });
  if (kept?.multipartId === made) return made;
  // Somebody else was faster, or the upload is over.
  await objects.abortMultipart(key, made);
  if (kept?.multipartId && kept.status === "pending") return kept.multipartId;
  throw new HttpError(409, "upload_conflict", "The upload is over; start a new one.");
}

const rowOf = (db: Db, id: number): Promise<UploadRow | undefined> =>
  db.select().from(uploads).where(eq(uploads.id, id)).get();

/** The parts held whole; none of an upload that storage knows no more. */
export async function partsOf(app: App, { objectKey, multipartId }: UploadRow): Promise<Part[]> {
  if (multipartId === null) return [];
  try {
    return await storageOf(app).listParts(objectKey, multipartId);
  } catch (error) {
    if (error instanceof NoSuchMultipart) return [];
    throw error;
  }
}

/** Removes what storage holds of uploads that are over. What a crash keeps from it is swept. */
export async function dropParts(app: App, rows: readonly UploadRow[]): Promise<void> {
  for (const { id, objectKey, multipartId, mode } of rows) {
    const { objects } = app;
    if (!objects) continue;
    try {
      if (mode !== "multipart") await objects.appends?.discard(objectKey);
      if (multipartId !== null) await uploadLock(app).inTurn(id, () => objects.abortMultipart(objectKey, multipartId));
    } catch (error) {
      app.log.warn({ err: error, upload_id: id }, "the parts of an upload that is over could not be removed yet");
    }
  }
}
