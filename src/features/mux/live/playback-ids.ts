import { and, asc, eq, isNull, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { pathOf } from "#features/live/schema.ts";
import { liveFileUrl } from "#features/live/urls.ts";
import { IMAGE_AUDIENCES } from "#features/playback/audience.ts";
import { type PlaybackTokens, requireToken, restrictionOf } from "#features/playback/token.ts";
import { requireActiveTenant } from "#features/tenants/active.ts";
import { newExternalId, notFound } from "#lib/base";
import { Reply } from "#platform/http/route.ts";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import type { Db } from "#storage/db/open.ts";
import { liveChannels, type PlaybackId, type PlaybackPolicy, playbackIds } from "#storage/db/schema.ts";

const MAX_PLAYBACK_IDS = 100;

/** A stream has no known end. */
const TOKEN_MS = 12 * 3_600_000;

export const playbackIdsOfChannel = (db: Db, channelId: number): Promise<PlaybackId[]> =>
  db
    .select({ id: playbackIds.id, policy: playbackIds.policy })
    .from(playbackIds)
    .where(eq(playbackIds.channelId, channelId))
    .orderBy(asc(playbackIds.createdAt), asc(playbackIds.id))
    .all();

/** Adds a playback id to a channel of the tenant. Throws 422 `playback_id_limit_reached`. */
export async function addChannelPlaybackId(
  tx: Db,
  app: App,
  { id: channelId, tenantId }: { id: number; tenantId: number },
  policy: PlaybackPolicy,
): Promise<PlaybackId> {
  await requireFewerRows(tx, {
    table: "playback_ids",
    where: sql`channel_id = ${channelId}`,
    max: MAX_PLAYBACK_IDS,
    code: "playback_id_limit_reached",
    message: `A live stream has at most ${MAX_PLAYBACK_IDS} playback ids; delete those that are no longer used.`,
  });
  const id = newExternalId();
  await tx.insert(playbackIds).values({ id, tenantId, channelId, policy, createdAt: app.clock.now() });
  return { id, policy };
}

/**
 * Redirects to a file of the channel with this playback id, such as its playlist, with these parameters. A signed one needs a token of that id; the URL of a signed
 * channel then contains one of the channel. Throws 404 and 403.
 */
export async function redirectToChannel(
  app: App,
  tokens: PlaybackTokens,
  {
    id,
    token,
    file,
    query,
    isPoster,
  }: { id: string; token: string | null; file: string; query: URLSearchParams; isPoster: boolean },
): Promise<Reply> {
  const found = await app.db
    .select({ channel: liveChannels, policy: playbackIds.policy })
    .from(playbackIds)
    .innerJoin(liveChannels, eq(liveChannels.id, playbackIds.channelId))
    .where(and(eq(playbackIds.id, id), isNull(liveChannels.revokedAt)))
    .get();
  const { channel, policy } = found ?? notFound("playback id");
  const { tenantId } = channel;
  await requireActiveTenant(app, tenantId);
  if (policy === "signed")
    await requireToken(tokens, { tenantId, externalId: id }, token, isPoster ? IMAGE_AUDIENCES : undefined);
  const own = { tenantId, externalId: pathOf(channel.channel) };
  const restriction = policy === "signed" && token !== null ? restrictionOf(token) : null;
  // What the token of a thumbnail opens is a thumbnail.
  const audience = isPoster ? "t" : "v";
  const isSigned = channel.playbackPolicy === "signed";
  const carried = isSigned ? await tokens.sign(own, app.clock.now() + TOKEN_MS, { restriction, audience }) : null;
  const location = liveFileUrl(app.baseUrl(), channel.channel, { file, query, token: carried });
  return new Reply(302, undefined, { location, "cache-control": "no-store" });
}
