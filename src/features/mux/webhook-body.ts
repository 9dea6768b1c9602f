import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { muxNamesOf } from "#platform/events/mux-names.ts";
import { muxUploads, subtitles } from "#storage/db/schema.ts";
import { getAsset } from "../assets/queries.ts";
import { findChannel } from "../live/queries.ts";
import type { EventOfDelivery } from "../webhooks/claims.ts";
import { seconds, TIERS, toMuxAsset, toTextTrack } from "./assets/record.ts";
import { toMuxStream } from "./live/record.ts";
import { MAX_DURATION } from "./live/schema.ts";
import { toMuxUpload } from "./uploads/record.ts";

const ADMIN = { kind: "admin" } as const;
/** A delivery contains no credentials: no URL of a source. */
const NO_SCOPES = { scopes: [] };

type EventData = Record<string, unknown> & { asset_id: string };
type Described = { object: { type: string; id: string }; data: object };

/** The body of a delivery in Mux's form: with the objects as they are now, or as the event says where they are deleted. */
export async function muxWebhookBody(app: App, delivery: EventOfDelivery): Promise<string> {
  const { eventId, event, createdAt, tenantId, data } = delivery;
  const [first = "video.asset.ready"] = muxNamesOf(event);
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

type Event = EventData & { createdAt: number };

async function describe(app: App, name: string, data: Event): Promise<Described> {
  if (name === "video.asset.track.ready") {
    const id = String(data.subtitle_id);
    const row = await app.db
      .select()
      .from(subtitles)
      .where(eq(subtitles.id, Number(id)))
      .get();
    const text = {
      id,
      type: "text",
      text_type: "subtitles",
      language_code: data.language,
      name: data.label,
      status: "ready",
    };
    return {
      object: { type: "track", id },
      data: { ...(row ? toTextTrack(row) : text), asset_id: data.asset_id },
    };
  }
  if (name.startsWith("video.live_stream.")) {
    const id = String(data.channel_id);
    return { object: { type: "live_stream", id }, data: await streamOf(app, Number(id), name) };
  }
  const upload = name.startsWith("video.upload.") ? await uploadOf(app, data) : null;
  if (upload) return { object: { type: "upload", id: upload.id }, data: upload };
  if (name.startsWith("video.upload.")) {
    const id = String(data.upload_id);
    return {
      object: { type: "upload", id },
      data: {
        id,
        status: name === "video.upload.errored" ? "errored" : "asset_created",
        timeout: 0,
        cors_origin: "",
        asset_id: data.asset_id,
      },
    };
  }
  return { object: { type: "asset", id: data.asset_id }, data: await assetOf(app, data) };
}

/** The direct upload of the asset of an event. */
async function uploadOf(app: App, { asset_id }: Event) {
  const row = await app.db
    .select()
    .from(muxUploads)
    .where(eq(muxUploads.assetId, Number(asset_id)))
    .get();
  return row ? toMuxUpload(app, row) : null;
}

const STREAM_STATUSES: Record<string, "active" | "disabled"> = {
  "video.live_stream.active": "active",
  "video.live_stream.disabled": "disabled",
};

/** A channel, without its stream key. The event says its status: the channel may be further on. */
async function streamOf(app: App, id: number, name: string) {
  const status = STREAM_STATUSES[name] ?? "idle";
  const channel = await findChannel(app.db, ADMIN, id);
  if (channel) return { ...(await toMuxStream(app, channel, false)), status };
  return {
    id: String(id),
    status,
    stream_key: "",
    latency_mode: "standard",
    max_continuous_duration: MAX_DURATION,
    created_at: "0",
  };
}

async function assetOf(
  app: App,
  { asset_id: id, title, external_id: external, playback_status: status, createdAt, error }: Event,
) {
  const asset = await getAsset(app.db, ADMIN, Number(id));
  if (asset) return toMuxAsset(app, NO_SCOPES, asset);
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
  };
}
