import * as v from "valibot";
import { BATCH_STATUSES, BATCH_UPLOAD_MODES, BATCH_UPLOAD_STATUSES, STORE_KINDS } from "#model/enums.ts";
import { MAX_PARTS } from "#model/multipart.ts";
import { isPlainPath } from "#model/object-keys.ts";
import { ByteCount, describedAs, MediaType, Name, oneOf, SignedHeaders, Time, whole } from "./fields.ts";
import {
  BytesExpected,
  BytesField,
  BytesReceived,
  ContentType,
  CreatedAt,
  EtagField,
  ExpiresAt,
  FinishedAt,
  NameField,
  PartCount,
  PartNumberField,
  RecordId,
  Sha256Field,
  StatusField,
  StorageKey,
  StoredPart,
  TenantIdField,
  TenantIdFromClient,
  UpdatedAt,
  UploadMethod,
} from "./record-fields.ts";

/** Batches of media that a client encoded. */

export const MAX_LEASE_SECONDS = 7 * 86_400;

export const NewBatch = v.object({
  tenant_id: v.optional(TenantIdFromClient),
  name: describedAs(NameField, v.optional(v.nullable(Name(200)))),
  expires_in: v.optional(v.pipe(whole(MAX_LEASE_SECONDS, 60), v.description("Seconds; default: one day"))),
});
export type NewBatch = v.InferInput<typeof NewBatch>;

const UploadMode = oneOf(BATCH_UPLOAD_MODES);
export const BatchUploadStatus = oneOf(BATCH_UPLOAD_STATUSES);

/** A key relative to the batch. A path that a browser or a file system would resolve to another one is refused. */
export const ObjectKey = v.pipe(
  v.string("must be a string"),
  v.minLength(1, "must not be empty"),
  v.check((key) => Buffer.byteLength(key) <= 700, "must have at most 700 bytes"),
  v.check((key) => key.isWellFormed() && !/\p{Cc}/u.test(key), "must not contain control characters"),
  v.check((key) => !key.includes("\\"), "must not contain a backslash"),
  v.check((key) => !key.startsWith("/"), "must not begin with a slash"),
  v.check(isPlainPath, "must not contain empty segments, . or .."),
  v.check(
    (key) => key.split("/").every((part) => Buffer.byteLength(part) <= 200),
    "must have segments of at most 200 bytes",
  ),
);
const ModeField = v.pipe(UploadMode, v.description("How the object is uploaded"));
export const NewBatchUpload = v.object({
  object_key: v.pipe(ObjectKey, v.description("Key below the batch prefix, such as film/720p/1.m4s")),
  bytes_expected: BytesExpected,
  content_type: describedAs(ContentType, v.optional(MediaType, "application/octet-stream")),
  sha256: v.nullish(Sha256Field),
  multipart: v.pipe(
    v.optional(v.boolean("must be true or false")),
    v.description("Whether the object is uploaded in parts"),
  ),
  mode: v.optional(ModeField),
});
export type NewBatchUpload = v.InferInput<typeof NewBatchUpload>;

export const NewPart = v.object({
  part_number: PartNumberField,
  bytes: describedAs(BytesField, v.optional(ByteCount)),
});
export type NewPart = v.InferInput<typeof NewPart>;
export const ConfirmPart = v.object({ etag: EtagField });
export type ConfirmPart = v.InferInput<typeof ConfirmPart>;
export const CompleteBatchUpload = v.object({
  parts: v.optional(
    v.pipe(
      v.array(v.object({ part_number: PartNumberField, etag: EtagField }), "must be an array"),
      v.minLength(1, "must contain at least one part"),
      v.maxLength(MAX_PARTS, `must be at most ${MAX_PARTS}`),
      v.description("Parts of a multipart upload; default: all stored parts"),
    ),
  ),
  bytes_received: BytesReceived,
});
export type CompleteBatchUpload = v.InferInput<typeof CompleteBatchUpload>;

export const DesktopStorage = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    provider: v.pipe(v.picklist(STORE_KINDS), v.description("Kind of storage")),
    prefix: v.pipe(v.string(), v.description("Storage prefix of the objects of the batch")),
    modes: v.pipe(v.array(UploadMode), v.description("Ways to upload that this storage supports")),
    limits: v.pipe(
      v.object({
        max_object_bytes: v.pipe(v.number(), v.description("Largest object in bytes")),
        max_put_bytes: v.pipe(v.number(), v.description("Largest upload in one request, in bytes")),
        max_proxy_bytes: v.pipe(
          v.number(),
          v.description("Maximum size of one request body; larger objects are uploaded in parts"),
        ),
        part_size: v.pipe(v.number(), v.description("Minimum part size; each upload has its own")),
        max_parts: v.pipe(v.number(), v.description("Largest number of parts")),
        max_objects: v.pipe(v.number(), v.description("Per batch")),
        address_seconds: v.pipe(v.number(), v.description("Lifetime of a presigned URL in seconds")),
        max_lease_seconds: v.pipe(v.number(), v.description("Longest lease of a batch in seconds")),
      }),
      v.description("Limits of this storage"),
    ),
  }),
  v.title("DesktopStorage"),
);
export const Batch = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    name: v.nullable(NameField),
    status: describedAs(StatusField, v.picklist(BATCH_STATUSES)),
    expires_at: ExpiresAt,
    ended_at: v.nullable(FinishedAt),
    upload_count: v.pipe(v.number(), v.description("Number of uploads")),
    storage: v.pipe(DesktopStorage, v.description("Where the uploads go")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("IngestBatch"),
);
export type Batch = v.InferOutput<typeof Batch>;
export const CreatedBatch = v.pipe(
  v.object({
    ...Batch.entries,
    lease_token: v.pipe(v.string(), v.description("For X-SVC-BATCH-TOKEN; returned only here")),
  }),
  v.title("CreatedIngestBatch"),
);
export const RecordedPart = v.pipe(StoredPart, v.title("RecordedPart"));
export const BatchUpload = v.pipe(
  v.object({
    id: RecordId,
    batch_id: v.pipe(v.number(), v.description("Id of the batch upload")),
    object_key: StorageKey,
    status: describedAs(StatusField, BatchUploadStatus),
    mode: ModeField,
    content_type: ContentType,
    bytes_expected: describedAs(BytesExpected, v.number()),
    bytes_received: v.pipe(v.number(), v.description("Recorded parts of a multipart upload")),
    sha256: describedAs(Sha256Field, v.nullable(v.string())),
    part_size: v.nullable(v.pipe(v.number(), v.description("Size of every part except the last"))),
    part_count: v.nullable(PartCount),
    parts: v.pipe(v.optional(v.array(StoredPart)), v.description("Parts, in ascending order")),
    upload_url: v.optional(
      v.pipe(v.string(), v.description("Presigned URL to PUT the object to, with upload_headers")),
    ),
    upload_method: v.optional(UploadMethod),
    upload_headers: v.pipe(v.optional(SignedHeaders), v.description("Headers that the upload must have")),
    upload_expires_at: v.pipe(v.optional(Time), v.description("Time after which the URL is no longer valid")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("IngestUpload"),
);
export type BatchUpload = v.InferOutput<typeof BatchUpload>;
