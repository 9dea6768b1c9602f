import { create } from "content-disposition";
import type { UploadRow } from "../../../storage/db/schema.ts";
import { verifyUrl } from "../../../storage/objects/signed-url.ts";
import { NoSuchMultipart, ObjectTooLarge, PartsMismatch } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { type Context, Reply, type Route, route } from "../../http/route.ts";
import { serveObject } from "../../http/serve-object.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { urlSigning } from "../../lib/url-signing.ts";
import { requireActiveTenant } from "../tenants/active.ts";
import { bodyOf, tooLarge } from "./body.ts";
import { lengthOfPart, parseContentRange, putChunk, requireTotal } from "./chunk.ts";
import { uploadOfKey } from "./queries.ts";

const path = "/objects/**:key";
/** Any header will do: the address is the credential. `*` alone is not known to older browsers. */
const cors = { allowHeaders: "Content-Type, Content-Range, Range, *", exposeHeaders: "ETag, Range, Content-Range" };

/**
 * 409 when whatever the key belongs to, uploads apart, takes no more bytes for it; else how many were announced, and how
 * large its parts are. Null for a key that nothing was announced for.
 */
type Takes = (app: App, key: string) => Promise<Announced | null>;
type Announced = { bytesExpected: number; partSize: number | null };

/** What local storage's signed addresses lead to. The address is the credential (as with S3's presigned ones). */
export const objectRoutes = (takes: Takes): Route[] => [
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
    checked.reason === "expired"
      ? "This address has expired; ask for a new one."
      : "This address was altered or is none of ours.";
  throw new HttpError(403, checked.reason === "expired" ? "address_expired" : "address_invalid", message);
}

/** Keys of artifacts, which only the worker of an attempt gets URLs for. */
const ARTIFACT = /^tenants\/\d+\/assets\/\d+\/\d+-\d+\//;
/** The source URL of a worker has no file name; a download URL has one. */
const isWorkersSource = (key: string, filename: string | undefined) =>
  filename === undefined && /^tenants\/\d+\/sources\//.test(key);

/**
 * 403 `tenant_suspended` for a signed URL of a suspended tenant, however long it is valid. A job that runs already goes on:
 * its attempts would be used up by the suspension, and the asset errored for good.
 */
async function requireActiveOwner(app: App, key: string): Promise<void> {
  const tenantId = /^tenants\/(\d{1,15})\//.exec(key)?.[1];
  if (tenantId !== undefined && !ARTIFACT.test(key)) await requireActiveTenant(app, Number(tenantId));
}

async function putObject(context: Context, takes: Takes) {
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
  const range = header === null ? null : parseContentRange(header);
  if (range && announced) requireTotal(range, announced.bytesExpected);
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
    // Asked again at the end: bytes take their time, and meanwhile the upload may be completed or its time be over.
    const { etag } = await objects.put(key, body, { maxBytes, bytes, confirm });
    if (upload) await objects.appends?.discard(key);
    return new Reply(200, undefined, { etag });
  } catch (error) {
    if (error instanceof ObjectTooLarge) return tooLarge(error.maxBytes);
    if (error instanceof NoSuchMultipart || error instanceof PartsMismatch)
      throw new HttpError(409, "upload_conflict", error.message);
    // The client hung up: nobody reads this answer, and it is no fault of ours.
    if (incoming?.destroyed && !incoming.complete)
      throw new HttpError(400, "incomplete_body", "The body ended early; nothing was kept.");
    throw error;
  }
}

/** 409 unless the upload that the key belongs to still waits for its bytes. Null for the key of anything else. */
async function stillPending(app: App, key: string): Promise<UploadRow | null> {
  const upload = await uploadOfKey(app.db, key);
  if (!upload || upload.status === "pending") return upload ?? null;
  throw new HttpError(409, "upload_conflict", `The upload is ${upload.status}; its bytes can no longer change.`);
}
