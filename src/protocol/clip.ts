import * as v from "valibot";
import { describedAs, SignedHeaders, Text } from "./fields.ts";
import {
  DashManifestPath,
  DurationSeconds,
  LocalPath,
  MethodField,
  PathField,
  StoryboardPath,
  UrlField,
} from "./record-fields.ts";

/**
 * Jobs that cut an exact clip out of the media of another asset. A worker that announces `capabilities: {clips: 2}`
 * receives them, and with `{clips: 1}` those of media in H.264 alone; their contract has `clip`, and no source. The
 * manifests among its objects are those of the whole segments around the clip. The worker encodes the GOPs in which the clip
 * begins and ends, and writes the segments with them, and all manifests, under `outputs.prefix`. The other segments stay
 * where they are.
 */

/** The version of this protocol, as workers announce it in `capabilities.clips`. */
export const CLIPS_VERSION = 2;
/** The version from which on workers cut renditions of all codecs; before it, those of the primary one. */
export const ALL_CODECS_VERSION = 2;

const seconds = v.pipe(v.number(), v.finite(), v.minValue(0));
const Path = Text(900);

/** All paths are relative to the root of the media, which becomes `outputs.prefix`. */
export const Clip = v.object({
  manifest_path: v.pipe(Path, v.description("The HLS manifest")),
  dash_manifest_path: describedAs(DashManifestPath, v.nullable(Path)),
  storyboard_path: describedAs(StoryboardPath, v.nullable(Path)),
  start_seconds: v.pipe(seconds, v.description("Where the clip begins in the first of the whole segments")),
  duration_seconds: describedAs(DurationSeconds, seconds),
  objects: v.pipe(
    v.array(
      v.object({
        path: describedAs(PathField, Path),
        url: UrlField,
        method: MethodField,
        headers: v.pipe(SignedHeaders, v.description("Headers that the request must have")),
        local_path: v.nullable(LocalPath),
        is_shared: v.pipe(v.boolean(), v.description("Whether the clip can refer to it without a copy")),
      }),
    ),
    v.description("Manifests, init segments, and the first three and last three segments of each rendition"),
  ),
});
export type Clip = v.InferOutput<typeof Clip>;

const MAX_OWN = 2000;
const number = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER));

export const Run = v.object({
  before: v.pipe(v.string(), v.maxLength(900), v.description("What precedes the number in each path")),
  digits: v.pipe(number, v.description("The number has at least so many digits")),
  first: v.pipe(number, v.description("The first number")),
  last: v.pipe(number, v.description("The last number")),
  after: v.pipe(v.string(), v.maxLength(20), v.description("What follows the number in each path")),
});

/** What the clip consists of. */
export const ClipResult = v.object({
  skipped_seconds: v.pipe(seconds, v.description("How much later it begins than the first of the whole segments")),
  segments: v.pipe(v.array(Run), v.maxLength(MAX_OWN), v.description("Runs of numbered segments that it shares")),
  own: v.pipe(
    v.array(Path),
    v.maxLength(MAX_OWN),
    v.description("Paths of segments and init segments of its own, in place of shared ones"),
  ),
});
export type ClipResult = v.InferOutput<typeof ClipResult>;
