import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { PLAYBACK_POLICIES, SUBTITLE_ROLES } from "#model/enums.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { hasPoster } from "../assets/poster.ts";
import { findPublicAsset } from "../assets/queries.ts";
import { mediaUrl, publicId, withToken } from "../assets/urls.ts";
import { countPlay, type ShareViewer, type Visit } from "../shares/plays.ts";
import { playableSubtitles } from "../subtitles/queries.ts";
import { subtitleFile } from "../subtitles/urls.ts";
import { requireActiveTenant } from "../tenants/active.ts";
import { rememberedPlayer } from "../tenants/queries.ts";
import { type Chapter, endedChapters, rememberedChapters } from "../tracks/timed/chapters.ts";
import { type PlaybackTokens, requireAccess } from "./token.ts";
import { hasDownload } from "./viewer-download.ts";

/** The public data of an asset for viewers who may play it; no key protects it. */
export const PlayerData = v.pipe(
  v.object({
    id: v.string(),
    title: v.string(),
    playback_policy: v.picklist(PLAYBACK_POLICIES),
    duration_seconds: v.number(),
    width: v.nullable(v.number()),
    height: v.nullable(v.number()),
    hls_url: v.string(),
    dash_url: v.nullable(v.string()),
    poster_url: v.nullable(v.string()),
    storyboard_url: v.nullable(v.string()),
    subtitles: v.array(
      v.object({
        language: v.string(),
        label: v.string(),
        url: v.string(),
        is_default: v.boolean(),
        role: v.picklist(SUBTITLE_ROLES),
      }),
    ),
    chapters: v.array(v.object({ start: v.number(), end: v.number(), title: v.string() })),
    accent_color: v.nullable(v.string()),
    logo_url: v.nullable(v.string()),
    download_url: v.pipe(v.nullable(v.string()), v.description("Null unless the tenant allows downloads")),
  }),
  v.title("PlayerData"),
);

/** `token`: what its URLs must carry, null for none. `share`: that the token names. */
export type Playable = { asset: AssetRow; share: ShareViewer | null; token: string | null };

/**
 * The asset of a public page, for a viewer who may play it. Throws 404, 403 `tenant_suspended`, and 403 without a valid
 * token for signed playback.
 */
export async function requirePlayable(
  app: App,
  tokens: PlaybackTokens,
  { ref, token }: { ref: string; token: string | null },
): Promise<Playable> {
  const asset = (await findPublicAsset(app, ref)) ?? notFound("asset");
  await requireActiveTenant(app, asset.tenantId);
  const share = await requireAccess(tokens, asset, token);
  return { asset, share, token: asset.playbackPolicy === "signed" || share !== null ? token : null };
}

/**
 * URLs are paths of this server, below `basePath`, whatever its host name. Throws 422 `asset_not_ready`, or
 * `asset_errored`.
 */
export async function playerData(
  visit: Visit,
  { asset, token, share }: Playable,
  basePath: string,
): Promise<v.InferInput<typeof PlayerData>> {
  const { app } = visit;
  if (asset.playbackStatus === "errored")
    throw new HttpError(422, "asset_errored", "The asset could not be processed and cannot be played.");
  if (asset.playbackStatus !== "ready")
    throw new HttpError(422, "asset_not_ready", "The asset is not ready; try again later.");
  // The media of an external asset are not requested from this server.
  if (share && asset.manifestUrl !== null) await countPlay(visit, share);
  const url = (file: string) => mediaUrl(basePath, asset, file, token);
  const [subtitles, chapters, player] = await Promise.all([
    playableSubtitles(app, asset.id),
    rememberedChapters(app, asset.id),
    rememberedPlayer(app, asset.tenantId, basePath),
  ]);
  const download = withToken(`${basePath}/embed/${publicId(asset)}/download`, token);
  return {
    id: publicId(asset),
    title: asset.title,
    playback_policy: asset.playbackPolicy,
    duration_seconds: asset.durationSeconds,
    width: asset.width,
    height: asset.height,
    hls_url: asset.manifestUrl ?? url("master.m3u8"),
    dash_url: asset.dashManifestPath === null ? null : url("manifest.mpd"),
    poster_url: hasPoster(asset) ? url("thumbnail.jpg") : null,
    storyboard_url: asset.storyboardPath === null ? null : url("storyboard.vtt"),
    subtitles: subtitles.map((row) => ({
      language: row.language,
      label: row.label,
      url: url(subtitleFile(row)),
      is_default: row.isDefault,
      role: row.role,
    })),
    chapters: inSeconds(chapters, asset.durationSeconds),
    accent_color: player.accent_color,
    logo_url: player.logo_url,
    // The page of a share has a button of its own where the share allows it.
    download_url: share === null && player.allow_download && hasDownload(asset) ? download : null,
  };
}

const inSeconds = (chapters: readonly Chapter[], durationSeconds: number) =>
  endedChapters(chapters, durationSeconds * 1000).map(({ startMs, endMs, title }) => ({
    start: startMs / 1000,
    end: endMs / 1000,
    title,
  }));
