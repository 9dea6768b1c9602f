import * as v from "valibot";
import { ownName } from "#lib/base";
import { assetSettings } from "../assets/schema.ts";
import { choice, Flag, fields, nothing, only, Paging, Passthrough, Text } from "../fields.ts";

/** Mux's default, and longest duration, in seconds. */
export const MAX_DURATION = 43_200;
const MIN_DURATION = 60;
const MAX_RECONNECT = 1800;
/** Mux's default with the latency `standard`; with `low` it is 0. Seconds. */
export const STANDARD_RECONNECT = 60;
const { playback_policies, playback_policy, advanced_playback_policies } = assetSettings;
const policies = { playback_policies, playback_policy, advanced_playback_policies };
const Latency = choice(["low", "reduced", "standard"]);

const whole = (min: number, max: number) =>
  v.pipe(
    v.number("must be a number of seconds"),
    v.integer("must be a whole number of seconds"),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  );
const reconnection = {
  reconnect_window: v.optional(whole(0, MAX_RECONNECT)),
  max_continuous_duration: v.optional(whole(MIN_DURATION, MAX_DURATION)),
  reconnect_slate_url: nothing,
  use_slate_for_standard_latency: only(false),
};

export const TargetCreate = fields({
  url: Text(2000),
  stream_key: v.optional(Text(1000)),
  passthrough: v.optional(Passthrough),
});

/** Languages of live speech that Mux has. */
export const SPOKEN = ["en", "en-US", "es", "fr", "de", "pt", "it"] as const;
export type Spoken = (typeof SPOKEN)[number];
export const CAPTION_SERVICES = ["cc1", "cc2", "cc3", "cc4"] as const;
/** Players show the language in its own words. */
export const nameOfSpeech = ownName;
/** The captions of an encoder have no language, and players show their service. */
export const nameOfService = (service: (typeof CAPTION_SERVICES)[number]) => service.toUpperCase();
export const UNKNOWN_LANGUAGE = "und";

const GeneratedSubtitles = v.pipe(
  v.array(
    fields({
      language_code: v.optional(choice(SPOKEN), "en"),
      name: v.optional(Text(200)),
      passthrough: nothing,
      transcription_vocabulary_ids: only([]),
    }),
  ),
  v.maxLength(1, "must have at most one entry"),
);
/** Every service is read, whether it is named or not. */
const EmbeddedSubtitles = v.pipe(
  v.array(
    fields({
      language_channel: v.optional(choice(CAPTION_SERVICES), "cc1"),
      language_code: only(UNKNOWN_LANGUAGE),
      name: v.optional(Text(200)),
      passthrough: nothing,
    }),
  ),
  v.maxLength(4, "must have at most 4 entries"),
);
export const GeneratedUpdate = fields({ generated_subtitles: GeneratedSubtitles });
export const EmbeddedUpdate = fields({ embedded_subtitles: EmbeddedSubtitles });
export type Subtitles = {
  generated_subtitles?: v.InferOutput<typeof GeneratedSubtitles> | undefined;
  embedded_subtitles?: v.InferOutput<typeof EmbeddedSubtitles> | undefined;
};

export const StreamCreate = fields({
  ...policies,
  // Recordings have the policy of their stream.
  new_asset_settings: v.optional(fields(policies)),
  meta: v.optional(fields({ title: v.optional(Text(512)), creator_id: nothing, external_id: nothing })),
  passthrough: v.optional(Passthrough),
  latency_mode: v.optional(Latency),
  low_latency: v.optional(Flag),
  simulcast_targets: v.optional(v.pipe(v.array(TargetCreate), v.maxLength(5, "must have at most 5 entries"))),
  ...reconnection,
  reduced_latency: v.optional(Flag),
  audio_only: only(false),
  embedded_subtitles: v.optional(EmbeddedSubtitles),
  generated_subtitles: v.optional(GeneratedSubtitles),
  test: only(false),
});

export const StreamUpdate = fields({
  meta: v.optional(fields({ title: v.optional(Text(512)), creator_id: nothing, external_id: nothing })),
  passthrough: v.optional(Passthrough),
  latency_mode: v.optional(Latency),
  ...reconnection,
  new_asset_settings: v.optional(fields(policies)),
});

const { cursor: _, ...paging } = Paging;
export const StreamList = fields({
  ...paging,
  status: v.optional(v.picklist(["active", "idle", "disabled"], "must be one of active, idle, disabled")),
  stream_key: v.optional(Text(200)),
});
