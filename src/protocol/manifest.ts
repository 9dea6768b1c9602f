import * as v from "valibot";
import { ObjectKey } from "./batch.ts";
import { describedAs, Name, Sha256, Text } from "./fields.ts";
import {
  BandwidthField,
  CodecsField,
  DurationSeconds,
  FrameRateField,
  HeightField,
  IsDefault,
  LabelField,
  LanguageField,
  ManifestPath,
  Mp4Path,
  NameField,
  OriginalFilename,
  PathField,
  PlaylistPath,
  PositionField,
  RelativePath,
  SourceKey,
  SourceSha256,
  StoryboardPath,
  ThumbnailPath,
  WidthField,
} from "./record-fields.ts";
import { ReportedWarnings } from "./warnings.ts";

/** The manifest of a batch: the fields about files. The server adds those of an asset. */

const amount = (message: string) => v.pipe(v.number(message), v.finite(message), v.minValue(0, "must not be negative"));
const Pixels = v.nullish(
  v.pipe(v.number("must be an integer"), v.integer("must be an integer"), v.minValue(1), v.maxValue(65_535)),
);

const ManifestRendition = v.object(
  {
    playlist_path: describedAs(PlaylistPath, ObjectKey),
    name: v.optional(describedAs(NameField, Name(100))),
    width: describedAs(WidthField, Pixels),
    height: describedAs(HeightField, Pixels),
    bandwidth: v.optional(describedAs(BandwidthField, amount("must be a number"))),
    codecs: v.optional(describedAs(CodecsField, Text(200))),
    frame_rate: v.nullish(describedAs(FrameRateField, amount("must be a number"))),
  },
  "must be an object",
);
const ManifestSubtitle = v.object(
  {
    path: describedAs(PathField, ObjectKey),
    language: describedAs(LanguageField, v.string("must be a string")),
    label: describedAs(LabelField, Name(200)),
    is_default: v.optional(IsDefault),
    position: v.optional(
      describedAs(
        PositionField,
        v.pipe(
          v.number("must be an integer"),
          v.integer("must be an integer"),
          v.minValue(0, "must not be negative"),
          v.maxValue(2 ** 31 - 1),
        ),
      ),
    ),
  },
  "must be an object",
);
/** Entries of one asset: where its files were on the client. */
export const manifestOrigin = {
  original_filename: v.nullish(describedAs(OriginalFilename, Name(500))),
  relative_path: v.nullish(describedAs(RelativePath, Name(1000))),
};
/** Entries of one asset: its objects, by their keys in the batch. */
export const manifestMedia = {
  duration_seconds: v.nullish(describedAs(DurationSeconds, amount("must be a number"))),
  source_key: v.nullish(describedAs(SourceKey, ObjectKey)),
  source_sha256: v.nullish(describedAs(SourceSha256, Sha256)),
  warnings: v.pipe(
    v.nullish(ReportedWarnings),
    v.description("What of the source the media do not contain; becomes the asset's `warnings`"),
  ),
  hls: v.pipe(
    v.object(
      {
        manifest_path: describedAs(ManifestPath, ObjectKey),
        renditions: v.optional(
          v.pipe(
            v.array(ManifestRendition, "must be an array"),
            v.maxLength(50, "must be at most 50"),
            v.description("Variants of the video, by height"),
          ),
        ),
      },
      "must be an object",
    ),
    v.description("The HLS manifests"),
  ),
  dash: v.pipe(
    v.nullish(v.object({ manifest_path: describedAs(ManifestPath, ObjectKey) }, "must be an object")),
    v.description("The DASH manifest"),
  ),
  thumbnail_path: v.nullish(describedAs(ThumbnailPath, ObjectKey)),
  storyboard_path: v.nullish(describedAs(StoryboardPath, ObjectKey)),
  mp4_path: v.nullish(describedAs(Mp4Path, ObjectKey)),
  subtitles: v.optional(
    v.pipe(
      v.array(ManifestSubtitle, "must be an array"),
      v.maxLength(20, "must be at most 20"),
      v.description("Subtitles"),
    ),
    [],
  ),
};
type Entries = typeof manifestOrigin & typeof manifestMedia;
export type ManifestFiles = v.InferInput<v.ObjectSchema<Entries, undefined>>;
