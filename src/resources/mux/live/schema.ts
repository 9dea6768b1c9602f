import * as v from "valibot";
import { assetSettings } from "../assets/schema.ts";
import { choice, Flag, fields, nothing, only, Paging, Passthrough, Text } from "../fields.ts";

/** Mux's default, in seconds; a broadcast has no limit here. */
export const MAX_DURATION = 43_200;
const { playback_policies, playback_policy, advanced_playback_policies } = assetSettings;
const policies = { playback_policies, playback_policy, advanced_playback_policies };
const Latency = choice(["low", "standard"], ["reduced"]);

export const TargetCreate = fields({
  url: Text(2000),
  stream_key: v.optional(Text(1000)),
  passthrough: v.optional(Passthrough),
});

export const StreamCreate = fields({
  ...policies,
  // Recordings have the policy of their stream.
  new_asset_settings: v.optional(fields(policies)),
  meta: v.optional(fields({ title: v.optional(Text(200)), creator_id: nothing, external_id: nothing })),
  passthrough: v.optional(Passthrough),
  latency_mode: v.optional(Latency),
  low_latency: v.optional(Flag),
  simulcast_targets: v.optional(v.pipe(v.array(TargetCreate), v.maxLength(5, "must have at most 5 entries"))),
  max_continuous_duration: only(MAX_DURATION),
  reduced_latency: only(false),
  audio_only: only(false),
  embedded_subtitles: only([]),
  generated_subtitles: only([]),
  reconnect_slate_url: nothing,
  reconnect_window: nothing,
  use_slate_for_standard_latency: only(false),
  test: only(false),
});

export const StreamUpdate = fields({
  meta: v.optional(fields({ title: v.optional(Text(200)), creator_id: nothing, external_id: nothing })),
  passthrough: v.optional(Passthrough),
  latency_mode: v.optional(Latency),
  max_continuous_duration: only(MAX_DURATION),
  new_asset_settings: nothing,
  reconnect_slate_url: nothing,
  reconnect_window: nothing,
  use_slate_for_standard_latency: only(false),
});

const { cursor: _, ...paging } = Paging;
export const StreamList = fields({ ...paging, status: nothing, stream_key: nothing });
