import { and, eq, isNull } from "drizzle-orm";
import type { App } from "#app.ts";
import { notify } from "#features/notifications/notify.ts";
import { iso } from "#lib/base";
import type { OpenedStream } from "#live/ingest/messages.ts";
import { emit } from "#platform/events/emit.ts";
import { hastenDeletion } from "#platform/http/object-gc.ts";
import type { Db } from "#storage/db/open.ts";
import { type LiveChannelRow, type LiveStreamRow, liveChannels, liveStreams } from "#storage/db/schema.ts";
import { LINGER_MS, PUBLISHER_TIMEOUT_MS, renditionsPrefix, serverIdOf, sharesStreams } from "../shared/server.ts";

/** The rows of streams, with their events. Each change may be repeated. */

/** Another server receives its publisher, and has written that lately. */
const hasPublisherElsewhere = (app: App, { server, interruptedAt, updatedAt }: LiveStreamRow): boolean =>
  sharesStreams(app) &&
  server !== serverIdOf(app) &&
  interruptedAt === null &&
  updatedAt > app.clock.now() - PUBLISHER_TIMEOUT_MS;

const runningOf = (db: Db, channelId: number) =>
  db
    .select()
    .from(liveStreams)
    .where(and(eq(liveStreams.channelId, channelId), isNull(liveStreams.endedAt)))
    .get();

/** Whether a publisher streams to the channel on another server. */
export async function isPublishedElsewhere(app: App, channelId: number): Promise<boolean> {
  if (!sharesStreams(app)) return false;
  const row = await runningOf(app.db, channelId);
  return row !== undefined && hasPublisherElsewhere(app, row);
}

/** Whether a stream of the channel runs that this server does not receive. */
export async function isTakenOver(app: App, channelId: number): Promise<boolean> {
  const row = await runningOf(app.db, channelId);
  return row !== undefined && row.server !== serverIdOf(app);
}

/**
 * Inserts a stream that has its first part, and returns the id of its row. Ends the one before it on the channel: its end is
 * reported a moment later, or it is one of another server, which finds that out. "revoked": the channel is revoked or deleted
 * by now. "taken": another server receives a publisher. `prefix`: of its objects.
 */
export const insertStream = (
  app: App,
  { name, channel, startedAtMs }: OpenedStream,
  prefix: string | null,
): Promise<number | "revoked" | "taken"> =>
  app.write(async (tx) => {
    const isChannel = and(eq(liveChannels.id, channel.channelId), isNull(liveChannels.revokedAt));
    const row = await tx
      .select({ channel: liveChannels.channel, captions: liveChannels.captions })
      .from(liveChannels)
      .where(isChannel)
      .get();
    if (!row) return "revoked";
    const now = app.clock.now();
    const before = await runningOf(tx, channel.channelId);
    // It was inserted, and the response was lost.
    if (before?.name === name) return before.id;
    if (before && hasPublisherElsewhere(app, before) && !channel.takeover) return "taken";
    if (before) await end(tx, app, before, row.channel, now);
    const stream = await tx
      .insert(liveStreams)
      .values({
        tenantId: channel.tenantId,
        channelId: channel.channelId,
        name,
        recorded: channel.record,
        captions: row.captions,
        startedAt: startedAtMs,
        server: serverIdOf(app),
        prefix,
        createdAt: now,
        updatedAt: now,
      })
      .returning()
      .get();
    await emit(tx, app, "live.stream.started", { tenantId: stream.tenantId, data: dataOf(stream, row.channel) });
    return stream.id;
  });

/** Records since when the publisher is disconnected; null: it sends again. Notifies of the first time in a stream. */
export const interruptStream = (app: App, name: string, interruptedAt: number | null): Promise<void> =>
  app.write(async (tx) => {
    if (sharesStreams(app)) await tx.update(liveStreams).set({ interruptedAt }).where(eq(liveStreams.name, name));
    const found = interruptedAt === null ? undefined : await streamWithChannel(tx, name);
    if (!found) return;
    const { channel, stream } = found;
    await notify(tx, app, {
      tenantId: stream.tenantId,
      kind: "live_signal_lost",
      occurrence: `stream ${stream.id}`,
      data: { channel_id: stream.channelId, channel },
    });
  });

/** Records that this server is there. Returns its unfinished streams. */
export const renewStreams = (app: App): Promise<Pick<LiveStreamRow, "name" | "endedAt">[]> =>
  app.write(async (tx) =>
    tx
      .update(liveStreams)
      .set({ updatedAt: app.clock.now() })
      .where(and(isNull(liveStreams.finishedAt), eq(liveStreams.server, serverIdOf(app))))
      .returning({ name: liveStreams.name, endedAt: liveStreams.endedAt })
      .all(),
  );

/**
 * Makes this server the one that completes a stream. False when the stream is finished, or, with `seen`, when another
 * server has written the row since then.
 */
export const claimStream = (app: App, name: string, seen?: Pick<LiveStreamRow, "updatedAt">): Promise<boolean> =>
  app.write(async (tx) => {
    const isSame = seen && eq(liveStreams.updatedAt, seen.updatedAt);
    const claimed = await tx
      .update(liveStreams)
      .set({ server: serverIdOf(app), updatedAt: app.clock.now() })
      .where(and(eq(liveStreams.name, name), isNull(liveStreams.finishedAt), isSame))
      .returning({ id: liveStreams.id })
      .get();
    return claimed !== undefined;
  });

/** Ends a stream whose server is dead, unless a server has written the row since `seen`. */
export const endAbandoned = (app: App, seen: LiveStreamRow): Promise<void> =>
  app.write(async (tx) => {
    const found = await streamWithChannel(tx, seen.name);
    if (!found || found.stream.endedAt !== null || found.stream.updatedAt !== seen.updatedAt) return;
    const stream = await end(tx, app, found.stream, found.channel, seen.updatedAt);
    if (!stream.recorded) await finishStream(tx, app, { ...found, stream }, null);
  });

/** Records the end of a stream. Undefined when there is no such stream. */
export const endStream = (app: App, name: string, endedAtMs: number): Promise<LiveStreamRow | undefined> =>
  app.write(async (tx) => {
    const found = await streamWithChannel(tx, name);
    if (!found) return undefined;
    return found.stream.endedAt === null ? end(tx, app, found.stream, found.channel, endedAtMs) : found.stream;
  });

async function end(tx: Db, app: App, row: LiveStreamRow, channel: string, endedAt: number): Promise<LiveStreamRow> {
  const stream = await tx
    .update(liveStreams)
    .set({ endedAt, updatedAt: app.clock.now() })
    .where(eq(liveStreams.id, row.id))
    .returning()
    .get();
  const data = { ...dataOf(stream, channel), ended_at: iso(endedAt) };
  await emit(tx, app, "live.stream.ended", { tenantId: stream.tenantId, data });
  return stream;
}

/**
 * Records that nothing more follows: the recording is that asset, or there is none. In the transaction of the asset. Stored
 * segments that it does not have are deleted when no viewer reads them any more.
 */
export async function finishStream(
  tx: Db,
  app: App,
  { stream, channel }: { stream: LiveStreamRow; channel: string },
  assetId: number | null,
): Promise<void> {
  const now = app.clock.now();
  const endedAt = stream.endedAt ?? now;
  await tx
    .update(liveStreams)
    .set({ finishedAt: now, endedAt, assetId, updatedAt: now })
    .where(eq(liveStreams.id, stream.id));
  // Those of an asset are not registered as garbage any more.
  if (stream.prefix !== null)
    for (const prefix of [stream.prefix, renditionsPrefix(stream.prefix)])
      await hastenDeletion(tx, app, prefix, LINGER_MS);
  if (assetId === null) return;
  const data = { ...dataOf(stream, channel), ended_at: iso(endedAt), asset_id: String(assetId) };
  await emit(tx, app, "live.recording.ready", { tenantId: stream.tenantId, data });
}

/** A stream, and what its recording takes from the channel. */
export type StreamWithChannel = { stream: LiveStreamRow; channel: string } & Pick<
  LiveChannelRow,
  "playbackPolicy" | "encodingProfile"
> & { title: string };

export async function streamWithChannel(db: Db, name: string): Promise<StreamWithChannel | undefined> {
  const found = await db
    .select()
    .from(liveStreams)
    .innerJoin(liveChannels, eq(liveChannels.id, liveStreams.channelId))
    .where(eq(liveStreams.name, name))
    .get();
  if (!found) return undefined;
  const { channel, name: title, playbackPolicy, encodingProfile } = found.live_channels;
  return { stream: found.live_streams, channel, title, playbackPolicy, encodingProfile };
}

const dataOf = ({ channelId, startedAt }: LiveStreamRow, channel: string) => ({
  channel_id: channelId,
  channel,
  started_at: iso(startedAt),
});
