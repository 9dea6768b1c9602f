import * as v from "valibot";
import { MAX_LANGUAGE_CHARACTERS } from "#lib/base";
import { Name } from "#platform/http/schemas.ts";
import { choice, fields, listOf, Meta, nothing, only, Paging, Passthrough, Policy, Seconds, Text } from "../fields.ts";

import { MUX_RESOLUTIONS } from "./static-renditions.ts";

const MAX_INPUTS = 21;
const MAX_POLICIES = 20;

/** Languages that Mux transcribes. */
const GENERATED = [
  "en",
  "es",
  "it",
  "pt",
  "de",
  "fr",
  "pl",
  "ru",
  "nl",
  "ca",
  "tr",
  "sv",
  "uk",
  "no",
  "fi",
  "sk",
  "el",
  "cs",
  "hr",
  "da",
  "ro",
  "bg",
] as const;

/** For an asset that does not exist yet: its audio is transcribed with its encode, in a known language. */
const GeneratedSubtitle = fields({
  // Strapi's plugin describes them as it does the tracks that it uploads; Mux has these fields for those only.
  type: v.optional(choice(["text"])),
  text_type: v.optional(choice(["subtitles"])),
  closed_captions: v.optional(v.boolean("must be a boolean")),
  language_code: v.optional(choice<string>([...GENERATED], ["auto"]), "en"),
  name: v.optional(Name(100)),
  passthrough: nothing,
});
export const SubtitlesGenerate = fields({
  generated_subtitles: v.pipe(
    v.array(
      fields({
        language_code: v.optional(choice<string>([...GENERATED, "auto"]), "en"),
        name: v.optional(Text(200)),
        passthrough: nothing,
      }),
    ),
    v.minLength(1, "must have at least one entry"),
    v.maxLength(20, "must have at most 20 entries"),
  ),
});

const Input = fields({
  url: v.optional(Text(4000)),
  type: v.optional(choice(["video", "text"], ["audio"])),
  text_type: v.optional(choice(["subtitles"])),
  language_code: v.optional(Text(MAX_LANGUAGE_CHARACTERS)),
  name: v.optional(Text(200)),
  start_time: v.optional(Seconds),
  end_time: v.optional(Seconds),
  generated_subtitles: v.optional(v.pipe(v.array(GeneratedSubtitle), v.maxLength(20, "must have at most 20 entries"))),
  closed_captions: v.optional(v.boolean("must be a boolean")),
  passthrough: nothing,
  overlay_settings: nothing,
});
export type Input = v.InferOutput<typeof Input>;

/** A text is the URL of the only input. */
const Inputs = listOf(Input, MAX_INPUTS, (url) => (typeof url === "string" ? { url } : url));
const Policies = listOf(Policy, MAX_POLICIES);

const Mp4Support = choice(["none", "standard", "capped-1080p", "audio-only", "audio-only,capped-1080p"]);
const MAX_RENDITIONS = 10;
export const StaticRenditionCreate = fields({ resolution: choice(MUX_RESOLUTIONS), passthrough: nothing });
export const Mp4SupportUpdate = fields({ mp4_support: Mp4Support });

/** What an asset, and the asset of a direct upload, is created with. */
export const assetSettings = {
  playback_policies: v.optional(Policies),
  playback_policy: v.optional(Policies),
  advanced_playback_policies: v.optional(
    v.pipe(
      v.array(fields({ policy: v.optional(Policy, "public"), drm_configuration_id: nothing })),
      v.maxLength(MAX_POLICIES, `must have at most ${MAX_POLICIES} entries`),
    ),
  ),
  meta: v.optional(Meta),
  passthrough: v.optional(Passthrough),
  video_quality: v.optional(choice(["basic", "plus", "premium"])),
  encoding_tier: v.optional(choice(["baseline", "smart", "premium"])),
  max_resolution_tier: v.optional(choice(["1080p", "2160p"], ["1440p"])),
  master_access: v.optional(choice(["none", "temporary"])),
  copy_overlays: only(true),
  directives: only([]),
  generate_shots: only(false),
  mp4_support: v.optional(Mp4Support),
  normalize_audio: only(false),
  static_renditions: v.optional(
    v.pipe(v.array(StaticRenditionCreate), v.maxLength(MAX_RENDITIONS, `must have at most ${MAX_RENDITIONS} entries`)),
  ),
  test: only(false),
};
export const AssetSettings = fields(assetSettings);
export type AssetSettings = v.InferOutput<typeof AssetSettings>;

export const AssetCreate = fields({
  ...assetSettings,
  inputs: v.optional(Inputs),
  input: v.optional(Inputs),
});

export const AssetUpdate = fields({
  meta: v.optional(Meta),
  passthrough: v.optional(Passthrough),
  thumbnail_time: v.optional(Seconds),
});

export const AssetList = fields({ ...Paging, live_stream_id: v.optional(Text(100)), upload_id: v.optional(Text(100)) });
export const PlaybackIdCreate = fields({ policy: v.optional(Policy, "public"), drm_configuration_id: nothing });
export const MasterAccess = fields({ master_access: choice(["none", "temporary"]) });

export const TrackCreate = fields({
  url: Text(4000),
  type: choice(["text", "audio"]),
  text_type: v.optional(choice(["subtitles"])),
  language_code: Text(MAX_LANGUAGE_CHARACTERS),
  name: v.optional(Text(200)),
  closed_captions: v.optional(v.boolean("must be a boolean")),
  passthrough: nothing,
});
export const TrackUpdate = fields({
  language_code: v.optional(Text(MAX_LANGUAGE_CHARACTERS)),
  name: v.optional(Text(200)),
  closed_captions: v.optional(v.boolean("must be a boolean")),
  passthrough: nothing,
});
