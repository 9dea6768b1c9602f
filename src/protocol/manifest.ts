import * as v from "valibot";
import { ObjectKey } from "./batch.ts";
import { Name, Sha256, Text } from "./fields.ts";
import { ReportedWarnings } from "./warnings.ts";

/** The manifest of a batch: the fields about files. The server adds those of an asset. */

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
/** Entries of one asset: where its files were on the client. */
export const manifestOrigin = {
  original_filename: v.nullish(Name(500)),
  relative_path: v.nullish(Name(1000)),
};
/** Entries of one asset: its objects, by their keys in the batch. */
export const manifestMedia = {
  duration_seconds: v.nullish(amount("must be a number")),
  source_key: v.nullish(ObjectKey),
  source_sha256: v.nullish(Sha256),
  warnings: v.pipe(
    v.nullish(ReportedWarnings),
    v.description("What of the source the media do not contain; becomes the asset's `warnings`"),
  ),
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
  mp4_path: v.nullish(ObjectKey),
  subtitles: v.optional(
    v.pipe(v.array(ManifestSubtitle, "must be an array"), v.maxLength(20, "must be at most 20")),
    [],
  ),
};
type Entries = typeof manifestOrigin & typeof manifestMedia;
export type ManifestFiles = v.InferInput<v.ObjectSchema<Entries, undefined>>;
