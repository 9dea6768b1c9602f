import * as v from "valibot";
import type { AssetRow } from "../../../storage/db/schema.ts";
import { Id, Name, NullableTime, Paging, PlaybackPolicy, QueryId, Text, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";

export const InputStatus = v.picklist(["pending", "uploaded", "failed"], "must be pending, uploaded or failed");
export const PlaybackStatus = v.picklist(
  ["draft", "processing", "ready", "errored"],
  "must be draft, processing, ready or errored",
);
export const Title = Name(500);
export const Description = v.nullable(Text(10_000));

/** A client's own id. `vid_` is the server's; a letter keeps it apart from the numeric ids. */
export const ExternalId = v.pipe(
  v.string("must be a string"),
  v.regex(/^[A-Za-z0-9._-]{1,128}$/, "must be 1 to 128 of A-Z a-z 0-9 . _ -"),
  v.regex(/[A-Za-z]/, "must hold a letter"),
  v.check((id) => !id.startsWith("vid_"), "must not start with vid_"),
);

export const TagValue = v.union(
  [Text(1024), v.pipe(v.number(), v.finite()), v.boolean()],
  "must be a string of at most 1024 characters, a number or a boolean",
);
/** What valibot holds to be dangerous in a name, and would leave out without a word. */
const RESERVED = ["__proto__", "constructor", "prototype"];
const named = v.pipe(
  v.unknown(),
  v.check((tags) => typeof tags === "object" && tags !== null && !Array.isArray(tags), "must be an object"),
  v.check(
    (tags) => !RESERVED.some((key) => Object.hasOwn(Object(tags), key)),
    `must not hold the keys ${RESERVED.join(", ")}`,
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

/** Nothing else of an asset is a client's to change: the pipeline owns the rest, and what is sent of it is passed over. */
export const AssetPatch = v.object({
  video_asset: v.object(
    {
      title: v.optional(Title),
      description: v.optional(Description),
      collection_id: v.optional(v.nullable(Id)),
    },
    "must be an object",
  ),
});

export const TagPatch = v.pipe(named, v.record(Name(64), v.nullable(TagValue), "must be an object"));

export const Download = v.pipe(
  v.object({
    url: v.string(),
    method: v.string(),
    filename: v.string(),
    content_type: v.string(),
    bytes: v.number(),
    expires_at: Time,
    expires_in: v.number(),
  }),
  v.title("Download"),
);

export const AssetQuery = v.object({
  ...Paging,
  q: v.optional(v.pipe(Text(200), v.description("Words in the title, description or file name"))),
  collection_id: v.optional(QueryId),
  playback_status: v.optional(PlaybackStatus),
  input_status: v.optional(InputStatus),
  external_id: v.optional(Text(128)),
  tenant_id: v.optional(v.pipe(QueryId, v.description("With the admin token"))),
});

export const Asset = v.pipe(
  v.object({
    id: v.number(),
    tenant_id: v.number(),
    external_id: v.string(),
    title: v.string(),
    description: v.nullable(v.string()),
    collection_id: v.nullable(v.number()),
    input_status: InputStatus,
    playback_status: PlaybackStatus,
    playback_policy: PlaybackPolicy,
    provider: v.picklist(["managed", "external_serve"]),
    manifest_url: v.nullable(v.string()),
    source_bytes: v.number(),
    storage_bytes: v.number(),
    duration_seconds: v.number(),
    source_key: v.string(),
    source_sha256: v.nullable(v.string()),
    original_filename: v.nullable(v.string()),
    relative_path: v.nullable(v.string()),
    manifest_path: v.nullable(v.string()),
    dash_manifest_path: v.nullable(v.string()),
    thumbnail_path: v.nullable(v.string()),
    storyboard_path: v.nullable(v.string()),
    width: v.nullable(v.number()),
    height: v.nullable(v.number()),
    frame_rate: v.nullable(v.number()),
    tags: v.record(v.string(), v.union([v.string(), v.number(), v.boolean()])),
    progress: v.pipe(v.number(), v.description("0 to 100")),
    stage: v.nullable(v.string()),
    error: v.nullable(v.object({ code: v.string(), message: v.string() })),
    ready_at: NullableTime,
    created_at: Time,
    updated_at: Time,
  }),
  v.title("Asset"),
);

export const toAsset = (row: AssetRow): v.InferInput<typeof Asset> => ({
  id: row.id,
  tenant_id: row.tenantId,
  external_id: row.externalId,
  title: row.title,
  description: row.description,
  collection_id: row.collectionId,
  input_status: row.inputStatus,
  playback_status: row.playbackStatus,
  playback_policy: row.playbackPolicy,
  provider: row.provider,
  manifest_url: row.manifestUrl,
  source_bytes: row.sourceBytes,
  storage_bytes: row.storageBytes,
  duration_seconds: row.durationSeconds,
  source_key: row.sourceKey,
  source_sha256: row.sourceSha256,
  original_filename: row.originalFilename,
  relative_path: row.relativePath,
  manifest_path: row.manifestPath,
  dash_manifest_path: row.dashManifestPath,
  thumbnail_path: row.thumbnailPath,
  storyboard_path: row.storyboardPath,
  width: row.width,
  height: row.height,
  frame_rate: row.frameRate,
  tags: row.tags,
  progress: row.progress,
  stage: row.stage,
  error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
  ready_at: iso(row.readyAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});
