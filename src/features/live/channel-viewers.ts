import { and, eq, isNull } from "drizzle-orm";
import { liveChannels, liveStreams } from "#storage/db/schema.ts";
import type { FindChannelViewers } from "../analytics/now.ts";
import { viewersNow } from "./show.ts";

/** Channels that are looked at; more are never live at once. */
const MAX_CHANNELS = 1000;

/** Viewers of a tenant's channels that are live, counted by their requests for playlists. */
export const channelViewers: FindChannelViewers = async (app, tenantId) => {
  const rows = await app.db
    .select({ id: liveChannels.id, channel: liveChannels.channel, startedAt: liveStreams.startedAt })
    .from(liveStreams)
    .innerJoin(liveChannels, eq(liveChannels.id, liveStreams.channelId))
    // An index has the streams that are not finished: all that run, and few others.
    .where(and(isNull(liveStreams.finishedAt), isNull(liveStreams.endedAt), eq(liveStreams.tenantId, tenantId)))
    .limit(MAX_CHANNELS)
    .all();
  return rows.map((row) => ({ channelId: row.id, viewers: viewersNow(app, row) }));
};
