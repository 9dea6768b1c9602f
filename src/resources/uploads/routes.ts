import type { AssetRow, UploadRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { route } from "../../http/route.ts";
import { storageOf } from "../../http/storage.ts";
import { notFound } from "../../lib/errors.ts";
import { completeUpload } from "./complete.ts";
import { initiate } from "./initiate.ts";
import { getUpload } from "./queries.ts";
import {
  Complete,
  CompletedUpload,
  Initiate,
  InitiatedUpload,
  toCompletedUpload,
  toPut,
  toUpload,
  Upload,
  UploadParams,
} from "./schema.ts";

const base = "/api/v1/uploads";
const shared = { scope: "assets:write", limit: "uploads", tag: "Uploads" } as const;

export const uploadRoutes = [
  route({
    ...shared,
    method: "POST",
    path: `${base}/initiate`,
    summary: "Start a direct upload; the answer says where to PUT the bytes",
    body: Initiate,
    // The address is a credential: it is signed anew for a repeat, not kept.
    idempotent: {
      secretFields: ["upload_url", "upload_method", "upload_headers"],
      restore: async ({ app, caller }, body) => {
        const found = await getUpload(app.db, caller, (body as { id: number }).id);
        return found ? { ...(body as object), ...toPut(await signPut(app, found.upload)) } : body;
      },
    },
    responses: { 201: InitiatedUpload },
    errors: { 404: ["not_found"], 422: ["idempotency_key_reused"], 503: ["storage_not_configured"] },
    async handle({ app, caller, body, commit }) {
      storageOf(app);
      return commit(async (tx) => {
        const { upload, asset } = await initiate(tx, app, caller, body);
        return toUpload(upload, asset.externalId, await signPut(app, upload));
      });
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/:id/complete`,
    summary: "Say that all bytes are there; queues the transcoding job",
    params: UploadParams,
    body: Complete,
    responses: { 200: CompletedUpload },
    errors: { 409: ["upload_conflict"], 422: ["bytes_mismatch"], 503: ["storage_not_configured"] },
    async handle({ app, caller, params, body }) {
      const { upload, asset, job } = await completeUpload(app, caller, params.id, body.bytes_received);
      return toCompletedUpload(upload, asset, job);
    },
  }),
  route({
    method: "GET",
    path: `${base}/:id`,
    scope: "assets:write",
    tag: "Uploads",
    summary: "The state of an upload",
    params: UploadParams,
    responses: { 200: Upload },
    handle: async ({ app, caller, params }) =>
      signedUpload(app, (await getUpload(app.db, caller, params.id)) ?? notFound("upload")),
  }),
];

/** With the address to PUT to while it can still be used. */
async function signedUpload(app: App, { upload, asset }: { upload: UploadRow; asset: AssetRow }) {
  if (upload.status !== "pending" || upload.expiresAt <= app.clock.now())
    return toUpload(upload, asset.externalId, null);
  return toUpload(upload, asset.externalId, await signPut(app, upload));
}

const signPut = (app: App, { objectKey, contentType, bytesExpected, expiresAt }: UploadRow) =>
  storageOf(app).signPut(objectKey, { expiresAt: new Date(expiresAt), maxBytes: bytesExpected, contentType });
