import * as v from "valibot";

/** Fields that several schemas share, each with its description. */

export const StereoModeField = v.pipe(
  v.picklist(["off", "sbs", "tb", "cuv"]),
  v.description("Arrangement of the two views"),
);
export const StoryboardUrl = v.pipe(v.string(), v.description("URL of the storyboard's WebVTT; null without one"));
export const ThumbnailUrl = v.pipe(v.string(), v.description("URL of the poster; null without one"));
export const VrThumbnailUrl = v.pipe(v.string(), v.description("URL of the poster"));
