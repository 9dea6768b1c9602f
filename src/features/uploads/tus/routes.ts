import type * as v from "valibot";
import { HttpError, invalid } from "#lib/base";
import { type Context, Reply, type Route, route } from "#platform/http/route.ts";
import { validate } from "#platform/http/validate.ts";
import { ASSET_TEXT_NAMES } from "#protocol/asset-fields.ts";
import type { UploadRow } from "#storage/db/schema.ts";
import { abortUpload } from "../abort.ts";
import { mismatch } from "../complete.ts";
import { initiate } from "../initiate.ts";
import { Initiate, UploadParams } from "../schema.ts";
import {
  ALGORITHMS,
  cors,
  EXTENSIONS,
  MEDIA_TYPE,
  metadataOf,
  requireVersion,
  VERSION,
  wholeNumber,
} from "./headers.ts";
import { appendBody, appendsOf, offsetOf, tusUpload } from "./session.ts";

const base = "/api/v1/uploads/tus";
/** The protocol has its own specification, so it is not in the OpenAPI document. */
const common = { tag: "Uploads", hidden: true, raw: true, cors, headers: { "tus-resumable": VERSION } } as const;
const shared = { ...common, scope: "assets:write" } as const;
type UploadContext = Context<v.InferOutput<typeof UploadParams>>;

/** tus 1.0.0, for tus-js-client, Uppy and others. The last byte completes the upload. */
export const tusRoutes: Route[] = [
  route({
    ...common,
    credential: "none",
    method: "OPTIONS",
    path: base,
    summary: "Get the supported tus version and extensions",
    responses: { 204: null },
    handle: ({ app }) =>
      new Reply(204, undefined, {
        "tus-version": VERSION,
        "tus-extension": EXTENSIONS,
        "tus-max-size": String(app.config.max_upload_bytes),
        "tus-checksum-algorithm": ALGORITHMS.join(","),
      }),
  }),
  route({
    ...shared,
    limit: "uploads",
    method: "POST",
    path: base,
    summary: "Create a tus upload",
    responses: { 201: null },
    errors: { 403: ["quota_exceeded"] },
    handle: create,
  }),
  ...(["HEAD", "PATCH", "DELETE", "POST"] as const).map((method) =>
    route({
      ...shared,
      method,
      path: `${base}/:id`,
      params: UploadParams,
      summary: "Get the offset of, append to, or terminate a tus upload",
      responses: { 204: null },
      async handle(context) {
        // Ownership is checked first: another tenant's upload reveals nothing, not even a protocol error.
        const upload = await tusUpload(context.app, context.caller, context.params.id);
        requireVersion(context.headers);
        // "The Server MUST interpret" it, for environments without PATCH or DELETE.
        const meant = method === "POST" ? context.headers.get("x-http-method-override") : method;
        if (meant === "HEAD") return offset(context, upload);
        if (meant === "PATCH") return patch(context, upload);
        if (meant === "DELETE") return terminate(context, upload);
        throw new HttpError(405, "method_not_allowed", "POST requires X-HTTP-Method-Override.", {
          headers: { allow: "HEAD, PATCH, DELETE, POST, OPTIONS" },
        });
      },
    }),
  ),
];

const FIELDS = [...ASSET_TEXT_NAMES, "relative_path", "external_id", "playback_policy", "sha256"] as const;
/** Metadata values are text only. */
const TRUTH: Record<string, boolean> = { true: true, "1": true, false: false, "0": false };

async function create(context: Context): Promise<Reply> {
  const { app, caller, headers } = context;
  requireVersion(headers);
  appendsOf(app);
  if (headers.has("upload-defer-length"))
    invalid("Upload-Defer-Length", "is not supported (see Tus-Extension); send only Upload-Length");
  const bytes = wholeNumber(headers, "upload-length");
  if (bytes === 0) invalid("Upload-Length", "An empty file is not a video");
  const metadata = metadataOf(headers);
  const body = validate(
    Initiate,
    {
      filename: metadata.filename ?? metadata.name ?? "video",
      bytes_expected: bytes,
      content_type: metadata.filetype || metadata.type || undefined,
      ...Object.fromEntries(FIELDS.flatMap((name) => (metadata[name] ? [[name, metadata[name]]] : []))),
      // Uppy's name for it.
      ...(metadata.relativePath && metadata.relativePath !== "null" && { relative_path: metadata.relativePath }),
      ...(metadata.collection_id && { collection_id: Number(metadata.collection_id) }),
      ...(metadata.tenant_id && { tenant_id: Number(metadata.tenant_id) }),
      ...(metadata.captions && { captions: metadata.captions.split(",").map((tag) => tag.trim()) }),
      ...(metadata.early_playback && {
        early_playback: TRUTH[metadata.early_playback] ?? metadata.early_playback,
      }),
      ...(metadata.captions_required && {
        captions_required: TRUTH[metadata.captions_required] ?? metadata.captions_required,
      }),
    },
    "body",
  );
  if (bytes > app.config.max_upload_bytes)
    throw new HttpError(413, "payload_too_large", `An upload has at most ${app.config.max_upload_bytes} bytes.`);
  const how = { mode: "tus", partSize: null } as const;
  const { upload } = await app.write((tx) => initiate(tx, app, caller, body, how));
  const location = { location: `${app.baseUrl()}${base}/${upload.id}`, ...assetIdOf(upload), ...expiresOf(upload) };
  if (!isBytes(headers)) return new Reply(201, undefined, { ...location, "upload-offset": "0" });
  const offset = await appendBody(context, upload, 0).catch((error) => {
    // It exists, and can be resumed.
    if (error instanceof HttpError) Object.assign(error.extra, { headers: { ...error.extra.headers, ...location } });
    throw error;
  });
  return new Reply(201, undefined, { ...location, "upload-offset": String(offset) });
}

async function offset({ app, caller }: UploadContext, upload: UploadRow): Promise<Reply> {
  return new Reply(200, undefined, {
    "upload-offset": String(await offsetOf(app, caller, upload)),
    "upload-length": String(upload.bytesExpected),
    ...assetIdOf(upload),
    ...expiresOf(upload),
  });
}

async function patch(context: UploadContext, upload: UploadRow): Promise<Reply> {
  if (!isBytes(context.headers))
    throw new HttpError(415, "unsupported_media_type", `Send bytes with Content-Type: ${MEDIA_TYPE}.`);
  // tus defines Upload-Length in PATCH for deferred lengths only; a different one means a different file.
  if (context.headers.has("upload-length")) requireSameLength(wholeNumber(context.headers, "upload-length"), upload);
  const offset = await appendBody(context, upload, wholeNumber(context.headers, "upload-offset"));
  return new Reply(204, undefined, { "upload-offset": String(offset), ...expiresOf(upload) });
}

function requireSameLength(length: number, { bytesExpected }: UploadRow): void {
  if (length !== bytesExpected)
    mismatch(`Upload-Length is ${length}, but ${bytesExpected} bytes were announced.`, "Upload-Length");
}

async function terminate({ app, caller }: UploadContext, { id }: UploadRow): Promise<Reply> {
  await abortUpload(app, caller, id, () => {});
  return new Reply(204, undefined);
}

const isBytes = (headers: Headers) => headers.get("content-type")?.split(";")[0]?.trim() === MEDIA_TYPE;
/** For clients that cannot read the upload: a page of another origin can call only these routes. */
const assetIdOf = ({ assetId }: UploadRow) => ({ "x-svc-asset-id": String(assetId) });
/** RFC 9110 date-time, as the extension requires. */
const expiresOf = ({ status, expiresAt }: UploadRow): Record<string, string> =>
  status === "pending" ? { "upload-expires": new Date(expiresAt).toUTCString() } : {};
