import { and, eq, isNull, ne } from "drizzle-orm";
import type { Db } from "../../../../storage/db/open.ts";
import { type LiveChannelRow, type LiveStreamRow, liveChannels, liveStreams } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { emit } from "../../../events/emit.ts";
import { iso } from "../../../lib/clock.ts";
import type { OpenedStream } from "../../../live/ingest/messages.ts";

/** The rows of streams, with their events. Each change may be repeated. */

/**
 * Inserts a stream that has its first part. Ends the one before it on the channel, whose end is reported a moment later.
 * False when the channel is revoked or deleted by now.
 */
export const insertStream = (app: App, { name, channel, startedAtMs }: OpenedStream): Promise<boolean> =>
  app.write(async (tx) => {
    const isChannel = and(eq(liveChannels.id, channel.channelId), isNull(liveChannels.revokedAt));
    const row = await tx.select({ channel: liveChannels.channel }).from(liveChannels).where(isChannel).get();
    if (!row) return false;
    const now = app.clock.now();
    const isBefore = and(
      eq(liveStreams.channelId, channel.channelId),
      isNull(liveStreams.endedAt),
      ne(liveStreams.name, name),
    );
    const before = await tx.select().from(liveStreams).where(isBefore).get();
    if (before) await end(tx, app, before, row.channel, now);
    const stream = await tx
      .insert(liveStreams)
      .values({
        tenantId: channel.tenantId,
        channelId: channel.channelId,
        name,
        recorded: channel.record,
        startedAt: startedAtMs,
        createdAt: now,
        updatedAt: now,
      })
      .returning()
      .get();
    await emit(tx, app, "live.stream.started", { tenantId: stream.tenantId, data: dataOf(stream, row.channel) });
    return true;
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

/** Records that nothing more follows: the recording is that asset, or there is none. In the transaction of the asset. */
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
