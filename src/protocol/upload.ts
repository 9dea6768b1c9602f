import * as v from "valibot";
import { UPLOAD_STATUSES } from "#model/enums.ts";
import { MAX_PARTS } from "#model/multipart.ts";
import { ByteCount, Name, NullableTime, PartNumber, SignedHeaders, StoredPart, Time } from "./fields.ts";

/** Uploads of sources. */

export const Complete = v.object({ bytes_received: ByteCount });
export type Complete = v.InferInput<typeof Complete>;
export const SignPart = v.object({ part_number: PartNumber });
export type SignPart = v.InferInput<typeof SignPart>;
export const SignedPart = v.pipe(
  v.object({
    part_number: v.number(),
    url: v.pipe(
      v.string(),
      v.description("Presigned URL to PUT the part to; pass the ETag of the response to complete_multipart"),
    ),
    method: v.literal("PUT"),
    headers: SignedHeaders,
    expires_at: Time,
  }),
  v.title("SignedPart"),
);
export type SignedPart = v.InferOutput<typeof SignedPart>;
export const CompleteMultipart = v.object({
  parts: v.pipe(
    v.array(v.object({ part_number: PartNumber, etag: Name(200) })),
    v.minLength(1, "must contain at least one part"),
    v.maxLength(MAX_PARTS, `must be at most ${MAX_PARTS}`),
  ),
  bytes_received: ByteCount,
});
export type CompleteMultipart = v.InferInput<typeof CompleteMultipart>;

export const Warnings = v.pipe(
  v.array(v.object({ code: v.string(), message: v.string() })),
  v.description("In the response of a request that sets them: options that this server cannot fulfill"),
);

export const Upload = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    asset_id: v.number(),
    external_id: v.string(),
    status: v.picklist(UPLOAD_STATUSES),
    filename: v.string(),
    content_type: v.string(),
    bytes_expected: v.number(),
    bytes_received: v.nullable(v.number()),
    source_width: v.nullable(v.number()),
    source_height: v.nullable(v.number()),
    captions: v.array(v.string()),
    captions_required: v.boolean(),
    warnings: v.optional(Warnings),
    expires_at: Time,
    completed_at: NullableTime,
    created_at: Time,
    updated_at: Time,
    upload_url: v.optional(v.pipe(v.string(), v.description("While the upload is pending: where to PUT the bytes"))),
    upload_method: v.optional(v.string()),
    upload_headers: v.optional(SignedHeaders),
    upload_id: v.optional(v.pipe(v.string(), v.description("Upload id of the storage, for a multipart upload"))),
    part_size: v.optional(v.pipe(v.number(), v.description("Size of every part except the last"))),
    part_count: v.optional(v.number()),
    parts: v.optional(
      v.pipe(
        v.array(StoredPart),
        v.description("Parts that are stored completely, while a multipart upload is pending"),
      ),
    ),
  }),
  v.title("Upload"),
);
export type Upload = v.InferOutput<typeof Upload>;
const early_playback = v.pipe(
  v.boolean(),
  v.description(
    "Whether the video is to play before it is encoded: as requested, or the default of the tenant or server",
  ),
);
export const InitiatedUpload = v.pipe(
  v.object({
    ...Upload.entries,
    early_playback,
    upload_url: v.pipe(v.string(), v.description("Presigned URL to PUT the object to, with upload_headers")),
    upload_method: v.string(),
    upload_headers: SignedHeaders,
  }),
  v.title("InitiatedUpload"),
);
export type InitiatedUpload = v.InferOutput<typeof InitiatedUpload>;
export const InitiatedMultipart = v.pipe(
  v.object({ ...Upload.entries, early_playback, upload_id: v.string(), part_size: v.number(), part_count: v.number() }),
  v.title("InitiatedMultipart"),
);
