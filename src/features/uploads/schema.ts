import * as v from "valibot";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { Name, Text } from "#platform/http/schemas.ts";
import { describedAs, MediaType } from "#protocol/fields.ts";
import {
  BytesExpected,
  CollectionId,
  ContentType,
  FilenameField,
  Sha256Field,
  SourceHeight,
  SourceWidth,
  TenantIdFromClient,
} from "#protocol/record-fields.ts";
import { Upload } from "#protocol/upload.ts";
import type { AssetRow, JobRow, UploadRow } from "#storage/db/schema.ts";
import type { Part, SignedRequest } from "#storage/objects/store.ts";
import { Asset, creationEntries, toAsset } from "../assets/schema.ts";
import { CaptionLabels, CaptionLanguages } from "../subtitles/caption-request.ts";
import { Job, Priority, toJob } from "../transcoding/schema.ts";
import { partCountOf } from "./multipart.ts";

export const UploadParams = v.object({ id: RecordIdInPath });
const Pixels = v.pipe(
  v.number("must be an integer"),
  v.integer("must be an integer"),
  v.minValue(1, "must be at least 1"),
  v.maxValue(65_535),
);

export const Initiate = v.object({
  tenant_id: v.optional(TenantIdFromClient),
  filename: describedAs(FilenameField, Name(500)),
  bytes_expected: BytesExpected,
  content_type: describedAs(ContentType, v.optional(MediaType, "application/octet-stream")),
  source_width: describedAs(SourceWidth, v.nullish(Pixels)),
  source_height: describedAs(SourceHeight, v.nullish(Pixels)),
  ...creationEntries,
  collection_id: v.nullish(CollectionId),
  relative_path: v.pipe(
    v.nullish(Name(1000)),
    v.description("Path of the file at the sender, such as 2026/trip/day-1.mp4; CSV imports match it"),
  ),
  sha256: v.nullish(Sha256Field),
  priority: v.optional(Priority, 0),
  early_playback: v.pipe(
    v.nullish(v.boolean("must be true or false")),
    v.description(
      "Playable within seconds, before it is encoded completely; default: the tenant's field, then the server's setting",
    ),
  ),
  captions: v.optional(CaptionLanguages, []),
  caption_labels: v.optional(CaptionLabels, {}),
  captions_required: v.optional(
    v.pipe(v.boolean("must be true or false"), v.description("Whether the job fails if one of them cannot be created")),
    false,
  ),
});

const { bytes_expected: _, filename, ...others } = Initiate.entries;
/** As `Initiate`, without what the server determines itself. */
export const FromUrl = v.object({
  url: v.pipe(Text(4000), v.description("https URL, fetched by the server; redirects are followed")),
  filename: v.optional(v.pipe(filename, v.description("Without it the last part of the URL"))),
  ...others,
});

export const CompletedUpload = v.object({
  ...Upload.entries,
  asset: v.pipe(Asset, v.description("The asset")),
  transcoding_job: v.pipe(Job, v.description("The job; null without one")),
});

export const toPut = ({ url, method, headers }: SignedRequest) => ({
  upload_url: url,
  upload_method: method,
  upload_headers: headers,
});

/** `put` is present only while it can be used. */
export const toUpload = (row: UploadRow, externalId: string, put: SignedRequest | null) =>
  toRecord(Upload, row, {
    external_id: externalId,
    ...(put && toPut(put)),
    ...(row.mode === "multipart" && row.partSize !== null && { part_size: row.partSize, part_count: partCountOf(row) }),
  });

/** The parts of a pending upload, and their multipart id in storage. */
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
