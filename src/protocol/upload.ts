import * as v from "valibot";
import { UPLOAD_STATUSES } from "#model/enums.ts";
import { MAX_PARTS } from "#model/multipart.ts";
import { describedAs, NullableTime, SignedHeaders } from "./fields.ts";
import {
  AssetId,
  BytesExpected,
  BytesReceived,
  CodeField,
  ContentType,
  CreatedAt,
  EtagField,
  ExpiresAt,
  ExternalIdField,
  FilenameField,
  MessageField,
  MethodField,
  PartCount,
  PartNumberField,
  RecordId,
  SourceHeight,
  SourceWidth,
  StatusField,
  StoredPart,
  TenantIdField,
  UpdatedAt,
  UploadId,
  UploadMethod,
} from "./record-fields.ts";

/** Uploads of sources. */

export const Complete = v.object({ bytes_received: BytesReceived });
export type Complete = v.InferInput<typeof Complete>;
export const SignPart = v.object({ part_number: PartNumberField });
export type SignPart = v.InferInput<typeof SignPart>;
export const SignedPart = v.pipe(
  v.object({
    part_number: describedAs(PartNumberField, v.number()),
    url: v.pipe(
      v.string(),
      v.description("Presigned URL to PUT the part to; pass the ETag of the response to complete_multipart"),
    ),
    method: describedAs(MethodField, v.literal("PUT")),
    headers: v.pipe(SignedHeaders, v.description("Headers that the request must have")),
    expires_at: ExpiresAt,
  }),
  v.title("SignedPart"),
);
export type SignedPart = v.InferOutput<typeof SignedPart>;
export const CompleteMultipart = v.object({
  parts: v.pipe(
    v.array(v.object({ part_number: PartNumberField, etag: EtagField })),
    v.minLength(1, "must contain at least one part"),
    v.maxLength(MAX_PARTS, `must be at most ${MAX_PARTS}`),
    v.description("Parts, in ascending order"),
  ),
  bytes_received: BytesReceived,
});
export type CompleteMultipart = v.InferInput<typeof CompleteMultipart>;

export const Warnings = v.pipe(
  v.array(v.object({ code: CodeField, message: MessageField })),
  v.description("In the response of a request that sets them: options that this server cannot fulfill"),
);

export const Upload = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    asset_id: AssetId,
    external_id: ExternalIdField,
    status: describedAs(StatusField, v.picklist(UPLOAD_STATUSES)),
    filename: FilenameField,
    content_type: ContentType,
    bytes_expected: describedAs(BytesExpected, v.number()),
    bytes_received: describedAs(BytesReceived, v.nullable(v.number())),
    source_width: v.nullable(SourceWidth),
    source_height: v.nullable(SourceHeight),
    captions: v.pipe(v.array(v.string()), v.description("Whether captions are created from the speech")),
    captions_required: v.pipe(v.boolean(), v.description("Whether a job without captions fails")),
    warnings: v.optional(Warnings),
    expires_at: ExpiresAt,
    completed_at: v.pipe(NullableTime, v.description("Time of completion; null before")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
    upload_url: v.optional(v.pipe(v.string(), v.description("While the upload is pending: where to PUT the bytes"))),
    upload_method: v.optional(UploadMethod),
    upload_headers: v.pipe(v.optional(SignedHeaders), v.description("Headers that the upload must have")),
    upload_id: v.optional(v.pipe(v.string(), v.description("Upload id of the storage, for a multipart upload"))),
    part_size: v.optional(v.pipe(v.number(), v.description("Size of every part except the last"))),
    part_count: v.optional(PartCount),
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
    upload_method: UploadMethod,
    upload_headers: v.pipe(SignedHeaders, v.description("Headers that the upload must have")),
  }),
  v.title("InitiatedUpload"),
);
export type InitiatedUpload = v.InferOutput<typeof InitiatedUpload>;
export const InitiatedMultipart = v.pipe(
  v.object({
    ...Upload.entries,
    early_playback,
    upload_id: UploadId,
    part_size: v.pipe(v.number(), v.description("Size of each part in bytes; the last one may be smaller")),
    part_count: PartCount,
  }),
  v.title("InitiatedMultipart"),
);
