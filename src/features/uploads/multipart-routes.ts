import { invalid, iso, notFound } from "#lib/base";
import { Reply, route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { CompleteMultipart, InitiatedMultipart, SignedPart, SignPart } from "#protocol/upload.ts";
import { captionWarnings } from "../subtitles/caption-request.ts";
import { abortUpload } from "./abort.ts";
import { completeMultipart } from "./complete-multipart.ts";
import { initiate } from "./initiate.ts";
import { multipartIdOf, partCountOf, partSizeFor, requireMultipart, requirePending } from "./multipart.ts";
import { getUpload } from "./queries.ts";
import { CompletedUpload, Initiate, toCompletedUpload, toUpload, UploadParams } from "./schema.ts";

const base = "/api/v1/uploads";
const shared = { scope: "assets:write", tag: "Uploads" } as const;

/** Multipart upload of a source: parts in any order, concurrently, each repeatable. */
export const multipartRoutes = [
  route({
    ...shared,
    limit: "uploads",
    method: "POST",
    path: `${base}/initiate_multipart`,
    operationId: "initiateMultipartUpload",
    summary: "Initiate a multipart upload",
    body: Initiate,
    idempotent: {
      restore: async ({ app, caller }, body) => {
        const upload = await getUpload(app.db, caller, (body as { id: number }).id);
        return upload ? { ...(body as object), upload_id: await multipartIdOf(app, upload.upload) } : body;
      },
    },
    responses: { 201: InitiatedMultipart },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      409: ["upload_conflict"],
      422: ["idempotency_key_reused"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, body, commit }) {
      storageOf(app);
      const how = { mode: "multipart", partSize: partSizeFor(body.bytes_expected) } as const;
      const warnings = await captionWarnings(app, body.captions);
      const created = await commit(async (tx) => {
        const { upload, asset } = await initiate(tx, app, caller, body, how);
        const shown = { early_playback: asset.earlyPlayback, ...warnings };
        return { ...toUpload(upload, asset.externalId, null), ...shown };
      });
      if (created instanceof Reply) return created;
      const { upload } = (await getUpload(app.db, caller, created.id)) ?? notFound("upload");
      // The row is written before storage is called: a row without parts can be repaired, parts without a row only
      // swept.
      return { ...created, upload_id: await multipartIdOf(app, upload) };
    },
  }),
  route({
    // Not limited like other routes: a fast connection sends more parts a minute than clients start uploads.
    ...shared,
    method: "POST",
    path: `${base}/:id/sign_part`,
    operationId: "signUploadPart",
    summary: "Get a presigned URL for one part",
    params: UploadParams,
    body: SignPart,
    responses: { 200: SignedPart },
    errors: { 409: ["upload_conflict"], 503: ["storage_not_configured"] },
    async handle({ app, caller, params, body: { part_number } }) {
      const objects = storageOf(app);
      const { upload } = (await getUpload(app.db, caller, params.id)) ?? notFound("upload");
      requireMultipart(upload);
      requirePending(upload, app.clock.now());
      const { objectKey, bytesExpected, expiresAt, partSize } = upload;
      if (part_number > partCountOf(upload)) invalid("part_number", `must be at most ${partCountOf(upload)}`);
      const size = partSize ?? bytesExpected;
      const signed = await objects.signPart(objectKey, await multipartIdOf(app, upload), part_number, {
        expiresAt: new Date(expiresAt),
        maxBytes: Math.min(size, bytesExpected - (part_number - 1) * size),
      });
      const { url, method, headers } = signed;
      return { part_number, url, method, headers, expires_at: iso(signed.expiresAt.getTime()) };
    },
  }),
  route({
    ...shared,
    limit: "uploads",
    method: "POST",
    path: `${base}/:id/complete_multipart`,
    operationId: "completeMultipartUpload",
    summary: "Complete a multipart upload and queue the transcoding job",
    params: UploadParams,
    body: CompleteMultipart,
    responses: { 200: CompletedUpload },
    errors: {
      403: ["quota_exceeded"],
      409: ["upload_conflict"],
      422: ["bytes_mismatch"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, params, body }) {
      storageOf(app);
      const parts = body.parts.map(({ part_number: partNumber, etag }) => ({ partNumber, etag }));
      const done = await completeMultipart(app, caller, params.id, { parts, bytesReceived: body.bytes_received });
      return toCompletedUpload(done.upload, done.asset, done.job);
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/:id/abort_multipart`,
    operationId: "abortMultipartUpload",
    summary: "Abort a multipart upload",
    params: UploadParams,
    responses: { 204: null },
    errors: { 409: ["upload_conflict"], 503: ["storage_not_configured"] },
    async handle({ app, caller, params }) {
      storageOf(app);
      await abortUpload(app, caller, params.id, requireMultipart);
    },
  }),
];
