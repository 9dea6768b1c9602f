import type { App } from "#app.ts";
import { requireActiveTenant } from "#features/tenants/active.ts";
import { HttpError, notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import type { Context } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { UploadRow } from "#storage/db/schema.ts";
import { NoSuchMultipart, ObjectTooLarge, OffsetMismatch, PartsMismatch } from "#storage/objects/store.ts";
import { bodyOf, tooLarge } from "../body.ts";
import { completeUpload } from "../complete.ts";
import { getUpload } from "../queries.ts";
import { discardEnded } from "../sweep-parts.ts";
import { checksumOf } from "./headers.ts";

export function appendsOf(app: App) {
  const { appends } = storageOf(app);
  return appends ?? notFound("upload");
}

/**
 * Throws 404 for an upload that was not created by tus; 410 for one that has ended ("Server SHOULD respond with 404 or
 * 410").
 */
export async function tusUpload(app: App, caller: Caller, id: number): Promise<UploadRow> {
  const { upload } = (await getUpload(app.db, caller, id)) ?? notFound("upload");
  if (upload.mode !== "tus") notFound("upload");
  if (upload.status === "completed") return upload;
  if (upload.status === "pending" && upload.expiresAt > app.clock.now()) return upload;
  throw new HttpError(410, "upload_over", "The upload has expired or was aborted; create a new one.");
}

/** The offset. When all bytes are stored the upload is completed, in case a crash prevented that. */
export async function offsetOf(app: App, caller: Caller, upload: UploadRow): Promise<number> {
  if (upload.status === "completed") return upload.bytesExpected;
  const offset = await appendsOf(app).settled(upload.objectKey);
  if (offset === null) {
    const info = await storageOf(app).head(upload.objectKey);
    if (info?.bytes !== upload.bytesExpected) return 0;
  } else if (offset < upload.bytesExpected) return offset;
  return finish(app, caller, upload);
}

async function finish(app: App, caller: Caller, upload: UploadRow): Promise<number> {
  const { id, objectKey, bytesExpected } = upload;
  const confirm = async () => {
    if ((await tusUpload(app, caller, id)).status !== "pending") throw new NoSuchMultipart();
    // The key was valid when the request began.
    await requireActiveTenant(app, upload.tenantId);
  };
  try {
    await appendsOf(app).finish(objectKey, bytesExpected, { confirm });
  } catch (error) {
    // A concurrent request was faster, or a crash occurred between the object and its row.
    if (!(error instanceof NoSuchMultipart)) throw error;
  }
  await completeUpload(app, caller, id, bytesExpected);
  return bytesExpected;
}

/** Appends the request's body at `offset`; returns the new offset. */
export async function appendBody(context: Context, upload: UploadRow, offset: number): Promise<number> {
  const { app, caller, headers, incoming } = context;
  const rest = upload.bytesExpected - offset;
  if (upload.status === "completed") return upload.bytesExpected;
  if (Number(headers.get("content-length") ?? 0) > rest) return tooLarge(upload.bytesExpected);
  const before = (await appendsOf(app).settled(upload.objectKey)) ?? 0;
  if (before !== offset) throw conflict(before);
  // A request whose connection is gone must not interrupt the one that replaced it, possibly in another process.
  if (isCutOff(incoming)) throw incompleteBody();
  try {
    const length = headers.get("content-length");
    const bytes = length === null ? undefined : Number(length);
    const options = { offset, maxBytes: rest, bytes, ...checksumOf(headers) };
    const newOffset = await appendsOf(app).append(upload.objectKey, bodyOf(context), options);
    return newOffset < upload.bytesExpected ? newOffset : await finish(app, caller, upload);
  } catch (error) {
    await discardEnded(app, upload.objectKey);
    if (error instanceof ObjectTooLarge) return tooLarge(upload.bytesExpected);
    // The writer was stopped because the upload has ended, which is the better answer.
    if (!(error instanceof HttpError && error.status !== 409)) await tusUpload(app, caller, upload.id);
    if (error instanceof OffsetMismatch) throw conflict(error.held);
    if (error instanceof NoSuchMultipart || error instanceof PartsMismatch)
      throw new HttpError(409, "upload_conflict", error.message);
    if (isCutOff(incoming)) throw incompleteBody();
    throw error;
  }
}

const isCutOff = (incoming: Context["incoming"]) => incoming?.destroyed === true && !incoming.complete;

const incompleteBody = () =>
  new HttpError(400, "incomplete_body", "The request body ended early; query the offset and resume.");

const conflict = (offset: number) =>
  new HttpError(409, "upload_conflict", `The upload's offset is ${offset}; resume from there.`, {
    headers: { "upload-offset": String(offset) },
  });
