import { and, desc, eq, isNull, lt, ne, or } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { emit } from "#platform/events/emit.ts";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type LiveChannelRow, liveChannels, liveStreams } from "#storage/db/schema.ts";
import { requireProfile } from "../encoding-profiles/queries.ts";
import { channelCache } from "./channel-cache.ts";

/** A channel, and since when a publisher streams to it, on any server; null while it is idle. */
export type Channel = LiveChannelRow & { startedAt: number | null };

const isMine = (caller: Caller, id: number) => and(eq(liveChannels.id, id), ownedBy(caller, liveChannels.tenantId));

const selectChannels = (db: Db) =>
  db
    .select({ row: liveChannels, startedAt: liveStreams.startedAt })
    .from(liveChannels)
    .leftJoin(liveStreams, and(eq(liveStreams.channelId, liveChannels.id), isNull(liveStreams.endedAt)));

const toChannel = ({ row, startedAt }: { row: LiveChannelRow; startedAt: number | null }): Channel => ({
  ...row,
  startedAt,
});

/** Channels of the caller, newest first, up to `limit`. */
export async function listChannels(
  db: Db,
  caller: Caller,
  filter: { tenantId: number | undefined; channel: string | undefined; before: number | undefined; limit: number },
): Promise<Channel[]> {
  const rows = await selectChannels(db)
    .where(
      and(
        ownedBy(caller, liveChannels.tenantId),
        filter.tenantId === undefined ? undefined : eq(liveChannels.tenantId, filter.tenantId),
        filter.channel === undefined ? undefined : eq(liveChannels.channel, filter.channel),
        filter.before === undefined ? undefined : lt(liveChannels.id, filter.before),
      ),
    )
    .orderBy(desc(liveChannels.id))
    .limit(filter.limit)
    .all();
  return rows.map(toChannel);
}

/** A channel of the caller. */
export async function findChannel(db: Db, caller: Caller, id: number): Promise<Channel | undefined> {
  const found = await selectChannels(db).where(isMine(caller, id)).get();
  return found && toChannel(found);
}

/** Throws 404, also for a channel of another tenant. */
export const requireChannel = async (db: Db, caller: Caller, id: number): Promise<Channel> =>
  (await findChannel(db, caller, id)) ?? notFound("channel");

/** Throws 409 `channel_revoked`. */
export function requireNotRevoked(channel: Channel): Channel {
  if (channel.revokedAt === null) return channel;
  throw new HttpError(409, "channel_revoked", "This channel is revoked; create a new one.");
}

/** Throws 422. A name that belonged to another tenant stays reserved: its URLs have been published. */
export async function requireFree(tx: Db, tenantId: number, channel: string): Promise<void> {
  const isTaken = or(isNull(liveChannels.revokedAt), ne(liveChannels.tenantId, tenantId));
  const sameName = and(eq(liveChannels.channel, channel), isTaken);
  if (await tx.select({ id: liveChannels.id }).from(liveChannels).where(sameName).get()) invalid("channel", "is taken");
}

/** Columns that a client may change. */
export type ChannelChange = Partial<
  Omit<
    LiveChannelRow,
    "id" | "tenantId" | "channel" | "endedStream" | "revision" | "createdAt" | "updatedAt" | "revokedAt"
  >
>;

/**
 * Throws 404, 409 for a revoked channel, and 422 for an encoding profile that its tenant cannot use. The cache is updated
 * before this resolves.
 */
export async function changeChannel(app: App, caller: Caller, id: number, set: ChannelChange): Promise<Channel> {
  const changed = await app.write(async (tx) => {
    const { tenantId, channel, enabled } = requireNotRevoked(await requireChannel(tx, caller, id));
    if (set.encodingProfile) await requireProfile(tx, tenantId, set.encodingProfile);
    await tx
      .update(liveChannels)
      .set({ ...set, updatedAt: app.clock.now() })
      .where(isMine(caller, id));
    const { enabled: _, ...others } = set;
    if (Object.keys(others).length > 0)
      await emit(tx, app, "live.channel.updated", { tenantId, data: { channel_id: id, channel } });
    if (set.enabled !== undefined && set.enabled !== enabled) {
      const type = set.enabled ? "live.channel.enabled" : "live.channel.disabled";
      await emit(tx, app, type, { tenantId, data: { channel_id: id, channel } });
    }
    return requireChannel(tx, caller, id);
  });
  await channelCache(app).changed();
  return changed;
}

/**
 * Ends the running stream of a channel: the server that receives it finds that out within two seconds. Throws 404, 409
 * for a revoked channel, and 422 `channel_idle`.
 */
export async function endStream(app: App, caller: Caller, id: number): Promise<Channel> {
  const ended = await app.write(async (tx) => {
    requireNotRevoked(await requireChannel(tx, caller, id));
    const isRunning = and(eq(liveStreams.channelId, id), isNull(liveStreams.endedAt));
    const running = await tx.select({ name: liveStreams.name }).from(liveStreams).where(isRunning).get();
    if (!running) throw new HttpError(422, "channel_idle", "The channel is not live.");
    const set = { endedStream: running.name, updatedAt: app.clock.now() };
    await tx.update(liveChannels).set(set).where(isMine(caller, id));
    return requireChannel(tx, caller, id);
  });
  await channelCache(app).changed();
  return ended;
}

/** Throws 404. Repeatable. */
export async function revokeChannel(app: App, caller: Caller, id: number): Promise<void> {
  await app.write(async (tx) => {
    const { tenantId, channel, revokedAt } = await requireChannel(tx, caller, id);
    if (revokedAt !== null) return;
    const now = app.clock.now();
    await tx.update(liveChannels).set({ revokedAt: now, updatedAt: now }).where(isMine(caller, id));
    await emit(tx, app, "live.channel.revoked", { tenantId, data: { channel_id: id, channel } });
  });
  await channelCache(app).changed();
}
