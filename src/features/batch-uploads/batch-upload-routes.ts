import * as v from "valibot";
import { HttpError, invalid, iso, notFound } from "#lib/base";
import { decodeCursor, page } from "#platform/http/paging.ts";
import { Reply, route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import {
  BatchUpload,
  CompleteBatchUpload,
  ConfirmPart,
  NewBatchUpload,
  NewPart,
  RecordedPart,
} from "#protocol/batch.ts";
import { SignedPart } from "#protocol/upload.ts";
import {
  abortBatchUpload,
  createBatchUpload,
  multipartOf,
  openBatch,
  partBytes,
  recordPart,
  removeBytes,
  storageKey,
  storedParts,
  uploadExpiry,
  uploadTarget,
} from "./batch-upload.ts";
import { completeIntent } from "./complete.ts";
import { getBatch, getIntent, listIntents, recordedParts, requirePending } from "./queries.ts";
import { BatchParams, IntentParams, IntentQuery, PartParams, toIntent } from "./schema.ts";

const base = "/api/v1/ingest_batches/:id/uploads";
// Without a limit: a film has thousands of segments, and a fast connection uploads them within a minute.
const shared = { scope: "assets:write", batchToken: true, tag: "Ingest batches" } as const;
const conflicts = ["batch_conflict", "upload_conflict"];
const off = { 503: ["storage_not_configured"] };

export const intentRoutes = [
  route({
    ...shared,
    method: "POST",
    path: base,
    operationId: "createBatchUpload",
    summary: "Create an object upload, or get a new URL for an existing one",
    params: BatchParams,
    body: NewBatchUpload,
    idempotent: {
      secretFields: ["upload_url", "upload_method", "upload_headers", "upload_expires_at"],
      restore: async ({ app, caller, params }, body) => {
        const { id } = params as { id: number };
        const batchUpload = await getIntent(app.db, caller, id, (body as { id: number }).id);
        if (!batchUpload) return body;
        const put = await uploadTarget(app, batchUpload.batch, batchUpload.batchUpload);
        const { upload_url, upload_method, upload_headers, upload_expires_at } = toIntent(batchUpload.batchUpload, {
          put,
        });
        return { ...(body as object), upload_url, upload_method, upload_headers, upload_expires_at };
      },
    },
    responses: { 201: BatchUpload, 200: BatchUpload },
    errors: { 403: ["quota_exceeded"], 409: ["batch_conflict"], 422: ["idempotency_key_reused"], ...off },
    async handle({ app, caller, params, body, commit }) {
      storageOf(app);
      const batch = await openBatch(app, caller, params.id);
      const request = { caller, batchId: params.id, wish: body };
      const outcome: { replaced?: Awaited<ReturnType<typeof createBatchUpload>>["replaced"] } = {};
      const answer = await commit(async (tx) => {
        const { batchUpload, replaced, isNew } = await createBatchUpload(tx, app, request);
        outcome.replaced = replaced;
        const parts = isNew || batchUpload.partSize === null ? [] : await recordedParts(tx, [batchUpload.id]);
        return new Reply(
          isNew ? 201 : 200,
          toIntent(batchUpload, { parts, put: await uploadTarget(app, batch, batchUpload) }),
        );
      });
      // Bytes of the replaced upload must not be taken for those of the new one.
      if (outcome.replaced) await removeBytes(app, batch, outcome.replaced);
      return answer;
    },
  }),
  route({
    ...shared,
    method: "GET",
    path: base,
    operationId: "listBatchUploads",
    summary: "List the uploads of a batch and their stored parts",
    params: BatchParams,
    query: IntentQuery,
    responses: { 200: v.array(BatchUpload) },
    errors: off,
    async handle(context) {
      const { app, caller, params, query } = context;
      const batch = (await getBatch(app.db, caller, params.id)) ?? notFound("batch");
      const { status } = query;
      return page(context, {
        batches: listIntents(app.db, batch, { status, from: decodeCursor(query.cursor) }),
        isSearch: status !== undefined,
        async toWire(row) {
          const hasParts = row.status === "pending" && row.partSize !== null;
          return toIntent(row, { parts: hasParts ? await recordedParts(app.db, [row.id]) : [] });
        },
      });
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/:upload_id/parts`,
    operationId: "signBatchUploadPart",
    summary: "Get a presigned URL for one part",
    params: IntentParams,
    body: NewPart,
    responses: { 201: SignedPart },
    errors: { 409: conflicts, ...off },
    async handle({ app, caller, params, body }) {
      const objects = storageOf(app);
      const { batchUpload } = (await getIntent(app.db, caller, params.id, params.upload_id)) ?? notFound("upload");
      const batch = await openBatch(app, caller, params.id);
      requirePending(batchUpload);
      if (batchUpload.mode !== "multipart")
        throw new HttpError(
          409,
          "upload_conflict",
          `This upload has mode ${batchUpload.mode}; only multipart uploads have parts.`,
        );
      const number = body.part_number;
      const maxBytes = partBytes(batchUpload, number);
      if (body.bytes !== undefined && body.bytes !== maxBytes)
        invalid("bytes", `must be ${maxBytes} for part ${number}`);
      const options = { expiresAt: uploadExpiry(app, batch), maxBytes };
      const multipartId = await multipartOf(app, batch, batchUpload);
      const { url, method, headers, expiresAt } = await objects.signPart(
        storageKey(batch, batchUpload),
        multipartId,
        number,
        options,
      );
      return { part_number: number, url, method, headers, expires_at: iso(expiresAt.getTime()) };
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/:upload_id/parts/:part_number/complete`,
    operationId: "completeBatchUploadPart",
    summary: "Record a part that storage has confirmed",
    params: PartParams,
    body: ConfirmPart,
    responses: { 200: RecordedPart },
    errors: { 409: conflicts, 422: ["bytes_mismatch"], ...off },
    async handle({ app, caller, params, body }) {
      storageOf(app);
      const { batchUpload } = (await getIntent(app.db, caller, params.id, params.upload_id)) ?? notFound("upload");
      const batch = await openBatch(app, caller, params.id);
      requirePending(batchUpload);
      const maxBytes = partBytes(batchUpload, params.part_number);
      const part = (await storedParts(app, batch, batchUpload)).find(
        ({ partNumber }) => partNumber === params.part_number,
      );
      const bare = (etag: string) => etag.replaceAll('"', "");
      if (!part || bare(part.etag) !== bare(body.etag))
        invalid("etag", "storage has no part with this number and ETag; upload it again", "bytes_mismatch");
      if (part.bytes !== maxBytes)
        invalid("etag", `the part has ${part.bytes} bytes, not ${maxBytes}`, "bytes_mismatch");
      await recordPart(app, batchUpload, part);
      return { part_number: part.partNumber, bytes: part.bytes, etag: part.etag };
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/:upload_id/complete`,
    operationId: "completeBatchUpload",
    summary: "Complete an object upload",
    params: IntentParams,
    body: CompleteBatchUpload,
    responses: { 200: BatchUpload },
    errors: { 409: conflicts, 413: ["payload_too_large"], 422: ["bytes_mismatch"], ...off },
    async handle({ app, caller, params, body }) {
      storageOf(app);
      const parts = body.parts?.map(({ part_number: partNumber, etag }) => ({ partNumber, etag }));
      const at = { batchId: params.id, uploadId: params.upload_id };
      return toIntent(await completeIntent(app, caller, at, { parts, bytesReceived: body.bytes_received }));
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    path: `${base}/:upload_id`,
    operationId: "abortBatchUpload",
    summary: "Abort an object upload",
    params: IntentParams,
    responses: { 204: null },
    errors: { 409: conflicts, ...off },
    async handle({ app, caller, params }) {
      storageOf(app);
      const { batch, batchUpload } =
        (await getIntent(app.db, caller, params.id, params.upload_id)) ?? notFound("upload");
      // An upload that was already aborted stays so, whatever happened to the batch.
      if (batchUpload.status === "pending") await openBatch(app, caller, params.id);
      await abortBatchUpload(app, batch, batchUpload);
    },
  }),
];
