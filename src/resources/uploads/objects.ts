import { create } from "content-disposition";
import type { UploadRow } from "../../../storage/db/schema.ts";
import { verifyUrl } from "../../../storage/objects/signed-url.ts";
import { NoSuchMultipart, ObjectTooLarge, PartsMismatch } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { type Context, Reply, type Route, route } from "../../http/route.ts";
import { serveObject } from "../../http/serve-object.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { ownerOf, parseKey } from "../../lib/object-keys.ts";
import { urlSigning } from "../../lib/url-signing.ts";
import { requireActiveTenant, requireTenantKept } from "../tenants/active.ts";
import { bodyOf, tooLarge } from "./body.ts";
import { lengthOfPart, parseContentRange, putChunk } from "./chunk.ts";
import { uploadOfKey } from "./queries.ts";

const path = "/objects/**:key";
/** Any header is allowed, because the URL is the credential. Older browsers do not support `*` alone. */
const cors = { allowHeaders: "Content-Type, Content-Range, Range, *", exposeHeaders: "ETag, Range, Content-Range" };

/**
 * Throws 409 when the owner of the key, other than an upload, accepts no more bytes for it; else returns the announced
 * size and the part size. Null for a key without an announcement.
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
      const { key, contentType, filename } = verified(app, "GET", url);
      if (!isWorkersSource(key, filename)) await requireActiveOwner(app, key);
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

/** The source URL of a worker has no file name; a download URL has one. */
const isWorkersSource = (key: string, filename: string | undefined) =>
  filename === undefined && ownerOf(key)?.area === "sources";

/**
 * Throws 403 `tenant_suspended` for a signed URL of a suspended tenant, however long it is valid. A running job
 * continues: otherwise the suspension would use up its attempts, and fail the asset.
 */
async function requireActiveOwner(app: App, key: string): Promise<void> {
  const owner = ownerOf(key);
  // Only the worker of an attempt gets URLs for its prefix.
  if (!owner) return;
  if (parseKey(key)?.kind === "attempt") await requireTenantKept(app, owner.tenantId);
  else await requireActiveTenant(app, owner.tenantId);
}

async function putObject(context: Context, takes: FindAnnouncement) {
  const { app, url, incoming, headers } = context;
  const { key, maxBytes = 0, part } = verified(app, "PUT", url);
  const objects = storageOf(app);
  const confirm = async () => {
    await requireActiveOwner(app, key);
    await stillPending(app, key);
    await takes(app, key);
  };
  await requireActiveOwner(app, key);
  const upload = await stillPending(app, key);
  const announced = (await takes(app, key)) ?? upload;
  const header = headers.get("content-range");
  const range = header === null ? null : parseContentRange(header, announced?.bytesExpected);
  const start = part && announced ? (part.partNumber - 1) * (announced.partSize ?? 0) : 0;
  const partBytes = range && part && announced ? lengthOfPart(context, range, start) : maxBytes;
  if (Number(headers.get("content-length") ?? 0) > maxBytes) return tooLarge(maxBytes);
  const body = bodyOf(context);
  try {
    if (range !== null && !part) return await putChunk(context, { key, maxBytes, range, body, confirm });
    const bytes = headers.has("content-length") ? Number(headers.get("content-length")) : undefined;
    if (part) {
      const { etag } = await objects.putPart(key, part.uploadId, part.partNumber, body, {
        maxBytes: Math.min(maxBytes, partBytes),
        bytes,
      });
      return new Reply(200, undefined, { etag });
    }
    // Checked again at the end: during the transfer the upload may have been completed or have expired.
    const { etag } = await objects.put(key, body, { maxBytes, bytes, confirm });
    if (upload) await objects.appends?.discard(key);
    return new Reply(200, undefined, { etag });
  } catch (error) {
    if (error instanceof ObjectTooLarge) return tooLarge(error.maxBytes);
    if (error instanceof NoSuchMultipart || error instanceof PartsMismatch)
      throw new HttpError(409, "upload_conflict", error.message);
    // The client disconnected: no one receives this response, and it is not an error of the server.
    if (incoming?.destroyed && !incoming.complete)
      throw new HttpError(400, "incomplete_body", "The request body ended early; nothing was stored.");
    throw error;
  }
}

/** Throws 409 unless the upload of the key still waits for its bytes. Null for the key of anything else. */
async function stillPending(app: App, key: string): Promise<UploadRow | null> {
  const upload = await uploadOfKey(app.db, key);
  if (!upload || upload.status === "pending") return upload ?? null;
  throw new HttpError(409, "upload_conflict", `The upload is ${upload.status}; its content can no longer change.`);
}
