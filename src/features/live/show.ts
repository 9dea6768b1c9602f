import type * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import type { StreamHealth } from "#live/ingest/stream-health.ts";
import { ingestUrls } from "./ingest-urls.ts";
import type { Channel } from "./queries.ts";
import { type LiveStream, liveRegistry, viewersOf } from "./registry.ts";
import { type LiveChannel, pathOf } from "./schema.ts";
import { storedStreams } from "./shared/stored-streams.ts";
import { liveDashUrl, liveUrl } from "./urls.ts";

/** A channel as the API shows it. */
export function toLiveChannel(app: App, row: Channel): v.InferInput<typeof LiveChannel> {
  const stream = streamOf(app, row);
  return {
    id: row.id,
    tenant_id: row.tenantId,
    channel: row.channel,
    path: pathOf(row.channel),
    name: row.name,
    playback_policy: row.playbackPolicy,
    publisher: row.publisher,
    record: row.record,
    dvr_seconds: row.dvrSeconds,
    low_latency: row.lowLatency,
    takeover: row.takeover,
    reconnect_seconds: row.reconnectSeconds,
    max_duration_seconds: row.maxDurationSeconds,
    encoding_profile: row.encodingProfile,
    captions: row.captions,
    captions_live: row.captionsLive,
    starts_at: iso(row.startsAt),
    enabled: row.enabled,
    status: row.startedAt === null ? "idle" : "live",
    started_at: iso(row.startedAt),
    viewers: stream ? viewersOf(stream, app.clock.now()) : storedStreams(app).viewersOf(row.id),
    health: stream?.health ? toHealth(stream.health) : null,
    ingest: ingestUrls(app, row.channel),
    hls_url: liveUrl(app.baseUrl(), row.channel, null),
    dash_url: row.startedAt === null ? null : liveDashUrl(app.baseUrl(), row.channel, null),
    revoked_at: iso(row.revokedAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  };
}

/** The running broadcast, if this server receives it. */
function streamOf(app: App, { id, channel, startedAt }: Channel): LiveStream | undefined {
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
