import { and, desc, eq, isNotNull } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import type { Channel } from "#features/live/queries.ts";
import type { SimulcastTarget } from "#features/live/simulcast/schema.ts";
import { readStreamKey } from "#features/live/simulcast/secret.ts";
import { listTargets, toTarget } from "#features/live/simulcast/targets.ts";
import { liveStreams, muxStreams } from "#storage/db/schema.ts";
import { seconds } from "../assets/record.ts";
import { playbackIdsOfChannel } from "./playback-ids.ts";
import { MAX_DURATION } from "./schema.ts";

const RECENT_ASSETS = 10;
const TARGET_STATUSES = { idle: "idle", connecting: "starting", live: "broadcasting", failed: "errored" } as const;

type Target = v.InferInput<typeof SimulcastTarget>;

/** `passthrough` is the name of a target; its stream key is never shown. */
export const toMuxTarget = ({ id, url, name, status }: Target) => ({
  id: String(id),
  url,
  passthrough: name,
  status: TARGET_STATUSES[(status ?? "idle") as keyof typeof TARGET_STATUSES] ?? ("idle" as const),
});

/** A broadcast that is being ended counts. */
const statusOf = ({ startedAt, enabled }: Channel) => {
  if (startedAt !== null) return "active" as const;
  return enabled ? ("idle" as const) : ("disabled" as const);
};

/** A channel as Mux shows it. `mayPublish`: whether the caller may see the stream key. */
export async function toMuxStream(app: App, channel: Channel, mayPublish: boolean) {
  const [own, ids, targets, recent] = await Promise.all([
    app.db.select().from(muxStreams).where(eq(muxStreams.channelId, channel.id)).get(),
    playbackIdsOfChannel(app.db, channel.id),
    listTargets(app.db, channel),
    app.db
      .select({ assetId: liveStreams.assetId })
      .from(liveStreams)
      .where(and(eq(liveStreams.channelId, channel.id), isNotNull(liveStreams.assetId)))
      .orderBy(desc(liveStreams.id))
      .limit(RECENT_ASSETS)
      .all(),
  ]);
  const key = own && mayPublish ? readStreamKey(app, own) : null;
  return {
    id: String(channel.id),
    created_at: seconds(channel.createdAt),
    status: statusOf(channel),
    // A channel that was made natively has shown its key once.
    stream_key: key ?? "",
    latency_mode: channel.lowLatency ? ("low" as const) : ("standard" as const),
    low_latency: channel.lowLatency,
    reconnect_window: channel.reconnectSeconds,
    max_continuous_duration: channel.maxDurationSeconds ?? MAX_DURATION,
    meta: { title: channel.name },
    ...(own?.passthrough != null && { passthrough: own.passthrough }),
    playback_ids: ids,
    new_asset_settings: { playback_policies: [channel.playbackPolicy] },
    recent_asset_ids: recent.map(({ assetId }) => String(assetId)),
    simulcast_targets: targets.map((row) => toMuxTarget(toTarget(app, channel, row))),
  };
}
