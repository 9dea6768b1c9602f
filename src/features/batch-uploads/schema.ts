import * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { MAX_PARTS } from "#model/multipart.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Paging, PathId, QueryId } from "#platform/http/schemas.ts";
import { storageOf } from "#platform/http/storage.ts";
import { Batch, BatchUpload, BatchUploadStatus, type DesktopStorage, MAX_LEASE_SECONDS } from "#protocol/batch.ts";
import { describedAs, PartNumber } from "#protocol/fields.ts";
import { BytesReceived, PartCount, PartNumberField, StatusField, UploadId } from "#protocol/record-fields.ts";
import type { BatchRow, BatchUploadRow } from "#storage/db/schema.ts";
import type { SignedRequest } from "#storage/objects/store.ts";
import { Asset } from "../assets/schema.ts";
import { partSizeFor } from "../uploads/multipart.ts";
import type { PartRow } from "./queries.ts";

const MIB = 2 ** 20;
export const DEFAULT_LEASE_SECONDS = 86_400;
export const MAX_INTENTS = 100_000;
/** In one request body; larger objects are uploaded in parts. */
export const MAX_PROXY_BYTES = 64 * MIB;
/** The limit of one PUT in S3. */
export const MAX_PUT_BYTES = 5 * 2 ** 30;
/** A presigned URL cannot be revoked: for this long after its end a batch may still be written to. */
export const ADDRESS_SECONDS = 3600;

export const BatchParams = v.object({ id: RecordIdInPath });
export const IntentParams = v.object({ id: RecordIdInPath, upload_id: describedAs(UploadId, PathId) });
const PartPath = v.pipe(
  v.string(),
  v.regex(/^[1-9]\d{0,4}$/),
  v.metadata({ openapi: { type: "integer", minimum: 1, maximum: MAX_PARTS } }),
  v.transform(Number),
);
export const PartParams = v.object({
  id: RecordIdInPath,
  upload_id: describedAs(UploadId, PathId),
  part_number: describedAs(PartNumberField, PartPath),
});

export const StorageQuery = v.object({
  tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))),
});
export const IntentQuery = v.object({ ...Paging, status: describedAs(StatusField, v.optional(BatchUploadStatus)) });
export const ProxyComplete = v.object({
  part_count: describedAs(PartCount, PartNumber),
  bytes_received: BytesReceived,
});

export const CommittedBatch = v.pipe(
  v.object({ ...Batch.entries, assets: v.pipe(v.array(Asset), v.description("The assets")) }),
  v.title("CommittedIngestBatch"),
);
export const RawBytes = v.pipe(v.string(), v.metadata({ openapi: { type: "string", format: "binary" } }));

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

export const toBatch = (app: App, row: BatchRow, prefix: string) =>
  toRecord(Batch, row, {
    status: row.status === "open" && row.expiresAt <= app.clock.now() ? "expired" : row.status,
    storage: storageInfo(app, row.tenantId, prefix),
  });

export const partCountOf = ({ bytesExpected, partSize }: BatchUploadRow) =>
  partSize === null ? null : Math.max(1, Math.ceil(bytesExpected / partSize));

/** `parts` are the recorded parts of a pending upload; `put` is returned only on request. */
export function toIntent(
  row: BatchUploadRow,
  { parts = [], put }: { parts?: readonly PartRow[]; put?: SignedRequest | null } = {},
): v.InferInput<typeof BatchUpload> {
  const isPartly = row.status === "pending" && row.partSize !== null;
  return toRecord(BatchUpload, row, {
    bytes_received: row.bytesReceived ?? parts.reduce((sum, { bytes }) => sum + bytes, 0),
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
  });
}
