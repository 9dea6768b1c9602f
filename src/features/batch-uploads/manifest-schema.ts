import * as v from "valibot";
import { schemaOf } from "#platform/http/openapi-schema.ts";
import { ASSET_TEXTS } from "#protocol/asset-fields.ts";
import { manifestMedia, manifestOrigin } from "#protocol/manifest.ts";
import { creationEntries } from "../assets/schema.ts";
import { TrackWrite } from "../tracks/timed/schema.ts";

export const MAX_ASSETS = 200;
/** Parsing much larger manifests would block other requests. */
export const MAX_MANIFEST_BYTES = 2 * 2 ** 20;

export const ManifestAsset = v.pipe(
  v.object(
    {
      ...creationEntries,
      title: ASSET_TEXTS.title.input,
      ...manifestOrigin,
      ...manifestMedia,
      tracks: v.optional(v.pipe(v.array(TrackWrite, "must be an array"), v.maxLength(50, "must be at most 50")), []),
    },
    "must be an object",
  ),
  v.title("IngestManifestAsset"),
);
export type ManifestAssetInput = v.InferOutput<typeof ManifestAsset>;

const AnyAsset = v.pipe(v.unknown(), v.metadata({ openapi: schemaOf(ManifestAsset) }));

/** Assets are validated by the handler, which reports all faults at once, with positions. */
export const Manifest = v.object({
  assets: v.pipe(
    v.array(AnyAsset, "must be an array"),
    v.minLength(1, "must contain at least one asset"),
    v.maxLength(MAX_ASSETS, `must be at most ${MAX_ASSETS}`),
  ),
});
export const Fault = v.object({
  path: v.pipe(v.string(), v.description("Location in the manifest, such as assets[0].hls.manifest_path")),
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
