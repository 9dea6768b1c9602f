import * as v from "valibot";
import { PLAYBACK_POLICIES } from "#model/enums.ts";

/** What a player needs, of an asset or of a live channel. */
export const playbackEntries = {
  playback_policy: v.picklist(PLAYBACK_POLICIES),
  hls_url: v.string(),
  dash_url: v.nullable(v.string()),
  thumbnail_url: v.nullable(v.string()),
  storyboard_url: v.nullable(v.string()),
  subtitles: v.array(v.object({ language: v.string(), label: v.string(), url: v.string() })),
  renditions: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        width: v.nullable(v.number()),
        height: v.nullable(v.number()),
        frame_rate: v.nullable(v.number()),
        codecs: v.pipe(v.string(), v.description("As in RFC 6381, separated by commas")),
        bandwidth: v.pipe(v.number(), v.description("Peak, with audio, in bit/s")),
        average_bandwidth: v.pipe(v.nullable(v.number()), v.description("With audio, in bit/s")),
        score: v.pipe(
          v.optional(v.number()),
          v.description("Estimated quality, 0 to 100; only of profiles with `per_title`"),
        ),
      }),
    ),
    v.description("Variants of the HLS manifest; empty for media that this server does not serve"),
  ),
  token: v.string(),
  token_expires_at: v.pipe(v.string(), v.isoTimestamp()),
  embed_url: v.string(),
};

export const Playback = v.pipe(
  v.object({
    asset_id: v.number(),
    external_id: v.string(),
    ...playbackEntries,
    mp4_url: v.optional(v.pipe(v.string(), v.description("URL of the MP4 file, if the server writes such files"))),
  }),
  v.title("Playback"),
);
