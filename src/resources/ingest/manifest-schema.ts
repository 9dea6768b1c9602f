import * as v from "valibot";
import { schemaOf } from "../../http/openapi-schema.ts";
import { Name, PlaybackPolicy, Sha256, Text } from "../../http/schemas.ts";
import { Description, ExternalId, Tags, Title } from "../assets/schema.ts";
import { TrackWrite } from "../tracks/schema.ts";
import { ObjectKey } from "./schema.ts";

export const MAX_ASSETS = 200;
/** Much larger ones would hold up everybody else while they are read. */
export const MAX_MANIFEST_BYTES = 2 * 2 ** 20;

const amount = (message: string) => v.pipe(v.number(message), v.finite(message), v.minValue(0, "must not be negative"));
const Pixels = v.nullish(
  v.pipe(v.number("must be an integer"), v.integer("must be an integer"), v.minValue(1), v.maxValue(65_535)),
);

const ManifestRendition = v.object(
  {
    playlist_path: ObjectKey,
    name: v.optional(Name(100)),
    width: Pixels,
    height: Pixels,
    bandwidth: v.optional(amount("must be a number")),
    codecs: v.optional(Text(200)),
    frame_rate: v.nullish(amount("must be a number")),
  },
  "must be an object",
);
const ManifestSubtitle = v.object(
  {
    path: ObjectKey,
    language: v.string("must be a string"),
    label: Name(200),
    is_default: v.optional(v.boolean("must be true or false")),
    position: v.optional(
      v.pipe(
        v.number("must be an integer"),
        v.integer("must be an integer"),
        v.minValue(0, "must not be negative"),
        v.maxValue(2 ** 31 - 1),
      ),
    ),
  },
  "must be an object",
);
export const ManifestAsset = v.pipe(
  v.object(
    {
      title: Title,
      original_filename: v.nullish(Name(500)),
      relative_path: v.nullish(Name(1000)),
      description: v.optional(Description),
      external_id: v.optional(ExternalId),
      playback_policy: v.optional(PlaybackPolicy),
      duration_seconds: v.nullish(amount("must be a number")),
      source_key: v.nullish(ObjectKey),
      source_sha256: v.nullish(Sha256),
      hls: v.object(
        {
          manifest_path: ObjectKey,
          renditions: v.optional(
            v.pipe(v.array(ManifestRendition, "must be an array"), v.maxLength(50, "must be at most 50")),
          ),
        },
        "must be an object",
      ),
      dash: v.nullish(v.object({ manifest_path: ObjectKey }, "must be an object")),
      thumbnail_path: v.nullish(ObjectKey),
      storyboard_path: v.nullish(ObjectKey),
      subtitles: v.optional(
        v.pipe(v.array(ManifestSubtitle, "must be an array"), v.maxLength(20, "must be at most 20")),
        [],
      ),
      tracks: v.optional(v.pipe(v.array(TrackWrite, "must be an array"), v.maxLength(50, "must be at most 50")), []),
      tags: v.optional(Tags, {}),
    },
    "must be an object",
  ),
  v.title("IngestManifestAsset"),
);
export type GivenAsset = v.InferOutput<typeof ManifestAsset>;

const AnyAsset = v.pipe(v.unknown(), v.metadata({ openapi: schemaOf(ManifestAsset) }));

/** What each asset says is looked at by the operation, which tells all that is wrong at once, and where. */
export const Manifest = v.object({
  assets: v.pipe(
    v.array(AnyAsset, "must be an array"),
    v.minLength(1, "must name at least one asset"),
    v.maxLength(MAX_ASSETS, `must be at most ${MAX_ASSETS}`),
  ),
});
export const Fault = v.object({
  path: v.pipe(v.string(), v.description("Where in the manifest, such as assets[0].hls.manifest_path")),
  code: v.string(),
  message: v.string(),
});
export type Fault = v.InferOutput<typeof Fault>;
export const Preview = v.pipe(
  v.object({
    valid: v.boolean(),
    errors: v.array(Fault),
    assets: v.array(
      v.object({
        index: v.number(),
        title: v.nullable(v.string()),
        valid: v.boolean(),
        duration_seconds: v.nullable(v.number()),
        object_count: v.number(),
        storage_bytes: v.number(),
        renditions: v.array(
          v.object({
            name: v.string(),
            width: v.nullable(v.number()),
            height: v.nullable(v.number()),
            bandwidth: v.number(),
            codecs: v.string(),
            playlist_path: v.string(),
          }),
        ),
      }),
    ),
  }),
  v.title("IngestPreview"),
);
