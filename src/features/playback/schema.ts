import * as v from "valibot";
import { PlaybackPolicy } from "#platform/http/schemas.ts";
import {
  AssetId,
  ExternalIdField,
  FrameRateField,
  HeightField,
  LabelField,
  LanguageField,
  NameField,
  TokenExpiresAt,
  TokenField,
  UrlField,
  WidthField,
} from "#protocol/record-fields.ts";
import { StoryboardUrl, ThumbnailUrl } from "./record-fields.ts";

/** What a player needs, of an asset or of a live channel. */
export const playbackEntries = {
  playback_policy: PlaybackPolicy,
  hls_url: v.pipe(v.string(), v.description("URL of the HLS master playlist")),
  dash_url: v.pipe(v.nullable(v.string()), v.description("URL of the DASH manifest; null without one")),
  thumbnail_url: v.nullable(ThumbnailUrl),
  storyboard_url: v.nullable(StoryboardUrl),
  subtitles: v.pipe(
    v.array(v.object({ language: LanguageField, label: LabelField, url: UrlField })),
    v.description("Subtitles"),
  ),
  renditions: v.pipe(
    v.array(
      v.object({
        name: NameField,
        width: v.nullable(WidthField),
        height: v.nullable(HeightField),
        frame_rate: v.nullable(FrameRateField),
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
  token: TokenField,
  token_expires_at: TokenExpiresAt,
  embed_url: v.pipe(v.string(), v.description("URL of the page to embed in an iframe")),
};

export const Playback = v.pipe(
  v.object({
    asset_id: AssetId,
    external_id: ExternalIdField,
    ...playbackEntries,
    mp4_url: v.optional(v.pipe(v.string(), v.description("URL of the MP4 file, if the server writes such files"))),
  }),
  v.title("Playback"),
);
