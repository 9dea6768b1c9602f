import type { App } from "#app.ts";
import type { StreamHealth } from "#live/ingest/stream-health.ts";
import { toRecord } from "#platform/http/records.ts";
import { ingestUrls } from "./ingest-urls.ts";
import type { Channel } from "./queries.ts";
import { type LiveStream, liveRegistry, viewersOf } from "./registry.ts";
import { LiveChannel, pathOf } from "./schema.ts";
import { storedStreams } from "./shared/stored-streams.ts";
import { liveDashUrl, liveUrl } from "./urls.ts";

/** A channel as the API shows it. */
export function toLiveChannel(app: App, row: Channel) {
  const stream = streamOf(app, row);
  return toRecord(LiveChannel, row, {
    path: pathOf(row.channel),
    status: row.startedAt === null ? "idle" : "live",
    viewers: viewersNow(app, row),
    health: stream?.health ? toHealth(stream.health) : null,
    ingest: ingestUrls(app, row.channel),
    hls_url: liveUrl(app.baseUrl(), row.channel, null),
    dash_url: row.startedAt === null ? null : liveDashUrl(app.baseUrl(), row.channel, null),
  });
}

/** Viewers of a channel by the requests of their players, on this server or on the one that receives the stream. */
export function viewersNow(app: App, row: Running): number {
  const stream = streamOf(app, row);
  return stream ? viewersOf(stream, app.clock.now()) : storedStreams(app).viewersOf(row.id);
}

type Running = Pick<Channel, "id" | "channel" | "startedAt">;

/** The running stream, if this server receives it. */
function streamOf(app: App, { id, channel, startedAt }: Running): LiveStream | undefined {
  const stream = startedAt === null ? undefined : liveRegistry(app).running(channel);
  return stream?.channelId === id ? stream : undefined;
}

const toHealth = ({ bitrate, frameRate, droppedFrames, keyframeSeconds, speed, advice, warnings }: StreamHealth) => ({
  bitrate,
  frame_rate: frameRate,
  dropped_frames: droppedFrames,
  keyframe_seconds: keyframeSeconds,
  speed,
  advice,
  // An ingest process of an earlier version does not report them.
  warnings: warnings ?? [],
});
