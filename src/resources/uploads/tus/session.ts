import type { UploadRow } from "../../../../storage/db/schema.ts";
import { NoSuchMultipart, ObjectTooLarge, OffsetMismatch, PartsMismatch } from "../../../../storage/objects/store.ts";
import type { App } from "../../../app.ts";
import type { Caller } from "../../../http/caller.ts";
import type { Context } from "../../../http/route.ts";
import { storageOf } from "../../../http/storage.ts";
import { HttpError, notFound } from "../../../lib/errors.ts";
import { bodyOf, tooLarge } from "../body.ts";
import { completeUpload } from "../complete.ts";
import { getUpload } from "../queries.ts";
import { checksumOf } from "./headers.ts";

export function appendsOf(app: App) {
  const { appends } = storageOf(app);
  return appends ?? notFound("upload");
}

/** 404 for what did not begin by tus; 410 for what is over ("Server SHOULD respond with 404 or 410"). */
export async function tusUpload(app: App, caller: Caller, id: number): Promise<UploadRow> {
  const { upload } = (await getUpload(app.db, caller, id)) ?? notFound("upload");
  if (upload.mode !== "tus") notFound("upload");
  if (upload.status === "completed") return upload;
  if (upload.status === "pending" && upload.expiresAt > app.clock.now()) return upload;
  throw new HttpError(410, "upload_over", "The upload has expired or was given up; start a new one.");
}

/** Bytes held. All of them: the upload is completed, which a crash may have kept from happening before. */
export async function heldOf(app: App, caller: Caller, upload: UploadRow): Promise<number> {
  if (upload.status === "completed") return upload.bytesExpected;
  const held = await appendsOf(app).settled(upload.objectKey);
  if (held === null) {
    const info = await storageOf(app).head(upload.objectKey);
    if (info?.bytes !== upload.bytesExpected) return 0;
  } else if (held < upload.bytesExpected) return held;
  return finish(app, caller, upload);
}

async function finish(app: App, caller: Caller, upload: UploadRow): Promise<number> {
  const { id, objectKey, bytesExpected } = upload;
  const confirm = async () => {
    if ((await tusUpload(app, caller, id)).status !== "pending") throw new NoSuchMultipart();
  };
  try {
    await appendsOf(app).finish(objectKey, bytesExpected, { confirm });
  } catch (error) {
    // Another request was faster, or a crash came between the object and its row.
    if (!(error instanceof NoSuchMultipart)) throw error;
  }
  await completeUpload(app, caller, id, bytesExpected);
  return bytesExpected;
}

/** Appends the request's body at `offset`; answers what is held then. */
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
    const held = await appendsOf(app).append(upload.objectKey, bodyOf(context), options);
    return held < upload.bytesExpected ? held : await finish(app, caller, upload);
  } catch (error) {
    if (error instanceof ObjectTooLarge) return tooLarge(upload.bytesExpected);
    if (error instanceof OffsetMismatch) throw conflict(error.held);
    if (error instanceof NoSuchMultipart || error instanceof PartsMismatch)
      throw new HttpError(409, "upload_conflict", error.message);
    if (isCutOff(incoming)) throw incompleteBody();
    throw error;
  }
}

const isCutOff = (incoming: Context["incoming"]) => incoming?.destroyed === true && !incoming.complete;

const incompleteBody = () =>
  new HttpError(400, "incomplete_body", "The body ended early; ask for the offset to go on from.");

const conflict = (held: number) =>
  new HttpError(409, "upload_conflict", `The upload stands at ${held}; send what follows from there.`, {
    headers: { "upload-offset": String(held) },
  });
