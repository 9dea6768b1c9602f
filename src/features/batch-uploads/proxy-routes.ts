import { createHash } from "node:crypto";
import { HttpError, notFound } from "#lib/base";
import { type Context, route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { BatchUpload, RecordedPart } from "#protocol/batch.ts";
import { bodyFailed, bodyOf, tooLarge } from "../uploads/body.ts";
import { forgetPart, multipartOf, openBatch, partBytes, recordPart, storageKey } from "./batch-upload.ts";
import { completeIntent, markCompleted } from "./complete.ts";
import { getIntent, requirePending, type UploadTarget } from "./queries.ts";
import { IntentParams, MAX_PROXY_BYTES, PartParams, ProxyComplete, RawBytes, toIntent } from "./schema.ts";

const base = "/api/v1/ingest_batches/:id/uploads/:upload_id";
const shared = { scope: "assets:write", batchToken: true, tag: "Ingest batches" } as const;
const rawBody = { "application/octet-stream": RawBytes };
const errors = {
  400: ["incomplete_body"],
  409: ["batch_conflict", "upload_conflict"],
  413: ["payload_too_large"],
  422: ["bytes_mismatch", "sha256_mismatch", "validation_failed"],
  503: ["storage_not_configured"],
};

/**
 * For clients that can reach this service but not the storage. Bytes are streamed through; a part is at most about 16
 * MiB.
 */
export const proxyRoutes = [
  route({
    ...shared,
    method: "PUT",
    path: `${base}/proxy`,
    operationId: "uploadBatchObject",
    summary: "Upload a small object through the server in one request",
    params: IntentParams,
    raw: true,
    rawBody,
    responses: { 200: BatchUpload },
    errors,
    async handle(context) {
      const { app, caller, params } = context;
      const target = await proxied(context, params);
      const { bytesExpected, sha256 } = target.batchUpload;
      if (bytesExpected > MAX_PROXY_BYTES)
        throw new HttpError(
          409,
          "upload_conflict",
          `Objects over ${MAX_PROXY_BYTES} bytes are uploaded in parts, to proxy_parts.`,
        );
      const length = lengthOf(context, bytesExpected);
      if (length !== undefined && length !== bytesExpected) mismatch(length, bytesExpected);
      const body = bodyOf(context);
      const hash = createHash("sha256");
      let received = 0;
      body.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (sha256 !== null) hash.update(chunk);
      });
      // Waits for a concurrent write of the same upload.
      body.pause();
      const confirm = async () => {
        if (received !== bytesExpected) mismatch(received, bytesExpected);
        if (sha256 !== null && hash.digest("hex") !== sha256)
          throw new HttpError(
            422,
            "sha256_mismatch",
            "The SHA-256 of the bytes differs from the announced one; nothing was stored.",
          );
        const now = (await getIntent(app.db, caller, params.id, params.upload_id)) ?? notFound("upload");
        requirePending(now.batchUpload);
        await openBatch(app, caller, params.id);
      };
      const key = storageKey(target.batch, target.batchUpload);
      const { contentType } = target.batchUpload;
      await receiving(context, () =>
        storageOf(app).put(key, body, { maxBytes: bytesExpected, bytes: bytesExpected, contentType, confirm }),
      );
      return toIntent(await app.write((tx) => markCompleted(tx, app, target.batchUpload)));
    },
  }),
  route({
    ...shared,
    method: "PUT",
    path: `${base}/proxy_parts/:part_number`,
    operationId: "uploadBatchPart",
    summary: "Upload one part of an object through the server",
    params: PartParams,
    raw: true,
    rawBody,
    responses: { 200: RecordedPart },
    errors,
    async handle(context) {
      const { app, params } = context;
      const { batch, batchUpload } = await proxied(context, params);
      const maxBytes = partBytes(batchUpload, params.part_number);
      const length = lengthOf(context, maxBytes);
      if (length !== undefined && length !== maxBytes) mismatch(length, maxBytes);
      const multipartId = await multipartOf(app, batch, batchUpload);
      await forgetPart(app, batchUpload, params.part_number);
      const options = { maxBytes, bytes: length };
      const part = await receiving(context, () =>
        storageOf(app).putPart(
          storageKey(batch, batchUpload),
          multipartId,
          params.part_number,
          bodyOf(context),
          options,
        ),
      );
      if (part.bytes !== maxBytes) mismatch(part.bytes, maxBytes);
      await recordPart(app, batchUpload, part);
      return { part_number: part.partNumber, bytes: part.bytes, etag: part.etag };
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/proxy_complete`,
    operationId: "completeBatchParts",
    summary: "Complete an object uploaded in parts through the server",
    params: IntentParams,
    body: ProxyComplete,
    responses: { 200: BatchUpload },
    errors: { 409: errors[409], 422: ["bytes_mismatch"], 503: errors[503] },
    async handle({ app, caller, params, body }) {
      storageOf(app);
      const at = { batchId: params.id, uploadId: params.upload_id };
      const { batchUpload } = (await getIntent(app.db, caller, at.batchId, at.uploadId)) ?? notFound("upload");
      requireProxy(batchUpload.mode);
      const ending = { partCount: body.part_count, bytesReceived: body.bytes_received };
      return toIntent(await completeIntent(app, caller, at, ending));
    },
  }),
];

function requireProxy(mode: string): void {
  if (mode !== "proxy") throw new HttpError(409, "upload_conflict", `This upload has mode ${mode}, not proxy.`);
}

/** A pending upload that goes through this service. */
async function proxied(
  { app, caller }: Context,
  { id, upload_id }: { id: number; upload_id: number },
): Promise<UploadTarget> {
  storageOf(app);
  const batchUpload = (await getIntent(app.db, caller, id, upload_id)) ?? notFound("upload");
  const batch = await openBatch(app, caller, id);
  requireProxy(batchUpload.batchUpload.mode);
  requirePending(batchUpload.batchUpload);
  return { batch, batchUpload: batchUpload.batchUpload };
}

const mismatch = (received: number, expected: number): never => {
  throw new HttpError(422, "bytes_mismatch", `Received ${received} bytes instead of ${expected}.`);
};

/** The size that the client declares, if any. Throws 413 when it is too large. */
function lengthOf({ headers }: Context, maxBytes: number): number | undefined {
  const length = headers.get("content-length");
  if (length !== null && Number(length) > maxBytes) tooLarge(maxBytes);
  return length === null ? undefined : Number(length);
}

async function receiving<T>({ incoming }: Context, put: () => Promise<T>): Promise<T> {
  try {
    return await put();
  } catch (error) {
    return bodyFailed(error, incoming);
  }
}
