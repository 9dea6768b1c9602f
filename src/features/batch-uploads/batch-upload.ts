import { and, eq, isNull, sql } from "drizzle-orm";
import type * as v from "valibot";
import { type App, lockNamespace } from "#app.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { batchPrefix } from "#model/object-keys.ts";
import type { Caller } from "#platform/http/caller.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { NewBatchUpload } from "#protocol/batch.ts";
import type { Db } from "#storage/db/open.ts";
import { type BatchRow, type BatchUploadRow, batchParts, batchUploads, uploadBatches } from "#storage/db/schema.ts";
import type { Part, SignedRequest } from "#storage/objects/store.ts";
import { NoSuchMultipart } from "#storage/objects/store.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireStorage } from "../tenants/quota.ts";
import { partSizeFor } from "../uploads/multipart.ts";
import { forgetParts } from "./forget-parts.ts";
import { getBatch, intentOfKey, requireOpen } from "./queries.ts";
import { ADDRESS_SECONDS, MAX_INTENTS, MAX_PROXY_BYTES, MAX_PUT_BYTES } from "./schema.ts";

const MAX_ABORTED = 10_000;

type UploadRequest = v.InferOutput<typeof NewBatchUpload>;

/** Concurrent completion and abortion of an upload would delete each other's parts. By id. */
export const batchUploadLock = lockNamespace<number>("batchUpload");

export const storageKey = (batch: BatchRow, { objectKey }: Pick<BatchUploadRow, "objectKey">) =>
  batchPrefix(batch) + objectKey;

/** An open batch; a request for it renews its lease once half of it has passed. */
export async function openBatch(app: App, caller: Caller, id: number): Promise<BatchRow> {
  const batch = (await getBatch(app.db, caller, id)) ?? notFound("batch");
  const now = app.clock.now();
  requireOpen(batch, now);
  const leaseMs = batch.leaseSeconds * 1000;
  if (batch.expiresAt - now > leaseMs / 2) return batch;
  return app.write(async (tx) => {
    const still = (await getBatch(tx, caller, id)) ?? notFound("batch");
    requireOpen(still, now);
    const set = { expiresAt: Math.max(still.expiresAt, now + leaseMs), updatedAt: now };
    return tx.update(uploadBatches).set(set).where(eq(uploadBatches.id, id)).returning().get();
  });
}

/**
 * The upload of an object: the existing one, to resume, when size, type and digest are the same; else a new one that
 * replaces it. `replaced` is the aborted one.
 */
export async function createBatchUpload(
  tx: Db,
  app: App,
  { caller, batchId, wish }: { caller: Caller; batchId: number; wish: UploadRequest },
): Promise<{ batchUpload: BatchUploadRow; replaced: BatchUploadRow | null; isNew: boolean }> {
  const batch = (await getBatch(tx, caller, batchId)) ?? notFound("batch");
  const now = app.clock.now();
  requireOpen(batch, now);
  const how = modeOf(app, wish);
  const before = await intentOfKey(tx, batch.id, wish.object_key);
  if (before && isSame(before, wish, how.mode)) return { batchUpload: before, replaced: null, isNew: false };
  const tenant = await requireTenant(tx, { kind: "admin" }, batch.tenantId);
  requireStorage(app, tenant, wish.bytes_expected, { replacing: before?.bytesExpected ?? 0 });
  if (before) await releaseUpload(tx, app, before);
  else if (batch.uploadCount >= MAX_INTENTS)
    throw new HttpError(
      409,
      "batch_conflict",
      `The batch has ${MAX_INTENTS} objects; create another batch for the rest.`,
    );
  await requireFewerAborted(tx, batch.id);
  if (!before) await countObjects(tx, batch.id, 1);
  const batchUpload = await tx
    .insert(batchUploads)
    .values({
      tenantId: batch.tenantId,
      batchId: batch.id,
      objectKey: wish.object_key,
      contentType: wish.content_type,
      bytesExpected: wish.bytes_expected,
      sha256: wish.sha256 ?? null,
      ...how,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  return { batchUpload, replaced: before ?? null, isNew: true };
}

/** Aborted uploads stay until their batch ends, and are not among its objects. */
async function requireFewerAborted(tx: Db, batchId: number): Promise<void> {
  const rows = await tx.all(
    sql`SELECT 1 FROM ingest_uploads WHERE batch_id = ${batchId} AND status = 'aborted' LIMIT 1 OFFSET ${MAX_ABORTED - 1}`,
  );
  if (rows.length === 0) return;
  const message = `The batch has ${MAX_ABORTED} aborted uploads; create another batch for the rest.`;
  throw new HttpError(409, "batch_conflict", message);
}

function modeOf(
  app: App,
  { mode, multipart, bytes_expected: bytes }: UploadRequest,
): Pick<BatchUploadRow, "mode" | "partSize"> {
  if (bytes > app.config.max_upload_bytes) invalid("bytes_expected", `must be at most ${app.config.max_upload_bytes}`);
  if (multipart === true && mode === "put") invalid("mode", "must not be set for multipart uploads");
  const chosen = mode ?? (multipart || bytes > MAX_PUT_BYTES ? "multipart" : "put");
  if (chosen === "put" && bytes > MAX_PUT_BYTES)
    invalid("mode", `must be multipart for more than ${MAX_PUT_BYTES} bytes`);
  if (chosen === "multipart" && bytes === 0) invalid("bytes_expected", "must be at least 1 for a multipart upload");
  const isInParts = chosen === "multipart" || (chosen === "proxy" && bytes > MAX_PROXY_BYTES);
  // A smaller object may be uploaded either way.
  return { mode: chosen, partSize: isInParts || chosen === "proxy" ? partSizeFor(bytes) : null };
}

const isSame = (row: BatchUploadRow, wish: UploadRequest, mode: BatchUploadRow["mode"]) =>
  row.bytesExpected === wish.bytes_expected &&
  row.contentType === wish.content_type &&
  row.sha256 === (wish.sha256 ?? null) &&
  (row.status === "completed" || row.mode === mode);

const countObjects = (tx: Db, batchId: number, by: number) =>
  tx
    .update(uploadBatches)
    .set({ uploadCount: sql`${uploadBatches.uploadCount} + ${by}` })
    .where(eq(uploadBatches.id, batchId));

async function releaseUpload(tx: Db, app: App, { id }: BatchUploadRow): Promise<void> {
  const set = { status: "aborted" as const, updatedAt: app.clock.now() };
  await tx.update(batchUploads).set(set).where(eq(batchUploads.id, id));
  await forgetParts(tx, id);
}

/** The bytes are gone from storage: the client sees that they are missing, and may upload them again. */
export const markMissing = (app: App, id: number): Promise<boolean> =>
  app.write(async (tx) => {
    const row = await tx.select().from(batchUploads).where(eq(batchUploads.id, id)).get();
    if (row?.status !== "completed") return false;
    await releaseUpload(tx, app, row);
    await countObjects(tx, row.batchId, -1);
    return true;
  });

/** Idempotent; throws 409 for an upload that is complete. */
export async function abortBatchUpload(app: App, batch: BatchRow, batchUpload: BatchUploadRow): Promise<void> {
  const aborted = await app.write(async (tx) => {
    const row = await tx.select().from(batchUploads).where(eq(batchUploads.id, batchUpload.id)).get();
    if (!row) return notFound("upload");
    if (row.status === "completed") throw new HttpError(409, "upload_conflict", "The upload is already completed.");
    if (row.status === "aborted") return row;
    await releaseUpload(tx, app, row);
    await countObjects(tx, batch.id, -1);
    return row;
  });
  await removeBytes(app, batch, aborted);
}

/** Deletes the bytes of an aborted upload. What a crash leaves is deleted with the batch. */
export async function removeBytes(app: App, batch: BatchRow, batchUpload: BatchUploadRow): Promise<void> {
  const objects = storageOf(app);
  const key = storageKey(batch, batchUpload);
  try {
    await batchUploadLock(app).withLock(batchUpload.id, async () => {
      if (batchUpload.multipartId !== null) await objects.abortMultipart(key, batchUpload.multipartId);
      const heir = await intentOfKey(app.db, batch.id, batchUpload.objectKey);
      if (!heir || heir.status === "pending") await objects.delete(key);
    });
  } catch (error) {
    app.log.warn({ err: error, batch_id: batch.id }, "the objects of an aborted upload could not be deleted yet");
  }
}

/** The URL to PUT to: storage itself, valid for an hour, or this service. */
export async function uploadTarget(
  app: App,
  batch: BatchRow,
  batchUpload: BatchUploadRow,
): Promise<SignedRequest | null> {
  if (batchUpload.status !== "pending" || batchUpload.mode === "multipart") return null;
  const { contentType, bytesExpected: maxBytes } = batchUpload;
  const expiresAt = uploadExpiry(app, batch);
  if (batchUpload.mode === "put")
    return storageOf(app).signPut(storageKey(batch, batchUpload), { expiresAt, maxBytes, contentType });
  const url = `${app.baseUrl()}/api/v1/ingest_batches/${batch.id}/uploads/${batchUpload.id}/proxy`;
  return { url, method: "PUT", headers: { "content-type": contentType }, expiresAt: new Date(batch.expiresAt) };
}

export const uploadExpiry = (app: App, { expiresAt }: BatchRow) =>
  new Date(Math.min(expiresAt, app.clock.now() + ADDRESS_SECONDS * 1000));

/** The storage's multipart id of an upload, created with its first part. */
export async function multipartOf(app: App, batch: BatchRow, batchUpload: BatchUploadRow): Promise<string> {
  if (batchUpload.multipartId !== null) return batchUpload.multipartId;
  return batchUploadLock(app).withLock(batchUpload.id, async () => {
    const objects = storageOf(app);
    const { id, bytesExpected: bytes, partSize, contentType } = batchUpload;
    const now = await app.db.select().from(batchUploads).where(eq(batchUploads.id, id)).get();
    if (now?.multipartId) return now.multipartId;
    const key = storageKey(batch, batchUpload);
    const multipart = await objects.createMultipart(key, { bytes, partSize: partSize ?? bytes, contentType });
    const first = and(eq(batchUploads.id, id), isNull(batchUploads.multipartId), eq(batchUploads.status, "pending"));
    const updated = await app.write(async (tx) =>
      tx.update(batchUploads).set({ multipartId: multipart }).where(first).returning().get(),
    );
    if (updated) return multipart;
    await objects.abortMultipart(key, multipart);
    throw new HttpError(409, "upload_conflict", "The upload has ended.");
  });
}

/** The complete parts in storage; empty when storage no longer knows the multipart upload. */
export async function storedParts(app: App, batch: BatchRow, batchUpload: BatchUploadRow): Promise<Part[]> {
  if (batchUpload.multipartId === null) return [];
  try {
    return await storageOf(app).listParts(storageKey(batch, batchUpload), batchUpload.multipartId);
  } catch (error) {
    if (error instanceof NoSuchMultipart) return [];
    throw error;
  }
}

/** Size of part `number`; throws 422 for a part that the upload does not have. */
export function partBytes({ bytesExpected, partSize }: BatchUploadRow, number: number): number {
  if (partSize === null) throw new HttpError(409, "upload_conflict", "This is not a multipart upload.");
  const count = Math.max(1, Math.ceil(bytesExpected / partSize));
  if (number > count) invalid("part_number", `must be at most ${count}`);
  return Math.min(partSize, bytesExpected - (number - 1) * partSize);
}

/** When overwriting a part fails, the old one may be lost. */
export const forgetPart = (app: App, { id }: BatchUploadRow, partNumber: number) =>
  app.write(async (tx) =>
    tx.delete(batchParts).where(and(eq(batchParts.uploadId, id), eq(batchParts.partNumber, partNumber))),
  );

/** Reports a part as missing until it is put again. */
export const recordPart = (app: App, { id }: BatchUploadRow, { partNumber, etag, bytes }: Part) =>
  app.write(async (tx) =>
    tx
      .insert(batchParts)
      .values({ uploadId: id, partNumber, etag, bytes })
      .onConflictDoUpdate({ target: [batchParts.uploadId, batchParts.partNumber], set: { etag, bytes } }),
  );
