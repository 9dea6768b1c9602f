import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { getAsset } from "#features/assets/queries.ts";
import { findTarget, toTarget } from "#features/live/simulcast/targets.ts";
import { staticRenditionsOf } from "#features/static-renditions/queries.ts";
import { bytesOf } from "#features/static-renditions/sizes.ts";
import { iso } from "#lib/base";
import { muxNamesOfEvent } from "#platform/events/mux-names.ts";
import { audioTracks, muxUploads, subtitles } from "#storage/db/schema.ts";
import { findChannel } from "../live/queries.ts";
import type { EventOfDelivery } from "../webhooks/claims.ts";
import { AUDIO_TRACK, seconds, TIERS, toAudioTrack, toMuxAsset, toTextTrack } from "./assets/record.ts";
import { toMuxRendition } from "./assets/static-renditions.ts";
import { toMuxStream, toMuxTarget } from "./live/record.ts";
import { MAX_DURATION } from "./live/schema.ts";
import { toMuxUpload } from "./uploads/record.ts";

const ADMIN = { kind: "admin" } as const;
/** A delivery contains no credentials: no URL of a source. */
const NO_SCOPES = { scopes: [] };

type EventData = Record<string, unknown> & { asset_id: string };
type Event = EventData & { createdAt: number };
type Described = { object: { type: string; id: string }; data: object };

/** The body of a delivery in Mux's form: with the objects as they are now, or as the event says where they are deleted. */
export async function muxWebhookBody(app: App, delivery: EventOfDelivery): Promise<string> {
  const { eventId, event, createdAt, tenantId, data } = delivery;
  const [first = "video.asset.ready"] = muxNamesOfEvent(event);
  const type = delivery.name ?? first;
  const described = await describe(app, type, { ...(JSON.parse(data) as EventData), createdAt });
  return JSON.stringify({
    type,
    ...described,
    // Receivers leave out what they have received under the same id.
    id: type === first ? eventId : `${eventId}-${type}`,
    created_at: iso(createdAt),
    environment: { id: String(tenantId), name: "vodbox" },
    attempts: [],
    accessor: null,
    accessor_source: null,
    request_id: null,
  });
}

/** How the objects of names are described, by what the names begin with; the first one that matches. */
const DESCRIBED: readonly (readonly [
  beginning: string,
  describe: (app: App, data: Event, name: string) => Promise<Described>,
])[] = [
  ["video.asset.track.", track],
  ["video.asset.static_rendition.", rendition],
  ["video.live_stream.simulcast_target.", target],
  ["video.live_stream.", stream],
  ["video.upload.", upload],
  ["video.asset.", asset],
];

function describe(app: App, name: string, data: Event): Promise<Described> {
  const [, describeIt = asset] = DESCRIBED.find(([beginning]) => name.startsWith(beginning)) ?? [];
  return describeIt(app, data, name);
}

const statusIn = (name: string) => name.slice(name.lastIndexOf(".") + 1);

/** The event says the status: the track may be further on. */
async function track(app: App, data: Event, name: string): Promise<Described> {
  const isText = data.subtitle_id !== undefined;
  const number = Number(data.subtitle_id ?? data.track_id);
  const row = isText
    ? await app.db.select().from(subtitles).where(eq(subtitles.id, number)).get()
    : await app.db.select().from(audioTracks).where(eq(audioTracks.id, number)).get();
  const known = !row ? null : "label" in row ? toTextTrack(row) : toAudioTrack(row);
  const plain = isText
    ? { id: String(number), type: "text", text_type: "subtitles", name: data.label }
    : { id: `${AUDIO_TRACK}-${number}`, type: "audio", name: data.name };
  const { error } = data;
  const failure = error as { code: string; message: string } | undefined;
  const status = statusIn(name);
  return {
    object: { type: "track", id: plain.id },
    data: {
      ...(known ?? { ...plain, ...(data.language != null && { language_code: data.language }) }),
      ...(status !== "created" && { status }),
      ...(failure && { error: { type: failure.code, messages: [failure.message] } }),
      asset_id: data.asset_id,
    },
  };
}

async function rendition(app: App, data: Event): Promise<Described> {
  const id = String(data.static_rendition_id);
  const owner = await getAsset(app.db, ADMIN, Number(data.asset_id));
  const row = owner && (await staticRenditionsOf(app.db, owner.id)).find((one) => String(one.id) === id);
  const plain = row ?? {
    id: Number(id),
    name: String(data.name),
    createdAt: data.createdAt,
    updatedAt: data.createdAt,
  };
  const shown = owner && toMuxRendition(app, owner, plain, row ? await bytesOf(app, owner, row) : null);
  return { object: { type: "static_rendition", id }, data: { id, ...shown, asset_id: data.asset_id } };
}

const TARGET_STATUSES = ["starting", "broadcasting", "errored"];

/** The event says the status: the target may be further on. */
async function target(app: App, data: Event, name: string): Promise<Described> {
  const id = String(data.target_id);
  const said = statusIn(name);
  const status = TARGET_STATUSES.includes(said) ? said : "idle";
  const channel = await findChannel(app.db, ADMIN, Number(data.channel_id));
  const row = channel && (await findTarget(app.db, channel, Number(id)));
  const known = channel && row ? toMuxTarget(toTarget(app, channel, row)) : { id, url: "" };
  return {
    object: { type: "simulcast-target", id },
    data: { ...known, status, live_stream_id: String(data.channel_id) },
  };
}

async function upload(app: App, data: Event, name: string): Promise<Described> {
  const { direct_upload: own, asset_id: assetId } = data;
  const isOne = typeof own === "string" ? eq(muxUploads.name, own) : eq(muxUploads.assetId, Number(assetId));
  const row = await app.db.select().from(muxUploads).where(isOne).get();
  const id = row?.name ?? String(own ?? data.upload_id);
  const said = statusIn(name);
  const status = said === "created" ? "waiting" : said;
  const plain = { id, timeout: 0, cors_origin: "", ...(assetId !== undefined && { asset_id: assetId }) };
  // Who has the URL may upload.
  const { url: _, error: __, ...shown } = row ? await toMuxUpload(app, row) : { ...plain, url: "", error: null };
  return { object: { type: "upload", id }, data: { ...shown, status } };
}

const ENDED = ["idle", "disconnected", "created", "deleted", "disabled", "enabled"];

/** A channel, without its stream key. The event says its status: the channel may be further on. */
async function stream(app: App, data: Event, name: string): Promise<Described> {
  const id = String(data.channel_id);
  const said = statusIn(name);
  const channel = await findChannel(app.db, ADMIN, Number(id));
  const { created_at, ...known } = channel
    ? await toMuxStream(app, channel, false)
    : {
        id,
        created_at: "0",
        stream_key: "",
        latency_mode: "standard",
        max_continuous_duration: MAX_DURATION,
        status: "idle",
      };
  const isActive = said === "updated" ? known.status === "active" : !ENDED.includes(said);
  const status = said === "disabled" ? said : isActive ? "active" : said === "updated" ? known.status : "idle";
  return {
    object: { type: "live", id },
    data: {
      ...known,
      created_at: Number(created_at),
      status,
      connected: isActive,
      recording: isActive && (channel?.record ?? false),
    },
  };
}

/** An asset: in a webhook the time of its creation and the sizes of its files are numbers. */
async function asset(app: App, data: Event): Promise<Described> {
  const { created_at, static_renditions, ...shown } = await assetOf(app, data);
  const files = static_renditions?.files?.map(({ filesize, ...file }) => ({
    ...file,
    ...(filesize !== undefined && { filesize: Number(filesize) }),
  }));
  return {
    object: { type: "asset", id: data.asset_id },
    data: {
      ...shown,
      created_at: Number(created_at),
      ...(static_renditions && { static_renditions: { ...static_renditions, ...(files && { files }) } }),
    },
  };
}

type ShownAsset = Pick<Awaited<ReturnType<typeof toMuxAsset>>, "created_at"> & {
  static_renditions?: { status: string; files?: { filesize?: string }[] };
};

async function assetOf(
  app: App,
  { asset_id: id, title, external_id: external, playback_status: status, createdAt, error }: Event,
): Promise<ShownAsset> {
  const row = await getAsset(app.db, ADMIN, Number(id));
  if (row) return toMuxAsset(app, NO_SCOPES, row);
  const isErrored = status === "errored";
  return {
    id,
    created_at: seconds(createdAt),
    status: isErrored ? "errored" : status === "ready" ? "ready" : "preparing",
    progress: { state: isErrored ? "errored" : "completed", progress: isErrored ? -1 : 100 },
    encoding_tier: TIERS.plus,
    max_resolution_tier: "2160p",
    master_access: "none",
    meta: { title },
    ...(typeof external === "string" &&
      external.startsWith("vid_") && { playback_ids: [{ id: external, policy: "signed" }] }),
    ...(error !== null &&
      typeof error === "object" && {
        errors: { type: (error as { code: string }).code, messages: [(error as { message: string }).message] },
      }),
  } as ShownAsset;
}
