import * as v from "valibot";
import { Password } from "#features/credentials/devices/schema.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { ClientTime, Name, NullableTime, Paging, PlaybackPolicy, Text, whole } from "#platform/http/schemas.ts";
import { ProfileName } from "#protocol/encoding-profile.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  ActionField,
  ChannelField,
  CodeField,
  CreatedAt,
  FrameRateField,
  IpField,
  MessageField,
  NameField,
  PathField,
  RecordId,
  RevokedAt,
  TenantIdField,
  TenantIdFromClient,
  TokenExpiresAt,
  TokenField,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import { Warnings } from "#protocol/upload.ts";
import { CaptionLanguages } from "../subtitles/caption-request.ts";

/** The gateway's path: the prefix separates channels from its other paths. */
/** The application of publish URLs: `rtmp://host/live`. */
export const LIVE_APPLICATION = "live";
export const pathOf = (channel: string) => `${LIVE_APPLICATION}/${channel}`;
const CHANNEL = /^[a-z0-9][a-z0-9_-]{1,62}$/;

/** The channel of `live/<channel>`; null for any other path. */
export function channelOf(path: string): string | null {
  const channel = path.startsWith("live/") ? path.slice("live/".length) : "";
  return CHANNEL.test(channel) ? channel : null;
}

const Channel = v.pipe(
  Text(63),
  v.regex(CHANNEL, "must have 2 to 63 characters of a-z 0-9 _ - and begin with a letter or digit"),
  v.description("Unique across all tenants; the path at the gateway is live/<channel>"),
);
const Publisher = v.nullable(
  v.pipe(Name(200), v.description("The only user name that may publish; null: any user with the stream key")),
);

/** 12 hours. */
const MAX_DVR_SECONDS = 43_200;
const Switch = (description: string) => v.pipe(v.boolean("must be true or false"), v.description(description));

/** Half an hour. */
const MAX_RECONNECT_SECONDS = 1800;
const DEFAULT_RECONNECT_SECONDS = 30;
const DURATION_SECONDS = [60, 43_200] as const;

/** Each is recognized on its own. */
const MAX_LIVE_LANGUAGES = 4;

/** How this server treats a stream that is published to it. A running one keeps what it began with. */
const streamEntries = {
  record: Switch("Whether streams become assets"),
  dvr_seconds: v.pipe(
    whole(MAX_DVR_SECONDS, 0),
    v.description("How far viewers can seek back, in seconds; at least six target durations"),
  ),
  low_latency: Switch("Whether playlists have parts, blocking requests and delta updates (LL-HLS)"),
  takeover: Switch("Whether a second publisher replaces the first one; otherwise it is refused"),
  reconnect_seconds: v.pipe(
    whole(MAX_RECONNECT_SECONDS, 0),
    v.description("How long a stream waits for a publisher whose connection broke, in seconds"),
  ),
  max_duration_seconds: v.pipe(
    v.nullable(whole(DURATION_SECONDS[1], DURATION_SECONDS[0])),
    v.description("When a stream is ended at the latest, in seconds; null: no limit. Applies to a running one"),
  ),
  encoding_profile: v.pipe(
    v.nullable(ProfileName),
    v.description("Encoding profile of additional renditions; null: only what the publisher sends"),
  ),
  captions: v.pipe(
    CaptionLanguages,
    v.description("Languages to transcribe recordings in, as subtitles with source `auto`"),
  ),
  captions_live: v.pipe(
    CaptionLanguages,
    v.maxLength(MAX_LIVE_LANGUAGES, `must have at most ${MAX_LIVE_LANGUAGES} languages`),
    v.description(
      "Languages to recognize the speech in while a stream runs, as subtitles that viewers see a few seconds later",
    ),
  ),
};

const Enabled = Switch("Whether publishers are accepted; otherwise a running stream ends within two seconds");
const StartsAt = v.pipe(
  v.nullable(ClientTime),
  v.description("When the next stream is announced for: viewers who wait see it, and a countdown; null: not announced"),
);

export const ChannelWrite = v.object({
  tenant_id: v.optional(TenantIdFromClient),
  channel: Channel,
  name: v.optional(v.pipe(Name(512), v.description("Default: the channel name"))),
  playback_policy: v.optional(v.pipe(PlaybackPolicy, v.description("Default: the tenant's default"))),
  publisher: v.optional(Publisher, null),
  record: v.optional(streamEntries.record, true),
  dvr_seconds: v.optional(streamEntries.dvr_seconds, 3600),
  low_latency: v.optional(streamEntries.low_latency, true),
  takeover: v.optional(streamEntries.takeover, false),
  reconnect_seconds: v.optional(streamEntries.reconnect_seconds, DEFAULT_RECONNECT_SECONDS),
  max_duration_seconds: v.optional(streamEntries.max_duration_seconds, null),
  encoding_profile: v.optional(streamEntries.encoding_profile, null),
  captions: v.optional(streamEntries.captions, []),
  captions_live: v.optional(streamEntries.captions_live, []),
  starts_at: v.optional(StartsAt, null),
  enabled: v.optional(Enabled, true),
});
export const ChannelPatch = v.object({
  name: describedAs(NameField, v.optional(Name(512))),
  playback_policy: v.optional(PlaybackPolicy),
  publisher: v.optional(Publisher),
  starts_at: v.optional(StartsAt),
  enabled: v.optional(Enabled),
  ...v.partial(v.object(streamEntries)).entries,
});
export const ChannelQuery = v.object({
  ...Paging,
  tenant_id: v.optional(TenantIdInQuery),
  channel: v.optional(v.pipe(Text(200), v.description("Only channels with this name"))),
});

export const LiveChannel = v.pipe(
  v.object({
    id: RecordId,
    tenant_id: TenantIdField,
    channel: ChannelField,
    path: v.pipe(v.string(), v.description("Path at the gateway")),
    name: NameField,
    playback_policy: PlaybackPolicy,
    publisher: v.pipe(v.nullable(v.string()), v.description("The only user name that may publish; null for any")),
    ...streamEntries,
    starts_at: v.pipe(NullableTime, v.description("When the next stream is announced for")),
    enabled: Enabled,
    status: v.pipe(
      v.picklist(["idle", "live"]),
      v.description("live: while a publisher streams to a server of this installation"),
    ),
    started_at: v.pipe(NullableTime, v.description("Start of the running stream; null when idle")),
    viewers: v.pipe(
      v.number(),
      v.description("Sessions that requested a playlist from this server within the last 30 s"),
    ),
    health: v.pipe(
      v.nullable(
        v.object({
          bitrate: v.pipe(v.number(), v.description("bit/s of audio and video")),
          frame_rate: v.nullable(FrameRateField),
          dropped_frames: v.pipe(
            v.nullable(v.number()),
            v.description(
              "Frames that are missing, by the timestamps of the others; null without a constant frame rate",
            ),
          ),
          keyframe_seconds: v.pipe(v.nullable(v.number()), v.description("Longest interval of the last keyframes")),
          speed: v.pipe(v.nullable(v.number()), v.description("Seconds of media that arrive in a second")),
          advice: v.pipe(v.array(v.string()), v.description("What is wrong with the stream, and what to do")),
          warnings: v.pipe(
            v.array(v.object({ code: CodeField, message: MessageField })),
            v.description(
              "What is not played, or not as sent: `track_ignored`, `configuration_missing`, `video_missing`",
            ),
          ),
        }),
      ),
      v.description("What the publisher has sent in the last 10 s; null without a publisher"),
    ),
    ingest: v.pipe(
      v.object({
        rtmp_url: v.pipe(v.nullable(v.string()), v.description("RTMP; the stream key is separate")),
        rtmps_url: v.pipe(v.nullable(v.string()), v.description("RTMP with TLS; the stream key is separate")),
        srt_url: v.pipe(v.nullable(v.string()), v.description("SRT; without the stream ID")),
        whip_url: v.pipe(v.nullable(v.string()), v.description("WHIP; the stream key is the bearer token")),
      }),
      v.description("Where encoders send the stream, without the stream key; null: switched off on this server"),
    ),
    hls_url: v.pipe(v.string(), v.description("Plays while the channel is live; a signed one needs a token")),
    dash_url: v.pipe(
      v.nullable(v.string()),
      v.description("DASH manifest of the running stream; null when idle. A signed channel needs a token"),
    ),
    revoked_at: v.nullable(RevokedAt),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
    warnings: v.optional(Warnings),
  }),
  v.title("LiveChannel"),
);
export const NewLiveChannel = v.object({
  ...LiveChannel.entries,
  stream_key: v.optional(v.pipe(v.string(), v.description("Returned once, not by a replayed request"))),
});

export const TokenWrite = v.object({
  expires_in: v.optional(
    v.pipe(
      v.number("must be a whole number"),
      v.integer("must be a whole number"),
      v.minValue(60, "must be at least 60"),
      v.maxValue(43_200, "must be at most 43200"),
      v.description("Seconds"),
    ),
    3600,
  ),
});
export const LiveToken = v.object({
  path: PathField,
  token: TokenField,
  token_expires_at: TokenExpiresAt,
});

export const PublishToken = v.object({
  token: v.pipe(v.string(), v.description("The bearer token of WHIP, or the stream key of RTMP and SRT")),
  token_expires_at: TokenExpiresAt,
  whip_url: v.pipe(v.nullable(v.string()), v.description("Where a browser publishes; null: WHIP is switched off")),
});

const GatewayField = v.nullish(v.string("must be a string"));
/** The request of MediaMTX versions since `authMethod: http`. Values are only compared, so any string is accepted. */
export const AuthRequest = v.object({
  action: describedAs(
    ActionField,
    v.pipe(
      v.string("must be a string"),
      v.metadata({ openapi: { type: "string", enum: ["publish", "read", "playback"] } }),
    ),
  ),
  path: describedAs(PathField, v.string("must be a string")),
  user: v.pipe(GatewayField, v.description("User name that the client sent")),
  password: describedAs(Password, GatewayField),
  token: v.nullish(v.pipe(v.string("must be a string"), v.description("Bearer token of the client"))),
  ip: describedAs(IpField, GatewayField),
  query: v.pipe(GatewayField, v.description("Query of the client's URL")),
});
export type AuthQuery = v.InferOutput<typeof AuthRequest>;
