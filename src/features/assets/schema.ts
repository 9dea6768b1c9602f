import * as v from "valibot";
import { codecNameOf, HDR_FORMATS } from "#lib/codecs";
import { ASSET_PROVIDERS, INPUT_STATUSES, PLAYBACK_STATUSES } from "#model/enums.ts";
import { toRecord } from "#platform/http/records.ts";
import {
  ClientTime,
  Name,
  NullableTime,
  oneOf,
  PageLimit,
  Paging,
  PlaybackPolicy,
  QueryId,
  Text,
} from "#platform/http/schemas.ts";
import { textInputs, textOutputs } from "#protocol/asset-fields.ts";
import { ProfileName } from "#protocol/encoding-profile.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  AverageBandwidth,
  BandwidthField,
  BytesField,
  CodecsField,
  CodeField,
  CollectionId,
  ContentType,
  CreatedAt,
  DashManifestPath,
  DurationSeconds,
  ErrorField,
  ExpiresAt,
  ExpiresIn,
  ExternalIdField,
  FilenameField,
  FrameRateField,
  HeightField,
  ManifestPath,
  ManifestUrlField,
  MessageField,
  MethodField,
  OriginalFilename,
  PlaybackStatusField,
  RecordId,
  RelativePath,
  SourceBytes,
  SourceKey,
  SourceSha256,
  StageField,
  StorageBytes,
  StoryboardPath,
  TagsField,
  TenantIdField,
  UpdatedAt,
  UrlField,
  WidthField,
} from "#protocol/record-fields.ts";
import { Warning } from "#protocol/warnings.ts";
import type { AssetRow, RenditionRow } from "#storage/db/schema.ts";
import { DEFAULT_PROFILE } from "../encoding-profiles/queries.ts";
import { ASSET_SORTS } from "./order.ts";
import { PlaybackIdRecord, playbackIdsOf } from "./playback-ids.ts";
import { posterOf } from "./poster.ts";
import { textsOf } from "./texts.ts";

export const InputStatus = v.pipe(oneOf(INPUT_STATUSES), v.description("Status of the source"));
export const PlaybackStatus = describedAs(PlaybackStatusField, oneOf(PLAYBACK_STATUSES));

/** A client's own id. The prefix `vid_` is reserved; a leading letter distinguishes it from numeric ids. */
export const ExternalId = v.pipe(
  v.string("must be a string"),
  v.regex(/^[A-Za-z0-9._-]{1,128}$/, "must be 1 to 128 characters of A-Z a-z 0-9 . _ -"),
  v.regex(/[A-Za-z]/, "must contain a letter"),
  v.check((id) => !id.startsWith("vid_"), "must not start with vid_"),
);

export const TagValue = v.union(
  [Text(1024), v.pipe(v.number(), v.finite()), v.boolean()],
  "must be a string of at most 1024 characters, a number or a boolean",
);
/** In one request, removed keys included. They are counted before any of them is validated, which takes 2 µs each. */
export const MAX_TAG_KEYS = 1000;
/** Names that valibot considers dangerous and would silently drop. */
const RESERVED = ["__proto__", "constructor", "prototype"];
/** A tag is removed by a path that ends with its key: every client drops these segments (WHATWG URL, 4.4). */
const NO_SEGMENTS = [".", ".."];
const named = v.pipe(
  v.unknown(),
  v.check((tags) => typeof tags === "object" && tags !== null && !Array.isArray(tags), "must be an object"),
  v.check(
    (tags) => !RESERVED.some((key) => Object.hasOwn(Object(tags), key)),
    `must not contain the keys ${RESERVED.join(", ")}`,
  ),
  v.check(
    // They can still be removed.
    (tags) => !NO_SEGMENTS.some((key) => ((tags as Record<string, unknown> | null)?.[key] ?? null) !== null),
    `must not contain the keys ${NO_SEGMENTS.join(" and ")}`,
  ),
  v.check(
    (tags) => typeof tags !== "object" || Object.keys(tags ?? {}).length <= MAX_TAG_KEYS,
    `must have at most ${MAX_TAG_KEYS} keys`,
  ),
  v.metadata({
    openapi: {
      type: "object",
      additionalProperties: {
        anyOf: [{ type: "string", maxLength: 1024, nullable: true }, { type: "number" }, { type: "boolean" }],
      },
    },
  }),
);
export const Tags = v.pipe(
  named,
  v.record(Name(64), TagValue, "must be an object"),
  v.check((tags) => Object.keys(tags).length <= 100, "must have at most 100 keys"),
);

/** Entries of every request that creates an asset. */
export const creationEntries = {
  ...textInputs,
  external_id: describedAs(ExternalIdField, v.optional(ExternalId)),
  playback_policy: v.optional(PlaybackPolicy),
  tags: describedAs(TagsField, v.optional(Tags, {})),
  encoding_profile: v.pipe(
    v.nullish(ProfileName),
    v.description("What is produced from the source; default: the tenant's `default_encoding_profile`"),
  ),
};

/**
 * Other fields of an asset cannot be changed here. They are accepted with their current value, so that a client can send
 * back what it read; `requireUnchanged` compares them. Fields that no asset has are ignored.
 */
export const AssetPatch = v.object({
  video_asset: v.pipe(
    v.looseObject(
      {
        ...textInputs,
        collection_id: v.optional(v.nullable(CollectionId)),
        playback_policy: v.optional(PlaybackPolicy),
        expires_at: v.optional(
          v.pipe(
            v.nullable(ClientTime),
            v.description(
              "The asset is deleted within 30 seconds after this time, which must be in the future; null: never",
            ),
          ),
        ),
      },
      "must be an object",
    ),
    v.description("Fields of the asset"),
  ),
});

export const TagPatch = v.pipe(named, v.record(Name(64), v.nullable(TagValue), "must be an object"));

export const Download = v.pipe(
  v.object({
    url: UrlField,
    method: MethodField,
    filename: FilenameField,
    content_type: ContentType,
    bytes: BytesField,
    expires_at: ExpiresAt,
    expires_in: ExpiresIn,
  }),
  v.title("Download"),
);

const filters = {
  q: v.optional(v.pipe(Text(200), v.description("Full-text search in title, description and filename"))),
  collection_id: describedAs(CollectionId, v.optional(QueryId)),
  playback_status: v.optional(PlaybackStatus),
  input_status: v.optional(InputStatus),
  external_id: describedAs(ExternalIdField, v.optional(Text(128))),
  playback_policy: v.optional(PlaybackPolicy),
  created_from: v.optional(v.pipe(ClientTime, v.description("Created then or later"))),
  created_to: v.optional(v.pipe(ClientTime, v.description("Created then or earlier"))),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
};
export const AssetFilters = v.object(filters);

const Sort = v.pipe(
  v.optional(oneOf(ASSET_SORTS), "newest"),
  v.description(
    "`duration` and `size` (of all media) begin with the largest. A search (`q`) has only `newest` and `oldest`",
  ),
);

export const AssetQuery = v.object({
  ...Paging,
  // The cursor contains the title, of up to 512 characters.
  cursor: v.optional(v.pipe(Text(5000), v.description("Cursor from the Link header of the previous page"))),
  sort: Sort,
  ...filters,
});

export const AssetPagesQuery = v.object({
  limit: v.optional(v.pipe(PageLimit, v.description("Length of a page, 1 to 500; default: 100"))),
  sort: Sort,
  ...filters,
});
export const AssetPages = v.object({
  count: v.pipe(v.number(), v.description("How many assets match")),
  cursors: v.pipe(
    v.array(v.string()),
    v.description("Cursors of the pages after the first, for `GET /assets` with the same parameters and `limit`"),
  ),
});

const AssetRendition = v.pipe(
  v.object({
    name: v.pipe(v.string(), v.description("Its directory below the manifests")),
    codec: v.pipe(
      v.string(),
      v.description("Of video, where there is any, as in encoding profiles; otherwise of audio"),
    ),
    codecs: CodecsField,
    width: v.nullable(WidthField),
    height: v.nullable(HeightField),
    frame_rate: v.nullable(FrameRateField),
    bandwidth: BandwidthField,
    average_bandwidth: v.nullable(AverageBandwidth),
    hdr: v.pipe(v.nullable(v.picklist(HDR_FORMATS)), v.description("Null: standard dynamic range")),
    bytes: v.pipe(
      v.nullable(v.number()),
      v.description("With its init segment; null when unknown: of clips, and of media that were encoded elsewhere"),
    ),
    score: v.pipe(
      v.optional(v.number()),
      v.description(
        "Estimated quality, 0 to 100, against the source at the size of the largest rendition; only of H.264 with `per_title`",
      ),
    ),
  }),
  v.title("AssetRendition"),
);

const toRendition = (row: RenditionRow): v.InferInput<typeof AssetRendition> => ({
  name: row.name,
  codec: codecNameOf(row.codecs),
  codecs: row.codecs,
  width: row.width,
  height: row.height,
  frame_rate: row.frame_rate ?? null,
  bandwidth: row.bandwidth,
  average_bandwidth: row.average_bandwidth ?? null,
  hdr: row.hdr ?? null,
  bytes: row.bytes ?? null,
  ...(row.score != null && { score: row.score }),
});

const ENCODING_STATUSES = ["queued", "partial", "complete", "failed"] as const;
export const encodingStatus = ({
  playbackStatus,
  encoding,
}: Pick<AssetRow, "playbackStatus" | "encoding">): (typeof ENCODING_STATUSES)[number] => {
  if (playbackStatus === "errored") return "failed";
  return playbackStatus === "ready" ? (encoding ?? "complete") : "queued";
};

export const Asset = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    external_id: ExternalIdField,
    ...textOutputs,
    collection_id: describedAs(CollectionId, v.nullable(v.number())),
    input_status: InputStatus,
    playback_status: PlaybackStatus,
    encoding_status: v.pipe(
      v.picklist(ENCODING_STATUSES),
      v.description("`partial`: it plays, and segments that are not encoded yet are encoded when they are requested"),
    ),
    playback_policy: PlaybackPolicy,
    playback_ids: v.pipe(
      v.array(PlaybackIdRecord),
      v.description("Ids in public URLs, each with its policy. The first one is permanent, with `playback_policy`"),
    ),
    encoding_profile: v.pipe(v.string(), v.description("Name of the profile that it was, or is to be, encoded with")),
    provider: v.pipe(
      v.picklist(ASSET_PROVIDERS),
      v.description("Where the media are: `managed` by this service, or `external_serve`"),
    ),
    manifest_url: v.nullable(ManifestUrlField),
    source_bytes: SourceBytes,
    storage_bytes: StorageBytes,
    duration_seconds: DurationSeconds,
    source_key: SourceKey,
    source_sha256: v.nullable(SourceSha256),
    source_deleted_at: v.pipe(
      NullableTime,
      v.description("When the source was deleted; `source_key` is empty then, and `source_bytes` what it had"),
    ),
    original_filename: v.nullable(OriginalFilename),
    relative_path: v.nullable(RelativePath),
    manifest_path: v.nullable(ManifestPath),
    dash_manifest_path: v.nullable(DashManifestPath),
    thumbnail_path: v.pipe(v.nullable(v.string()), v.description("The image that represents the asset")),
    poster_path: v.pipe(
      v.nullable(v.string()),
      v.description("The chosen poster; null: `thumbnail_path` is automatic"),
    ),
    storyboard_path: v.nullable(StoryboardPath),
    width: v.nullable(WidthField),
    height: v.nullable(HeightField),
    frame_rate: v.nullable(FrameRateField),
    renditions: v.pipe(v.array(AssetRendition), v.description("Of the published media: video first, then audio")),
    tags: TagsField,
    progress: v.pipe(v.number(), v.description("0 to 100")),
    stage: v.nullable(StageField),
    error: describedAs(ErrorField, v.nullable(v.object({ code: CodeField, message: MessageField }))),
    warnings: v.pipe(
      v.array(Warning),
      v.description("What of the source the media do not contain; empty when they contain all of it"),
    ),
    ready_at: v.pipe(NullableTime, v.description("Time from which the asset could be played; null before")),
    expires_at: v.pipe(NullableTime, v.description("The asset is deleted within 30 seconds after this time")),
    parent_asset_id: v.pipe(
      v.nullable(v.number()),
      v.description("Of a clip: the asset that it was cut from, while that exists"),
    ),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("Asset"),
);
export type Asset = v.InferOutput<typeof Asset>;

export const toAsset = (row: AssetRow) =>
  toRecord(Asset, row, {
    ...textsOf(row),
    encoding_status: encodingStatus(row),
    playback_ids: playbackIdsOf(row),
    encoding_profile: row.encodingProfile ?? DEFAULT_PROFILE,
    thumbnail_path: posterOf(row),
    renditions: [...row.renditions, ...row.audioRenditions].map(toRendition),
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  });
