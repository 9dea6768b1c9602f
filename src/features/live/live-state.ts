import { and, eq, isNull, sql } from "drizzle-orm";
import * as v from "valibot";
import { type App, forApp } from "#app.ts";
import { iso, notFound } from "#lib/base";
import { NullableTime, PlaybackPolicy } from "#platform/http/schemas.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type LiveChannelRow, type LiveStreamRow, liveChannels } from "#storage/db/schema.ts";
import { findPublicAsset } from "../assets/queries.ts";
import { publicId } from "../assets/urls.ts";
import { type PlaybackTokens, requireToken } from "../playback/token.ts";
import { requireActiveTenant } from "../tenants/active.ts";
import { lastStreamOf } from "./last-stream.ts";
import { liveRegistry, viewersOf } from "./registry.ts";
import { channelOf, pathOf } from "./schema.ts";
import { storedStreams } from "./shared/stored-streams.ts";
import { liveUrl } from "./urls.ts";

/** After this time a stream is over: a viewer who opens the page waits for the next one. */
const ENDED_SHOWN_MS = 12 * 3_600_000;

export type PublicChannel = Pick<
  LiveChannelRow,
  "id" | "tenantId" | "channel" | "name" | "playbackPolicy" | "lowLatency" | "startsAt"
>;

/** The public data of a channel for viewers who may watch it; no key protects it. */
export const LiveState = v.pipe(
  v.object({
    status: v.picklist(["idle", "live", "ended"]),
    channel: v.string(),
    title: v.string(),
    playback_policy: PlaybackPolicy,
    hls_url: v.pipe(v.nullable(v.string()), v.description("Null unless the channel is live")),
    starts_at: v.pipe(NullableTime, v.description("When the next stream is announced for")),
    started_at: NullableTime,
    ended_at: NullableTime,
    viewers: v.number(),
    low_latency: v.boolean(),
    recording: v.pipe(
      v.nullable(v.object({ id: v.string() })),
      v.description("The public asset of the stream that has ended, once it can be played"),
    ),
  }),
  v.title("LiveState"),
);

const byName = prepared((db) => {
  const { id, tenantId, channel, name, playbackPolicy, lowLatency, startsAt } = liveChannels;
  return db
    .select({ id, tenantId, channel, name, playbackPolicy, lowLatency, startsAt })
    .from(liveChannels)
    .where(and(eq(channel, sql.placeholder("channel")), isNull(liveChannels.revokedAt)))
    .prepare();
});
/** Every viewer polls the state. */
const remembered = forApp((app) => ({
  channel: cacheUntilCommit(app.commits, (channel: string) => byName(app.db).get({ channel })),
}));

/** Any tenant's channel by its name, unless it is revoked. The playback policy decides on access. */
export async function findPublicChannel(app: App, channel: string): Promise<PublicChannel | undefined> {
  return channelOf(pathOf(channel)) === null ? undefined : remembered(app).channel(channel);
}

/**
 * The channel of a public page, for a viewer who may watch it. Throws 404, 403 `tenant_suspended`, and 403 without a
 * valid token for a signed channel.
 */
export async function requireWatchable(
  app: App,
  tokens: PlaybackTokens,
  { channel, token }: { channel: string; token: string | null },
): Promise<PublicChannel> {
  const found = (await findPublicChannel(app, channel)) ?? notFound("channel");
  await requireActiveTenant(app, found.tenantId);
  await requireChannelToken(tokens, found, token);
  return found;
}

/** Throws 403 without a valid token for a signed channel. */
export async function requireChannelToken(
  tokens: PlaybackTokens,
  { tenantId, channel, playbackPolicy }: PublicChannel,
  token: string | null,
): Promise<void> {
  if (playbackPolicy === "signed") await requireToken(tokens, { tenantId, externalId: pathOf(channel) }, token);
}

/** What viewers see of a channel. URLs are paths of this server, below `basePath`, whatever its host name. */
export async function liveState(
  app: App,
  channel: PublicChannel,
  { token, basePath }: { token: string | null; basePath: string },
): Promise<v.InferInput<typeof LiveState>> {
  const now = app.clock.now();
  const { status, last, viewers } = await statusOf(app, channel, now);
  const carried = channel.playbackPolicy === "signed" ? token : null;
  return {
    status,
    channel: channel.channel,
    title: channel.name,
    playback_policy: channel.playbackPolicy,
    hls_url: status === "live" ? liveUrl(basePath, channel.channel, carried) : null,
    starts_at: iso(channel.startsAt),
    started_at: iso(last?.startedAt ?? null),
    ended_at: iso(last?.endedAt ?? null),
    viewers,
    low_latency: channel.lowLatency,
    recording: status === "ended" ? await recordingOf(app, last?.assetId ?? null) : null,
  };
}

/** Whether a viewer has something to watch: a running stream, or one that has ended a short time ago. */
export const hasStream = async (app: App, channel: PublicChannel): Promise<boolean> =>
  (await statusOf(app, channel, app.clock.now())).status !== "idle";

type LastStream = Pick<LiveStreamRow, "startedAt" | "endedAt" | "assetId">;
type ChannelStatus = { status: "idle" | "live" | "ended"; last: LastStream | null; viewers: number };

/** The registry knows first that a stream of this server ends; those of other servers are only in the database. */
async function statusOf(app: App, { id, channel }: PublicChannel, now: number): Promise<ChannelStatus> {
  const local = liveRegistry(app).ofChannel(channel);
  const row = await lastStreamOf(app, id);
  const own = local?.channelId === id ? local : undefined;
  const isOwn = own !== undefined && (row === null || row.name === own.name || own.endedAt === null);
  const last = isOwn ? { startedAt: own.startedAt, endedAt: own.endedAt, assetId: row?.assetId ?? null } : row;
  if (last === null) return { status: "idle", last, viewers: 0 };
  if (last.endedAt === null)
    return { status: "live", last, viewers: isOwn ? viewersOf(own, now) : storedStreams(app).viewersOf(id) };
  // Not for longer when the clock was set back.
  return Math.abs(now - last.endedAt) < ENDED_SHOWN_MS
    ? { status: "ended", last, viewers: 0 }
    : { status: "idle", last: null, viewers: 0 };
}

/** Follows the asset's own policy: a token for the channel does not open a signed recording. */
async function recordingOf(app: App, assetId: number | null): Promise<{ id: string } | null> {
  const asset = assetId === null ? undefined : await findPublicAsset(app, String(assetId));
  return asset?.playbackStatus === "ready" && asset.playbackPolicy === "public" ? { id: publicId(asset) } : null;
}
