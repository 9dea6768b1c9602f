import * as v from "valibot";
import { schemaOf } from "#platform/http/openapi-schema.ts";
import { ASSET_TEXTS } from "#protocol/asset-fields.ts";
import { manifestMedia, manifestOrigin } from "#protocol/manifest.ts";
import {
  BandwidthField,
  CodecsField,
  CodeField,
  DurationSeconds,
  HeightField,
  MessageField,
  NameField,
  ObjectsField,
  PlaylistPath,
  StorageBytes,
  TitleField,
  WidthField,
} from "#protocol/record-fields.ts";
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
      tracks: v.optional(
        v.pipe(v.array(TrackWrite, "must be an array"), v.maxLength(50, "must be at most 50"), v.description("Tracks")),
        [],
      ),
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
    v.description("The assets"),
  ),
});
export const Fault = v.object({
  path: v.pipe(v.string(), v.description("Location in the manifest, such as assets[0].hls.manifest_path")),
  code: CodeField,
  message: MessageField,
});
export type Fault = v.InferOutput<typeof Fault>;
const ValidField = v.pipe(v.boolean(), v.description("Whether it can be committed"));
export const Preview = v.pipe(
  v.object({
    valid: ValidField,
    errors: v.pipe(v.array(Fault), v.description("Faults")),
    assets: v.pipe(
      v.array(
        v.object({
          index: v.pipe(v.number(), v.description("Position in the request, from 0")),
          title: v.nullable(TitleField),
          valid: ValidField,
          duration_seconds: v.nullable(DurationSeconds),
          object_count: ObjectsField,
          storage_bytes: StorageBytes,
          renditions: v.pipe(
            v.array(
              v.object({
                name: NameField,
                width: v.nullable(WidthField),
                height: v.nullable(HeightField),
                bandwidth: BandwidthField,
                codecs: CodecsField,
                playlist_path: PlaylistPath,
              }),
            ),
            v.description("Variants of the video, by height"),
          ),
        }),
      ),
      v.description("The assets"),
    ),
  }),
  v.title("IngestPreview"),
);
