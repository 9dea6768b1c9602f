import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { downloadOf } from "#features/assets/download.ts";
import { playbackIdsOf } from "#features/assets/playback-ids.ts";
import { subtitlesOf } from "#features/subtitles/queries.ts";
import { rowsOf } from "#features/transcoding/added-audio/rows.ts";
import { HttpError } from "#lib/base";
import { audioCodecs } from "#lib/codecs";
import type { TenantCaller } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, AudioTrackRow, SubtitleRow, TagValue } from "#storage/db/schema.ts";
import { liveStreams, muxMasters, muxUploads } from "#storage/db/schema.ts";

import { renditionsOf } from "./static-renditions.ts";

/** Mux's times: seconds since the epoch, as text. */
export const seconds = (ms: number) => String(Math.floor(ms / 1000));

const STATUSES = { draft: "preparing", processing: "preparing", ready: "ready", errored: "errored" } as const;
/** A source that could not be fetched, or did not arrive, is an error at Mux. */
const statusOf = ({ playbackStatus, inputStatus }: AssetRow) =>
  playbackStatus === "draft" && inputStatus === "failed" ? ("errored" as const) : STATUSES[playbackStatus];
const TEXT_STATUSES = { pending: "preparing", processing: "preparing", ready: "ready", failed: "errored" } as const;

/** The profiles of Mux's qualities. */
export const PROFILES = { basic: "fast", plus: "default", premium: "quality" } as const;
export type Quality = keyof typeof PROFILES;
export const TIERS = { basic: "baseline", plus: "smart", premium: "premium" } as const;
/** Mux's quality of the encoding profile of an asset. */
export const qualityOf = (profile: string | null): Quality =>
  (Object.keys(PROFILES) as Quality[]).find((quality) => PROFILES[quality] === profile) ?? "plus";

/** The ids of the two tracks that every asset may have. Text tracks have the ids of subtitles. */
export const VIDEO_TRACK = "video";
export const AUDIO_TRACK = "audio";

/** An asset as Mux shows it. `scopes` of the caller decide whether the source can be downloaded. */
export async function toMuxAsset(app: App, { scopes }: Pick<TenantCaller, "scopes">, asset: AssetRow) {
  const quality = qualityOf(asset.encodingProfile);
  const [texts, added, renditions, upload, stream, master] = await Promise.all([
    subtitlesOf(app.db, asset.id),
    addedAudioOf(app.db, asset.id),
    renditionsOf(app, asset),
    app.db.select({ name: muxUploads.name }).from(muxUploads).where(eq(muxUploads.assetId, asset.id)).get(),
    app.db
      .select({ channelId: liveStreams.channelId })
      .from(liveStreams)
      .where(eq(liveStreams.assetId, asset.id))
      .get(),
    masterOf(app, asset, scopes.includes("assets:write")),
  ]);
  const isReady = asset.playbackStatus === "ready";
  const { creator_id: creator, external_id: external, passthrough } = asset.tags;
  const width = asset.width ?? 0;
  const height = asset.height ?? 0;
  return {
    id: String(asset.id),
    created_at: seconds(asset.createdAt),
    status: statusOf(asset),
    progress: progressOf(asset),
    ...(isReady && { duration: asset.durationSeconds }),
    ...(isReady && resolutionsOf(width, height)),
    ...(isReady && asset.frameRate !== null && { max_stored_frame_rate: asset.frameRate }),
    encoding_tier: TIERS[quality],
    video_quality: quality,
    max_resolution_tier: quality === "basic" ? ("1080p" as const) : ("2160p" as const),
    ...master,
    ...renditions,
    normalize_audio: false,
    ...(passthrough !== undefined && { passthrough: String(passthrough) }),
    meta: {
      title: asset.title,
      ...(creator !== undefined && { creator_id: String(creator) }),
      ...(external !== undefined && { external_id: String(external) }),
    },
    playback_ids: playbackIdsOf(asset),
    tracks: [...(isReady ? mediaTracks(asset) : []), ...added.map(toAudioTrack), ...texts.map(toTextTrack)],
    ...(statusOf(asset) === "errored" && {
      errors: { type: asset.errorCode ?? "unknown", messages: [asset.errorMessage ?? "The source did not arrive."] },
    }),
    ...ingestOf(asset, upload?.name, stream?.channelId),
  };
}

function progressOf(asset: AssetRow) {
  const { playbackStatus, encoding, progress } = asset;
  if (statusOf(asset) === "errored") return { state: "errored" as const, progress: -1 };
  if (playbackStatus === "draft") return { state: "ingesting" as const, progress: 0 };
  if (playbackStatus === "ready" && encoding === null) return { state: "completed" as const, progress: 100 };
  return { state: "transcoding" as const, progress };
}

/** What Mux says of a size; 0 by 0 is audio. */
export function resolutionsOf(width: number, height: number) {
  if (width === 0 || height === 0)
    return { resolution_tier: "audio-only" as const, max_stored_resolution: "Audio only" as const };
  const side = Math.min(width, height);
  const tier = side <= 720 ? "720p" : side <= 1080 ? "1080p" : side <= 1440 ? "1440p" : "2160p";
  const stored = side < 720 ? "SD" : side < 1080 ? "HD" : side < 1440 ? "FHD" : "UHD";
  const common = divisor(width, height);
  return {
    resolution_tier: tier,
    max_stored_resolution: stored,
    aspect_ratio: `${width / common}:${height / common}`,
  } as const;
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));

const isAudioEntry = (type: string) =>
  Object.values(audioCodecs).some(({ sampleEntries }) => (sampleEntries as readonly string[]).includes(type));
/** With audio: the codecs of a rendition name it (RFC 6381). */
const hasAudio = ({ renditions }: AssetRow) =>
  renditions.some(({ codecs }) => codecs?.split(",").some((one) => isAudioEntry(one.trim().split(".", 1)[0] ?? "")));

export const mediaTracks = (asset: AssetRow) => [
  ...(asset.width === null
    ? []
    : [
        {
          id: VIDEO_TRACK,
          type: "video" as const,
          duration: asset.durationSeconds,
          max_width: asset.width,
          max_height: asset.height ?? 0,
          ...(asset.frameRate !== null && { max_frame_rate: asset.frameRate }),
          status: "ready" as const,
        },
      ]),
  ...(hasAudio(asset) || asset.width === null
    ? [
        {
          id: AUDIO_TRACK,
          type: "audio" as const,
          duration: asset.durationSeconds,
          primary: true,
          status: "ready" as const,
        },
      ]
    : []),
];

const AUDIO_STATUSES = { processing: "preparing", ready: "ready", failed: "errored" } as const;

/** An added audio track; the ids of subtitles are numbers too. */
export const toAudioTrack = (row: AudioTrackRow) => ({
  id: `${AUDIO_TRACK}-${row.id}`,
  type: "audio" as const,
  ...(row.status === "ready" && { duration: row.lengthSeconds }),
  ...(row.language !== null && { language_code: row.language }),
  name: row.name,
  primary: row.isDefault,
  status: AUDIO_STATUSES[row.status],
});

/** Those that are not of the source. */
export const addedAudioOf = async (db: Db, assetId: number): Promise<AudioTrackRow[]> =>
  (await rowsOf(db, assetId)).filter(({ rendition }) => rendition === null);

export const toTextTrack = (row: SubtitleRow) => ({
  id: String(row.id),
  type: "text" as const,
  text_type: "subtitles" as const,
  text_source: row.source === "auto" ? ("generated_vod" as const) : ("uploaded" as const),
  language_code: row.language,
  name: row.label,
  closed_captions: row.role === "caption",
  status: TEXT_STATUSES[row.status],
});

/** Mux names two protocols. Which one a stream came by is not stored, so the usual one is named. */
function ingestOf(asset: AssetRow, upload: string | undefined, channelId: number | undefined) {
  if (channelId !== undefined)
    return { ingest_type: "live_rtmp" as const, live_stream_id: String(channelId), is_live: false };
  if (upload !== undefined) return { ingest_type: "on_demand_direct_upload" as const, upload_id: upload };
  if (asset.parentAssetId === null) return { ingest_type: "on_demand_url" as const };
  return { ingest_type: "on_demand_clip" as const, source_asset_id: String(asset.parentAssetId) };
}

/** The download of the source, while it is allowed. */
async function masterOf(app: App, asset: AssetRow, mayDownload: boolean) {
  const { assetId } = muxMasters;
  const row = await app.db.select().from(muxMasters).where(eq(assetId, asset.id)).get();
  if (!row || row.until <= app.clock.now()) return { master_access: "none" as const };
  const master_access = "temporary" as const;
  if (!mayDownload) return { master_access };
  try {
    return { master_access, master: { status: "ready" as const, url: (await downloadOf(app, asset)).url } };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    const status = asset.sourceDeletedAt === null ? ("preparing" as const) : ("errored" as const);
    return { master_access, master: { status } };
  }
}

/** What Mux's `meta` and `passthrough` are here. An empty text removes one. */
export function tagsOf({ meta, passthrough }: MuxTexts): Record<string, TagValue | null> {
  const given = { passthrough, creator_id: meta?.creator_id, external_id: meta?.external_id };
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value === "" ? null : value]],
    ),
  );
}
export type MuxTexts = {
  meta?: { creator_id?: string | undefined; external_id?: string | undefined; title?: string | undefined } | undefined;
  passthrough?: string | undefined;
};
