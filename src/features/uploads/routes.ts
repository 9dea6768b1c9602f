import { eq } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { BlockedDestination } from "#lib/network";
import { byId, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { httpClientOf } from "#platform/outbound/app-http-client.ts";
import { Complete, InitiatedUpload, Upload } from "#protocol/upload.ts";
import { type AssetRow, sourceFetches, type UploadRow } from "#storage/db/schema.ts";
import { captionWarnings } from "../subtitles/caption-request.ts";
import { completeUpload } from "./complete.ts";
import { initiate } from "./initiate.ts";
import { listUploads, UploadQuery } from "./list.ts";
import { multipartIdOf, partsOf } from "./multipart.ts";
import { getUpload } from "./queries.ts";
import {
  CompletedUpload,
  FromUrl,
  Initiate,
  toCompletedUpload,
  toParts,
  toPut,
  toUpload,
  UploadParams,
} from "./schema.ts";

const base = "/api/v1/uploads";
const shared = { scope: "assets:write", limit: "uploads", tag: "Uploads" } as const;

export const uploadRoutes = [
  route({
    ...shared,
    method: "POST",
    path: `${base}/initiate`,
    operationId: "initiateUpload",
    summary: "Initiate a direct upload",
    body: Initiate,
    // The URL is a credential: it is signed again for a repeated request, and not stored.
    idempotent: {
      secretFields: ["upload_url", "upload_method", "upload_headers"],
      restore: async ({ app, caller }, body) => {
        const upload = await getUpload(app.db, caller, (body as { id: number }).id);
        return upload ? { ...(body as object), ...toPut(await signPut(app, upload.upload)) } : body;
      },
    },
    responses: { 201: InitiatedUpload },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      422: ["encoding_profile_unknown", "watermark_missing", "idempotency_key_reused"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, body, commit }) {
      storageOf(app);
      const warnings = await captionWarnings(app, body.captions);
      return commit(async (tx) => {
        const { upload, asset } = await initiate(tx, app, caller, body);
        const shown = { early_playback: asset.earlyPlayback, ...warnings };
        return { ...toUpload(upload, asset.externalId, await signPut(app, upload)), ...shown };
      });
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/from_url`,
    operationId: "uploadFromUrl",
    summary: "Upload from a URL: the server fetches the source",
    body: FromUrl,
    idempotent: {},
    responses: { 201: Upload },
    errors: {
      403: ["quota_exceeded"],
      404: ["not_found"],
      422: ["encoding_profile_unknown", "watermark_missing", "idempotency_key_reused"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, body, commit }) {
      storageOf(app);
      const { url, ...fields } = body;
      const filename = fields.filename ?? nameIn(await checked(app, url));
      const warnings = await captionWarnings(app, body.captions);
      return commit(async (tx) => {
        // The size is not known yet.
        const { upload, asset } = await initiate(tx, app, caller, { ...fields, filename, bytes_expected: 0 });
        await tx
          .insert(sourceFetches)
          .values({ uploadId: upload.id, tenantId: upload.tenantId, url, dueAt: app.clock.now() });
        return { ...toUpload(upload, asset.externalId, null), ...warnings };
      });
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/:id/complete`,
    operationId: "completeUpload",
    summary: "Complete an upload and queue the transcoding job",
    params: UploadParams,
    body: Complete,
    responses: { 200: CompletedUpload },
    errors: {
      403: ["quota_exceeded"],
      409: ["upload_conflict"],
      422: ["bytes_mismatch"],
      503: ["storage_not_configured"],
    },
    async handle({ app, caller, params, body }) {
      storageOf(app);
      const { upload: found } = (await getUpload(app.db, caller, params.id)) ?? notFound("upload");
      if (found.mode === "multipart" && found.status === "pending")
        throw new HttpError(409, "upload_conflict", "This is a multipart upload; complete it with complete_multipart.");
      const { upload, asset, job } = await completeUpload(app, caller, params.id, body.bytes_received);
      return toCompletedUpload(upload, asset, job);
    },
  }),
  route({
    method: "GET",
    path: base,
    scope: "assets:write",
    tag: "Uploads",
    operationId: "listUploads",
    summary: "List uploads, newest first",
    query: UploadQuery,
    responses: { 200: v.array(Upload) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (before, limit) => listUploads(app, caller, query, { limit, before }));
      // Without PUT URLs: signing a thousand of them would block other requests.
      return page(context, { batches, toWire: ({ upload, externalId }) => toUpload(upload, externalId, null) });
    },
  }),
  route({
    method: "GET",
    path: `${base}/:id`,
    scope: "assets:write",
    tag: "Uploads",
    operationId: "getUpload",
    summary: "Get an upload",
    params: UploadParams,
    responses: { 200: Upload },
    handle: async ({ app, caller, params }) =>
      signedUpload(app, (await getUpload(app.db, caller, params.id)) ?? notFound("upload")),
  }),
];

/** Throws 422 for a URL that the server may not fetch. */
async function checked(app: App, url: string): Promise<URL> {
  try {
    return (await httpClientOf(app)).check(url);
  } catch (error) {
    if (error instanceof BlockedDestination) return invalid("url", error.message);
    throw error;
  }
}

function nameIn({ pathname, hostname }: URL): string {
  const last = pathname.split("/").findLast((part) => part !== "") ?? hostname;
  try {
    return decodeURIComponent(last).replaceAll("\0", "").slice(0, 500).trim() || hostname;
  } catch {
    return last.slice(0, 500);
  }
}

/** With the PUT URL while the client can still use it. */
async function signedUpload(app: App, { upload, asset }: { upload: UploadRow; asset: AssetRow }) {
  const isPending = upload.status === "pending" && upload.expiresAt > app.clock.now();
  if (upload.mode === "multipart" && isPending && app.objects) {
    const parts = await partsOf(app, upload);
    return { ...toUpload(upload, asset.externalId, null), ...toParts(await multipartIdOf(app, upload), parts) };
  }
  if (upload.mode === "tus" && isPending) {
    const bytes = (await app.objects?.appends?.held(upload.objectKey)) ?? 0;
    return toUpload({ ...upload, bytesReceived: bytes }, asset.externalId, null);
  }
  const isFetched = eq(sourceFetches.uploadId, upload.id);
  const isClients =
    isPending &&
    upload.mode === "put" &&
    !(await app.db.select({ id: sourceFetches.uploadId }).from(sourceFetches).where(isFetched).get());
  if (!isClients) return toUpload(upload, asset.externalId, null);
  return toUpload(upload, asset.externalId, await signPut(app, upload));
}

const signPut = (app: App, { objectKey, contentType, bytesExpected, expiresAt }: UploadRow) =>
  storageOf(app).signPut(objectKey, { expiresAt: new Date(expiresAt), maxBytes: bytesExpected, contentType });
