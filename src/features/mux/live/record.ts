import { desc, eq } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import type { Channel } from "#features/live/queries.ts";
import type { SimulcastTarget } from "#features/live/simulcast/schema.ts";
import { readStreamKey } from "#features/live/simulcast/secret.ts";
import { listTargets, toTarget } from "#features/live/simulcast/targets.ts";
import { assets, liveStreams, muxStreams } from "#storage/db/schema.ts";
import { seconds } from "../assets/record.ts";
import { playbackIdsOfChannel } from "./playback-ids.ts";
import {
  CAPTION_SERVICES,
  MAX_DURATION,
  nameOfService,
  nameOfSpeech,
  SPOKEN,
  type Spoken,
  UNKNOWN_LANGUAGE,
} from "./schema.ts";

const RECENT_ASSETS = 10;
const TARGET_STATUSES = { idle: "idle", connecting: "starting", live: "broadcasting", failed: "errored" } as const;

type Target = v.InferInput<typeof SimulcastTarget>;

/** `passthrough` is the name of a target that has one of its own; its stream key is never shown. */
export const toMuxTarget = ({ id, url, name, status }: Target) => ({
  id: String(id),
  url,
  ...(name !== new URL(url).hostname && { passthrough: name }),
  status: TARGET_STATUSES[(status ?? "idle") as keyof typeof TARGET_STATUSES] ?? ("idle" as const),
});

/** A stream that is being ended counts. */
const statusOf = ({ startedAt, enabled }: Channel) => {
  if (startedAt !== null) return "active" as const;
  return enabled ? ("idle" as const) : ("disabled" as const);
};

const isSpoken = (language: string): language is Spoken => (SPOKEN as readonly string[]).includes(language);

/** A channel as Mux shows it. `mayPublish`: whether the caller may see the stream key. */
export async function toMuxStream(app: App, channel: Channel, mayPublish: boolean) {
  const [own, ids, targets, recent] = await Promise.all([
    app.db.select().from(muxStreams).where(eq(muxStreams.channelId, channel.id)).get(),
    playbackIdsOfChannel(app.db, channel.id),
    listTargets(app.db, channel),
    app.db
      .select({ assetId: assets.id })
      .from(liveStreams)
      .innerJoin(assets, eq(assets.id, liveStreams.assetId))
      .where(eq(liveStreams.channelId, channel.id))
      .orderBy(desc(liveStreams.id))
      .limit(RECENT_ASSETS)
      .all(),
  ]);
  const isReduced = own?.isReduced ?? false;
  const key = own && mayPublish ? readStreamKey(app, own) : null;
  return {
    id: String(channel.id),
    created_at: seconds(channel.createdAt),
    status: statusOf(channel),
    // A channel that was made natively has shown its key once.
    stream_key: key ?? "",
    latency_mode: channel.lowLatency ? ("low" as const) : isReduced ? ("reduced" as const) : ("standard" as const),
    low_latency: channel.lowLatency,
    reduced_latency: isReduced && !channel.lowLatency,
    reconnect_window: channel.reconnectSeconds,
    max_continuous_duration: channel.maxDurationSeconds ?? MAX_DURATION,
    // Without a title the name is that of the channel.
    meta: channel.name === channel.channel ? {} : { title: channel.name },
    ...(own?.passthrough != null && { passthrough: own.passthrough }),
    playback_ids: ids,
    new_asset_settings: { playback_policies: [channel.playbackPolicy] },
    // The newest one is the last. There is no active asset: a recording becomes one when its stream has ended.
    recent_asset_ids: recent.map(({ assetId }) => String(assetId)).reverse(),
    generated_subtitles: channel.captionsLive
      .filter(isSpoken)
      .map((language) => ({ language_code: language, name: nameOfSpeech(language) })),
    embedded_subtitles: CAPTION_SERVICES.map((service) => ({
      language_channel: service,
      language_code: UNKNOWN_LANGUAGE,
      name: nameOfService(service),
    })),
    simulcast_targets: targets.map((row) => toMuxTarget(toTarget(app, channel, row))),
  };
}
