import { and, asc, eq, isNull } from "drizzle-orm";
import type { App } from "#app.ts";
import { pathOf } from "#features/live/schema.ts";
import { liveUrl } from "#features/live/urls.ts";
import { type PlaybackTokens, requireToken, restrictionOf } from "#features/playback/token.ts";
import { requireActiveTenant } from "#features/tenants/active.ts";
import { newExternalId, notFound } from "#lib/base";
import { Reply } from "#platform/http/route.ts";
import type { Db } from "#storage/db/open.ts";
import { liveChannels, type PlaybackId, type PlaybackPolicy, playbackIds } from "#storage/db/schema.ts";

/** A broadcast has no known end. */
const TOKEN_MS = 12 * 3_600_000;

export const playbackIdsOfChannel = (db: Db, channelId: number): Promise<PlaybackId[]> =>
  db
    .select({ id: playbackIds.id, policy: playbackIds.policy })
    .from(playbackIds)
    .where(eq(playbackIds.channelId, channelId))
    .orderBy(asc(playbackIds.createdAt), asc(playbackIds.id))
    .all();

/** Adds a playback id to a channel of the tenant. */
export async function addChannelPlaybackId(
  tx: Db,
  app: App,
  { id: channelId, tenantId }: { id: number; tenantId: number },
  policy: PlaybackPolicy,
): Promise<PlaybackId> {
  const id = newExternalId();
  await tx.insert(playbackIds).values({ id, tenantId, channelId, policy, createdAt: app.clock.now() });
  return { id, policy };
}

/**
 * Redirects to the playlist of the channel with this playback id. A signed one needs a token of that id; the URL of a signed
 * channel then contains one of the channel. Throws 404 and 403.
 */
export async function redirectToChannel(
  app: App,
  tokens: PlaybackTokens,
  { id, token }: { id: string; token: string | null },
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
  if (policy === "signed") await requireToken(tokens, { tenantId, externalId: id }, token);
  const own = { tenantId, externalId: pathOf(channel.channel) };
  const restriction = policy === "signed" && token !== null ? restrictionOf(token) : null;
  const isSigned = channel.playbackPolicy === "signed";
  const carried = isSigned ? await tokens.sign(own, app.clock.now() + TOKEN_MS, { restriction }) : null;
  const location = liveUrl(app.baseUrl(), channel.channel, carried);
  return new Reply(302, undefined, { location, "cache-control": "no-store" });
}
