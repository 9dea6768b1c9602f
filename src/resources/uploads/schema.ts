import * as v from "valibot";
import type { AssetRow, JobRow, UploadRow } from "../../../storage/db/schema.ts";
import { MAX_PARTS, type Part, type SignedRequest } from "../../../storage/objects/store.ts";
import { ByteCount, Id, Name, NullableTime, PathId, PlaybackPolicy, Sha256, Text, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { canonicalLanguage } from "../../lib/language.ts";
import { Asset, Description, ExternalId, Tags, Title, toAsset } from "../assets/schema.ts";
import { Job, Priority, toJob } from "../jobs/schema.ts";
import { partCountOf } from "./multipart.ts";

export const UploadParams = v.object({ id: PathId });
const Pixels = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(1, "must be at least 1"),
  v.maxValue(65_535),
);
const MediaType = v.pipe(
  v.string("must be a string"),
  v.regex(/^[\w.+-]{1,100}\/[\w.+-]{1,100}(;[ -~]{0,100})?$/, "must be a media type such as video/mp4"),
);
const Language = v.pipe(
  v.string(),
  v.check((tag) => canonicalLanguage(tag) !== null, "must be a BCP 47 language tag such as en or pt-BR"),
);

export const Initiate = v.object({
  tenant_id: v.optional(Id),
  filename: Name(500),
  bytes_expected: ByteCount,
  content_type: v.optional(MediaType, "application/octet-stream"),
  source_width: v.nullish(Pixels),
  source_height: v.nullish(Pixels),
  title: v.optional(Title),
  description: v.optional(Description),
  collection_id: v.nullish(Id),
  relative_path: v.pipe(
    v.nullish(Name(1000)),
    v.description("Where the file lay for its sender, such as 2026/trip/day-1.mp4; imports find the asset by it"),
  ),
  external_id: v.optional(ExternalId),
  playback_policy: v.optional(PlaybackPolicy),
  tags: v.optional(Tags, {}),
  sha256: v.nullish(Sha256),
  priority: v.optional(Priority, 0),
  early_playback: v.pipe(
    v.nullish(v.boolean("must be true or false")),
    v.description("Play as soon as one rendition is whole; else as the server is set"),
  ),
  captions: v.optional(
    v.pipe(
      v.array(Language, "must be an array of languages"),
      v.maxLength(20, "must name at most 20 languages"),
      v.description("Languages that the sound is transcribed in, into subtitles with the source `auto`"),
    ),
    [],
  ),
  captions_required: v.optional(
    v.pipe(v.boolean("must be true or false"), v.description("Whether the job fails when one of them cannot be made")),
    false,
  ),
});

const { bytes_expected: _, filename, ...told } = Initiate.entries;
/** As `Initiate`, but for what the server finds out by itself. */
export const FromUrl = v.object({
  url: v.pipe(Text(4000), v.description("https; fetched by the server, redirects included")),
  filename: v.optional(v.pipe(filename, v.description("Without it the last part of the address"))),
  ...told,
});

export const Complete = v.object({ bytes_received: ByteCount });

const PartNumber = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(1, "must be at least 1"),
  v.maxValue(MAX_PARTS, `must be at most ${MAX_PARTS}`),
);
export const SignPart = v.object({ part_number: PartNumber });
export const SignedPart = v.pipe(
  v.object({
    part_number: v.number(),
    url: v.pipe(
      v.string(),
      v.description("Where to PUT the part; the ETag of the answer goes into complete_multipart"),
    ),
    method: v.literal("PUT"),
    headers: v.record(v.string(), v.string()),
    expires_at: Time,
  }),
  v.title("SignedPart"),
);
export const CompleteMultipart = v.object({
  parts: v.pipe(
    v.array(v.object({ part_number: PartNumber, etag: Name(200) })),
    v.minLength(1, "name at least one part"),
    v.maxLength(MAX_PARTS, `must be at most ${MAX_PARTS}`),
  ),
  bytes_received: ByteCount,
});

export const Upload = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    asset_id: v.number(),
    external_id: v.string(),
    status: v.picklist(["pending", "completed", "failed", "aborted", "expired"]),
    filename: v.string(),
    content_type: v.string(),
    bytes_expected: v.number(),
    bytes_received: v.nullable(v.number()),
    source_width: v.nullable(v.number()),
    source_height: v.nullable(v.number()),
    captions: v.array(v.string()),
    captions_required: v.boolean(),
    warnings: v.optional(
      v.pipe(
        v.array(v.object({ code: v.string(), message: v.string() })),
        v.description("In the answer that starts the upload: what was asked for and cannot be done as things are"),
      ),
    ),
    expires_at: Time,
    completed_at: NullableTime,
    created_at: Time,
    updated_at: Time,
    upload_url: v.optional(v.pipe(v.string(), v.description("While the upload is pending: where to PUT the bytes"))),
    upload_method: v.optional(v.string()),
    upload_headers: v.optional(v.record(v.string(), v.string())),
    upload_id: v.optional(v.pipe(v.string(), v.description("Of an upload in parts: storage's own name of it"))),
    part_size: v.optional(v.pipe(v.number(), v.description("Bytes of every part but the last"))),
    part_count: v.optional(v.number()),
    parts: v.optional(
      v.pipe(
        v.array(v.object({ part_number: v.number(), bytes: v.number(), etag: v.string() })),
        v.description("While an upload in parts is pending: those that storage holds whole"),
      ),
    ),
  }),
  v.title("Upload"),
);
export const InitiatedUpload = v.pipe(
  v.object({
    ...Upload.entries,
    upload_url: v.pipe(v.string(), v.description("Where to PUT the bytes, with upload_headers")),
    upload_method: v.string(),
    upload_headers: v.record(v.string(), v.string()),
  }),
  v.title("InitiatedUpload"),
);
export const InitiatedMultipart = v.pipe(
  v.object({ ...Upload.entries, upload_id: v.string(), part_size: v.number(), part_count: v.number() }),
  v.title("InitiatedMultipart"),
);
export const CompletedUpload = v.object({ ...Upload.entries, asset: Asset, transcoding_job: Job });

export const toPut = ({ url, method, headers }: SignedRequest) => ({
  upload_url: url,
  upload_method: method,
  upload_headers: headers,
});

/** `put` is told only to whoever may still use it. */
export const toUpload = (
  row: UploadRow,
  externalId: string,
  put: SignedRequest | null,
): v.InferInput<typeof Upload> => ({
  id: row.id,
  tenant_id: row.tenantId,
  asset_id: row.assetId,
  external_id: externalId,
  status: row.status,
  filename: row.filename,
  content_type: row.contentType,
  bytes_expected: row.bytesExpected,
  bytes_received: row.bytesReceived,
  source_width: row.sourceWidth,
  source_height: row.sourceHeight,
  captions: row.captions,
  captions_required: row.captionsRequired,
  expires_at: iso(row.expiresAt),
  completed_at: iso(row.completedAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
  ...(put && toPut(put)),
  ...(row.mode === "multipart" && row.partSize !== null && { part_size: row.partSize, part_count: partCountOf(row) }),
});

/** The parts of an upload that goes on, and what they are called in storage. */
export const toParts = (uploadId: string, parts: readonly Part[]) => ({
  upload_id: uploadId,
  parts: parts.map(({ partNumber, bytes, etag }) => ({ part_number: partNumber, bytes, etag })),
});

export const toCompletedUpload = (
  row: UploadRow,
  asset: AssetRow,
  job: JobRow,
): v.InferInput<typeof CompletedUpload> => ({
  ...toUpload(row, asset.externalId, null),
  asset: toAsset(asset),
  transcoding_job: toJob(job),
});
