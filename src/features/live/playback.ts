import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, iso } from "#lib/base";
import { describedAs } from "#protocol/fields.ts";
import { ChannelField, ChannelId, StartedAt } from "#protocol/record-fields.ts";
import { playbackEntries } from "../playback/schema.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { tokenSeconds } from "../playback/token-lifetime.ts";
import { type Channel, requireNotRevoked } from "./queries.ts";
import { type LiveStream, liveRegistry } from "./registry.ts";
import { pathOf } from "./schema.ts";
import { storedStreams } from "./shared/stored-streams.ts";
import { liveDashUrl, livePageUrl, livePosterUrl, liveUrl } from "./urls.ts";

export const LivePlayback = v.pipe(
  v.object({
    channel_id: ChannelId,
    channel: ChannelField,
    started_at: describedAs(StartedAt, v.pipe(v.string(), v.isoTimestamp())),
    ...playbackEntries,
  }),
  v.title("LivePlayback"),
);

/** A playback token of a channel. Expiry in a token is in whole seconds. Throws 409 `channel_revoked`. */
export async function signChannelToken(
  app: App,
  tokens: PlaybackTokens,
  channel: Channel,
  seconds: number,
): Promise<{ token: string; token_expires_at: string }> {
  const { tenantId, channel: name } = requireNotRevoked(channel);
  const expiresAt = Math.floor(app.clock.now() / 1000 + seconds) * 1000;
  const token = await tokens.sign({ tenantId, externalId: pathOf(name) }, expiresAt);
  return { token, token_expires_at: iso(expiresAt) };
}

/** Throws 409 `channel_revoked`, and 422 `channel_idle` while it is idle. */
export async function playbackOf(
  app: App,
  tokens: PlaybackTokens,
  channel: Channel,
  expiresIn: number | undefined,
): Promise<v.InferInput<typeof LivePlayback>> {
  const { id, channel: name, playbackPolicy, startedAt } = requireNotRevoked(channel);
  if (startedAt === null) throw new HttpError(422, "channel_idle", "The channel is not live; try again later.");
  // A stream has no known end.
  const signed = await signChannelToken(app, tokens, channel, tokenSeconds(Number.POSITIVE_INFINITY, expiresIn));
  const carried = playbackPolicy === "signed" ? signed.token : null;
  const received = liveRegistry(app).running(name);
  const stream = received?.channelId === id ? received : await storedStreams(app).ofChannel(id);
  return {
    channel_id: id,
    channel: name,
    started_at: iso(startedAt),
    playback_policy: playbackPolicy,
    hls_url: liveUrl(app.baseUrl(), name, carried),
    dash_url: liveDashUrl(app.baseUrl(), name, carried),
    thumbnail_url: stream?.timeline.poster ? livePosterUrl(app.baseUrl(), name, carried) : null,
    storyboard_url: null,
    subtitles: [],
    renditions: stream ? renditionsOf(stream) : [],
    ...signed,
    embed_url: livePageUrl(app.baseUrl(), "embed", name, carried),
  };
}

const renditionsOf = ({ timeline }: Pick<LiveStream, "timeline">) =>
  timeline.variants().map(({ track, width, height, frameRate, codecs, bandwidth, averageBandwidth }) => ({
    name: track,
    width: width ?? null,
    height: height ?? null,
    frame_rate: frameRate ?? null,
    codecs: codecs.join(","),
    bandwidth: Math.ceil(bandwidth),
    average_bandwidth: Math.ceil(averageBandwidth),
  }));
