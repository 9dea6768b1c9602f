import { Readable } from "node:stream";
import { create } from "content-disposition";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { ownerOf } from "#model/object-keys.ts";
import { revoked } from "#platform/http/revoked-url.ts";
import { type Context, Reply, type Route, route } from "#platform/http/route.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { UploadRow } from "#storage/db/schema.ts";
import { verifyUrl } from "#storage/objects/signed-url.ts";
import { urlSigning } from "#storage/objects/url-signing.ts";
import { requireActiveTenant, requireTenantKept } from "../tenants/active.ts";
import { leaseLock, requireUrlLease } from "../transcoding/lease-urls.ts";
import { bodyFailed, bodyOf, tooLarge } from "./body.ts";
import { lengthOfPart, parseContentRange, putChunk } from "./chunk.ts";
import { uploadOfKey } from "./queries.ts";
import { discardEnded } from "./sweep-parts.ts";

const path = "/objects/**:key";
/** Any header is allowed, because the URL is the credential. Older browsers do not support `*` alone. */
const cors = { allowHeaders: "Content-Type, Content-Range, Range, *", exposeHeaders: "ETag, Range, Content-Range" };

/**
 * The announced size and the part size of a key that belongs to a batch; null for other keys. Throws 403
 * `address_revoked` or 409 when the batch accepts no more bytes for it.
 */
type FindAnnouncement = (app: App, key: string) => Promise<Announced | null>;
type Announced = { bytesExpected: number; partSize: number | null };

/** Handles local storage's signed URLs. The URL is the credential, as with S3's presigned URLs. */
export const objectRoutes = (takes: FindAnnouncement): Route[] => [
  route({
    method: "PUT",
    path,
    credential: "signed",
    tag: "Objects",
    summary: "Upload an object to a presigned URL",
    raw: true,
    hidden: true,
    cors,
    responses: { 200: null },
    handle: (context) => putObject(context, takes),
  }),
  route({
    method: "GET",
    path,
    credential: "signed",
    tag: "Objects",
    summary: "Download an object from a presigned URL",
    hidden: true,
    cors,
    responses: { 200: null },
    async handle({ app, url, method, headers }) {
      const { key, contentType, filename, lease } = verified(app, "GET", url);
      await (lease === undefined ? requireActiveOwner(app, key) : requireWorker(app, key, lease));
      const extraHeaders: Record<string, string> = filename ? { "content-disposition": create(filename) } : {};
      return serveObject({
        objects: storageOf(app),
        key,
        method,
        headers,
        contentType: contentType ?? "application/octet-stream",
        cacheControl: "private, no-store",
        extraHeaders,
      });
    },
  }),
];

function verified(app: App, method: "GET" | "PUT", url: URL) {
  const request = { url: `${url.pathname}${url.search}`, method, now: new Date(app.clock.now()) };
  const checked = verifyUrl(urlSigning(app.secrets.signing_secret, app.baseUrl), request);
  if (checked.ok) return checked.address;
  const message =
    checked.reason === "expired" ? "This URL has expired; request a new one." : "The signature of this URL is invalid.";
  throw new HttpError(403, checked.reason === "expired" ? "address_expired" : "address_invalid", message);
}

/**
 * Throws 403 `tenant_suspended` for a signed URL of a suspended tenant, however long it is valid, and 404 for one of a
 * deleted tenant.
 */
async function requireActiveOwner(app: App, key: string): Promise<void> {
  const owner = ownerOf(key);
  if (!owner) return;
  await requireActiveTenant(app, owner.tenantId);
  await requireTenantKept(app, owner.tenantId);
}

/**
 * Throws 403 `address_revoked` when the worker has lost its lease, 404 for a deleted tenant. A running job of a suspended
 * tenant continues: otherwise the suspension would use up its attempts, and fail the asset.
 */
async function requireWorker(app: App, key: string, lease: string): Promise<void> {
  const owner = ownerOf(key);
  if (owner) await requireTenantKept(app, owner.tenantId);
  await requireUrlLease(app, lease);
}

async function putObject(context: Context, takes: FindAnnouncement) {
  const { key, maxBytes = 0, part, lease } = verified(context.app, "PUT", context.url);
  if (lease !== undefined) return putLeased(context, { key, maxBytes, lease });
  return receiveBytes(context, { key, maxBytes, part }, takes);
}

type Destination = {
  key: string;
  maxBytes: number;
  part?: { uploadId: string; partNumber: number } | undefined;
  /** Called with the sum of the bytes that have arrived, before they are stored; its error ends the transfer. */
  onBytes?(sum: number): Promise<void>;
};

/** The high water mark is in bytes: it bounds the data that waits for the disk. */
function counted(body: Readable, onBytes: (sum: number) => Promise<void>): Readable {
  let sum = 0;
  async function* chunks() {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      sum += chunk.length;
      await onBytes(sum);
      yield chunk;
    }
  }
  return Readable.from(chunks(), { objectMode: false });
}

/** Stores the bytes of a request: a whole object, the next chunk of one, or a part. The caller has verified the destination. */
export async function receiveBytes(
  context: Context,
  { key, maxBytes, part, onBytes }: Destination,
  takes: FindAnnouncement = async () => null,
): Promise<Reply> {
  const { app, incoming, headers } = context;
  const objects = storageOf(app);
  /** Checked again at the end: during the transfer the upload may have been completed, or have ended. */
  const confirm = async () => {
    await requireActiveOwner(app, key);
    const batchUpload = await takes(app, key);
    const upload = batchUpload ? null : await stillPending(app, key);
    return { upload, announced: batchUpload ?? upload };
  };
  const checked = async () => void (await confirm());
  const { upload, announced } = await confirm();
  const header = headers.get("content-range");
  const range = header === null ? null : parseContentRange(header, announced?.bytesExpected);
  const start = part && announced ? (part.partNumber - 1) * (announced.partSize ?? 0) : 0;
  const partBytes = range && part && announced ? lengthOfPart(context, range, start) : maxBytes;
  if (Number(headers.get("content-length") ?? 0) > maxBytes) return tooLarge(maxBytes);
  const body = onBytes ? counted(bodyOf(context), onBytes) : bodyOf(context);
  try {
    if (range !== null && !part)
      return await putChunk(context, { key, maxBytes, range, body, confirm: checked }).catch(async (error) => {
        if (upload) await discardEnded(app, key);
        throw error;
      });
    const bytes = headers.has("content-length") ? Number(headers.get("content-length")) : undefined;
    if (part) {
      const { etag } = await objects.putPart(key, part.uploadId, part.partNumber, body, {
        maxBytes: Math.min(maxBytes, partBytes),
        bytes,
        confirm: checked,
      });
      return new Reply(200, undefined, { etag });
    }
    const { etag } = await objects.put(key, body, { maxBytes, bytes, confirm: checked });
    if (upload) await objects.appends?.discard(key);
    return new Reply(200, undefined, { etag });
  } catch (error) {
    // The writer was stopped because the upload has ended, which is the better answer.
    if (!(error instanceof HttpError)) await confirm();
    return bodyFailed(error, incoming);
  }
}

/** A worker's result. It is placed under the lock of the lease: a completion never overlaps with it. */
async function putLeased(
  context: Context,
  { key, maxBytes, lease }: { key: string; maxBytes: number; lease: string },
): Promise<Reply> {
  const { app, incoming, headers } = context;
  const confirm = () => requireWorker(app, key, lease);
  await confirm();
  const name = await requireUrlLease(app, lease);
  const bytes = headers.has("content-length") ? Number(headers.get("content-length")) : undefined;
  if ((bytes ?? 0) > maxBytes) return tooLarge(maxBytes);
  const lock = <T>(work: () => Promise<T>) => leaseLock(app).withLock(name, work);
  try {
    const { etag } = await storageOf(app).put(key, bodyOf(context), { maxBytes, bytes, confirm, lock });
    return new Reply(200, undefined, { etag });
  } catch (error) {
    return bodyFailed(error, incoming);
  }
}

/**
 * The upload of a key, which still waits for its bytes. Throws 403 `address_revoked` when it, or its asset, has ended or does
 * not exist, 409 when it is complete.
 */
async function stillPending(app: App, key: string): Promise<UploadRow> {
  const upload = await uploadOfKey(app.db, key);
  if (!upload) return revoked("The upload does not exist any more.");
  if (upload.status === "completed")
    throw new HttpError(409, "upload_conflict", "The upload is completed; its content can no longer change.");
  if (upload.status === "pending" && upload.expiresAt > app.clock.now()) return upload;
  return revoked(`The upload is ${upload.status === "pending" ? "expired" : upload.status}.`);
}
