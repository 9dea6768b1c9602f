import * as v from "valibot";
import type { BatchRow, BatchUploadRow } from "../../../storage/db/schema.ts";
import { MAX_PARTS, type SignedRequest } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { ByteCount, Id, Name, NullableTime, Paging, PathId, QueryId, Sha256, Time } from "../../http/schemas.ts";
import { storageOf } from "../../http/storage.ts";
import { iso } from "../../lib/clock.ts";
import { Asset } from "../assets/schema.ts";
import { partSizeFor } from "../uploads/multipart.ts";
import type { PartRow } from "./queries.ts";

const MIB = 2 ** 20;
export const DEFAULT_LEASE_SECONDS = 86_400;
const MAX_LEASE_SECONDS = 7 * 86_400;
export const MAX_INTENTS = 100_000;
/** In one body; larger ones go through the service in parts. */
export const MAX_PROXY_BYTES = 64 * MIB;
/** What S3 takes in one PUT. */
export const MAX_PUT_BYTES = 5 * 2 ** 30;
/** A presigned address can't be taken back: this long after its end may somebody still write into a batch. */
export const ADDRESS_SECONDS = 3600;

export const BatchParams = v.object({ id: PathId });
export const IntentParams = v.object({ id: PathId, upload_id: PathId });
const PartPath = v.pipe(
  v.string(),
  v.regex(/^[1-9]\d{0,4}$/),
  v.metadata({ openapi: { type: "integer", minimum: 1, maximum: MAX_PARTS } }),
  v.transform(Number),
);
export const PartParams = v.object({ id: PathId, upload_id: PathId, part_number: PartPath });

export const StorageQuery = v.object({
  tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))),
});
const whole = (max: number, min = 1) =>
  v.pipe(
    v.number("must be an integer"),
    v.integer("must be an integer"),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
export const NewBatch = v.object({
  tenant_id: v.optional(Id),
  name: v.optional(v.nullable(Name(200))),
  expires_in: v.optional(v.pipe(whole(MAX_LEASE_SECONDS, 60), v.description("Seconds; a day unless told"))),
});
const Mode = v.picklist(["put", "multipart", "proxy"], "must be put, multipart or proxy");
const IntentStatus = v.picklist(["pending", "completed", "aborted"], "must be pending, completed or aborted");
const MediaType = v.pipe(
  v.string("must be a string"),
  v.regex(/^[\w.+-]{1,100}\/[\w.+-]{1,100}(;[ -~]{0,100})?$/, "must be a media type such as video/mp4"),
);
/** A key below the batch. What a browser or a file system would read as another one is none. */
export const ObjectKey = v.pipe(
  v.string("must be a string"),
  v.minLength(1, "must not be empty"),
  v.check((key) => Buffer.byteLength(key) <= 700, "must have at most 700 bytes"),
  v.check((key) => key.isWellFormed() && !/\p{Cc}/u.test(key), "must hold no control characters"),
  v.check((key) => !key.includes("\\"), "must hold no backslash"),
  v.check((key) => !key.startsWith("/"), "must not begin with a slash"),
  v.check(
    (key) => key.split("/").every((part) => part !== "" && part !== "." && part !== ".."),
    "must hold no empty segment and no . or ..",
  ),
  v.check(
    (key) => key.split("/").every((part) => Buffer.byteLength(part) <= 200),
    "must have segments of at most 200 bytes",
  ),
);
export const NewIntent = v.object({
  object_key: v.pipe(ObjectKey, v.description("Below the batch, such as film/720p/1.m4s")),
  bytes_expected: ByteCount,
  content_type: v.optional(MediaType, "application/octet-stream"),
  sha256: v.nullish(Sha256),
  multipart: v.optional(v.boolean("must be true or false")),
  mode: v.optional(Mode),
});
export const IntentQuery = v.object({ ...Paging, status: v.optional(IntentStatus) });
const PartNumber = whole(MAX_PARTS);
export const NewPart = v.object({ part_number: PartNumber, bytes: v.optional(ByteCount) });
export const ConfirmPart = v.object({ etag: Name(200) });
export const CompleteIntent = v.object({
  parts: v.optional(
    v.pipe(
      v.array(v.object({ part_number: PartNumber, etag: Name(200) }), "must be an array"),
      v.minLength(1, "name at least one part"),
      v.maxLength(MAX_PARTS, `must be at most ${MAX_PARTS}`),
      v.description("Of an upload in parts; without it all that storage holds"),
    ),
  ),
  bytes_received: ByteCount,
});
export const ProxyComplete = v.object({ part_count: PartNumber, bytes_received: ByteCount });

export const DesktopStorage = v.pipe(
  v.object({
    tenant_id: v.number(),
    provider: v.picklist(["local", "s3"]),
    prefix: v.pipe(v.string(), v.description("Under which the objects of the batch lie in storage")),
    modes: v.array(Mode),
    limits: v.object({
      max_object_bytes: v.number(),
      max_put_bytes: v.number(),
      max_proxy_bytes: v.pipe(v.number(), v.description("Of one body; larger ones go in parts")),
      part_size: v.pipe(v.number(), v.description("The smallest; an upload says its own")),
      max_parts: v.number(),
      max_objects: v.pipe(v.number(), v.description("Of one batch")),
      address_seconds: v.pipe(v.number(), v.description("How long a signed address is good")),
      max_lease_seconds: v.number(),
    }),
  }),
  v.title("DesktopStorage"),
);
export const Batch = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    name: v.nullable(v.string()),
    status: v.picklist(["open", "committed", "canceled", "expired"]),
    expires_at: Time,
    ended_at: NullableTime,
    upload_count: v.number(),
    storage: DesktopStorage,
    created_at: Time,
    updated_at: Time,
  }),
  v.title("IngestBatch"),
);
export const CreatedBatch = v.pipe(
  v.object({
    ...Batch.entries,
    lease_token: v.pipe(v.string(), v.description("For X-SVC-BATCH-TOKEN; shown here alone")),
  }),
  v.title("CreatedIngestBatch"),
);
export const CommittedBatch = v.pipe(
  v.object({ ...Batch.entries, assets: v.array(Asset) }),
  v.title("CommittedIngestBatch"),
);
export const RawBytes = v.pipe(v.string(), v.metadata({ openapi: { type: "string", format: "binary" } }));
const Part = v.object({ part_number: v.number(), bytes: v.number(), etag: v.string() });
export const RecordedPart = v.pipe(Part, v.title("RecordedPart"));
export const Intent = v.pipe(
  v.object({
    id: v.number(),
    batch_id: v.number(),
    object_key: v.string(),
    status: IntentStatus,
    mode: Mode,
    content_type: v.string(),
    bytes_expected: v.number(),
    bytes_received: v.pipe(v.number(), v.description("Of an upload in parts those that are recorded")),
    sha256: v.nullable(v.string()),
    part_size: v.nullable(v.pipe(v.number(), v.description("Bytes of every part but the last"))),
    part_count: v.nullable(v.number()),
    parts: v.optional(v.array(Part)),
    upload_url: v.optional(v.pipe(v.string(), v.description("Where to PUT the bytes, with upload_headers"))),
    upload_method: v.optional(v.string()),
    upload_headers: v.optional(v.record(v.string(), v.string())),
    upload_expires_at: v.optional(Time),
    created_at: Time,
    updated_at: Time,
  }),
  v.title("IngestUpload"),
);

export const storageInfo = (app: App, tenantId: number, prefix: string): v.InferInput<typeof DesktopStorage> => {
  const { kind } = storageOf(app);
  const { max_upload_bytes } = app.config;
  return {
    tenant_id: tenantId,
    provider: kind,
    prefix,
    modes: ["put", "multipart", "proxy"],
    limits: {
      max_object_bytes: max_upload_bytes,
      max_put_bytes: Math.min(max_upload_bytes, MAX_PUT_BYTES),
      max_proxy_bytes: Math.min(max_upload_bytes, MAX_PROXY_BYTES),
      part_size: partSizeFor(0),
      max_parts: MAX_PARTS,
      max_objects: MAX_INTENTS,
      address_seconds: ADDRESS_SECONDS,
      max_lease_seconds: MAX_LEASE_SECONDS,
    },
  };
};

export const toBatch = (app: App, row: BatchRow, prefix: string): v.InferInput<typeof Batch> => ({
  id: row.id,
  tenant_id: row.tenantId,
  name: row.name,
  status: row.status === "open" && row.expiresAt <= app.clock.now() ? "expired" : row.status,
  expires_at: iso(row.expiresAt),
  ended_at: iso(row.endedAt),
  upload_count: row.uploadCount,
  storage: storageInfo(app, row.tenantId, prefix),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});

export const partCountOf = ({ bytesExpected, partSize }: BatchUploadRow) =>
  partSize === null ? null : Math.max(1, Math.ceil(bytesExpected / partSize));

/** `parts` are those recorded of a pending upload; `put` is told only to whoever asked for it. */
export function toIntent(
  row: BatchUploadRow,
  { parts = [], put }: { parts?: readonly PartRow[]; put?: SignedRequest | null } = {},
): v.InferInput<typeof Intent> {
  const isPartly = row.status === "pending" && row.partSize !== null;
  return {
    id: row.id,
    batch_id: row.batchId,
    object_key: row.objectKey,
    status: row.status,
    mode: row.mode,
    content_type: row.contentType,
    bytes_expected: row.bytesExpected,
    bytes_received: row.bytesReceived ?? parts.reduce((sum, { bytes }) => sum + bytes, 0),
    sha256: row.sha256,
    part_size: row.partSize,
    part_count: partCountOf(row),
    ...(isPartly && {
      parts: parts.map(({ partNumber, bytes, etag }) => ({ part_number: partNumber, bytes, etag })),
    }),
    ...(put && {
      upload_url: put.url,
      upload_method: put.method,
      upload_headers: put.headers,
      upload_expires_at: iso(put.expiresAt.getTime()),
    }),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  };
}
