import type * as v from "valibot";
import type { App } from "../../app.ts";
import { iso } from "../../lib/clock.ts";
import type { Channel } from "./queries.ts";
import { liveRegistry } from "./registry.ts";
import { type LiveChannel, pathOf } from "./schema.ts";
import { liveUrl } from "./urls.ts";

/** A channel as the API shows it. */
export const toLiveChannel = (app: App, row: Channel): v.InferInput<typeof LiveChannel> => ({
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
  encoding_profile: row.encodingProfile,
  status: row.startedAt === null ? "idle" : "live",
  started_at: iso(row.startedAt),
  viewers: viewersOf(app, row),
  hls_url: liveUrl(app.baseUrl(), row.channel, null),
  dash_url: null,
  revoked_at: iso(row.revokedAt),
  created_at: iso(row.createdAt),
  updated_at: iso(row.updatedAt),
});

/** Of the running broadcast, if this server receives it. */
function viewersOf(app: App, { id, channel, startedAt }: Channel): number {
  const stream = startedAt === null ? undefined : liveRegistry(app).running(channel);
  return stream?.channelId === id ? stream.viewers.count(app.clock.now()) : 0;
}
