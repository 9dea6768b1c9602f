import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, iso, notFound, pacer } from "#lib/base";
import { MEDIA_CORS } from "#platform/http/cors.ts";
import { discardRest } from "#platform/http/discard-rest.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { Reply, type Route, route } from "#platform/http/route.ts";
import { oneOf, QueryIds } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import { AssetId, RecordId, TokenExpiresAt } from "#protocol/record-fields.ts";
import type { AssetRow, SubtitleRow } from "#storage/db/schema.ts";
import { hasPoster } from "../assets/poster.ts";
import { type PicturedAsset, picturedAssets, readAsset, resolveAsset } from "../assets/queries.ts";
import { mediaUrl, pageUrl } from "../assets/urls.ts";
import { playableSubtitles } from "../subtitles/queries.ts";
import { subtitleFile } from "../subtitles/urls.ts";
import { HERESPHERE_VERSION, HereSphereManifest, hereSphereManifest, isHereSphere } from "./heresphere.ts";
import type { MediaHandler } from "./media.ts";
import { StoryboardUrl, ThumbnailUrl } from "./record-fields.ts";
import { Playback } from "./schema.ts";
import type { PlaybackTokens } from "./token.ts";
import { ExpiresIn, tokenSeconds } from "./token-lifetime.ts";
import { VrManifest, vrManifest } from "./vr-manifest.ts";

const IDS_AT_ONCE = 16;
const Images = v.pipe(
  v.object({
    asset_id: AssetId,
    thumbnail_url: v.nullable(ThumbnailUrl),
    storyboard_url: v.nullable(StoryboardUrl),
    token_expires_at: TokenExpiresAt,
  }),
  v.title("AssetImages"),
);

const VrFormat = v.optional(
  v.pipe(
    oneOf(["deovr", "heresphere"]),
    v.description("Default: derived from HereSphere-JSON-Version, User-Agent and the method"),
  ),
);

export const playbackRoutes = (tokens: PlaybackTokens, media: MediaHandler): Route[] => [
  route({
    method: "GET",
    path: "/api/v1/playback/:id",
    scope: "playback:read",
    tag: "Playback",
    operationId: "getPlayback",
    summary: "Get playback URLs and a token for an asset, by id or external id",
    params: v.object({ id: describedAs(RecordId, v.string()) }),
    query: v.object({ expires_in: ExpiresIn }),
    responses: { 200: Playback },
    errors: { 422: ["asset_not_ready"] },
    async handle({ app, caller, params, query }) {
      const asset = (await resolveAsset(app.db, caller, params.id)) ?? notFound("asset");
      requireReady(asset);
      const expiresAt = app.clock.now() + tokenSeconds(asset.durationSeconds, query.expires_in) * 1000;
      const subtitles = await playableSubtitles(app, asset.id);
      return playbackOf(app, { asset, subtitles, token: await tokens.sign(asset, expiresAt), expiresAt });
    },
  }),
  route({
    method: "GET",
    path: "/api/v1/assets/images",
    scope: "playback:read",
    tag: "Playback",
    operationId: "listAssetImages",
    summary: "Get URLs of the posters and storyboards of several assets; those that are not ready are omitted",
    query: v.object({ ids: QueryIds }),
    responses: { 200: v.array(Images) },
    async handle({ app, caller, query }) {
      const pace = pacer();
      const images: v.InferInput<typeof Images>[] = [];
      for (let from = 0; from < query.ids.length; from += IDS_AT_ONCE) {
        for (const asset of await picturedAssets(app.db, caller, query.ids.slice(from, from + IDS_AT_ONCE))) {
          const expiresAt = app.clock.now() + tokenSeconds(asset.durationSeconds, undefined) * 1000;
          const { thumbnailUrl, storyboardUrl } = imagesOf(app, asset, await tokens.sign(asset, expiresAt));
          images.push({
            asset_id: asset.id,
            thumbnail_url: thumbnailUrl,
            storyboard_url: storyboardUrl,
            token_expires_at: iso(expiresAt),
          });
        }
        await pace();
      }
      return images;
    },
  }),
  ...(["GET", "POST"] as const).map((method) =>
    route({
      method,
      path: "/api/v1/assets/:id/vr_manifest.json",
      reads: true,
      tag: "Playback",
      operationId: method === "GET" ? "getVrManifest" : "requestVrManifest",
      summary: "Get the manifest of a VR player (DeoVR or HereSphere)",
      params: v.object({ id: RecordIdInPath }),
      query: v.object({ format: VrFormat }),
      responses: { 200: v.union([VrManifest, HereSphereManifest]) },
      errors: { 422: ["asset_not_ready"] },
      async handle({ app, caller, params, query, headers, incoming }) {
        // HereSphere posts its own login, which is ignored.
        if (method === "POST") discardRest(incoming);
        const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
        requireReady(asset);
        const token = await tokens.sign(asset, app.clock.now() + tokenSeconds(asset.durationSeconds, undefined) * 1000);
        const addresses = addressesOf(app, asset, token);
        const format = query.format ?? (method === "POST" || isHereSphere(headers) ? "heresphere" : "deovr");
        if (format === "deovr") return vrManifest(app.db, asset, addresses);
        const subtitles = subtitlesOf(app, asset, await playableSubtitles(app, asset.id), token);
        return new Reply(200, await hereSphereManifest(app, asset, { ...addresses, subtitles }), HERESPHERE_VERSION);
      },
    }),
  ),
  route({
    method: "GET",
    path: "/media/:id/**:file",
    credential: "none",
    cors: MEDIA_CORS,
    tag: "Media",
    summary: "Get a manifest, a segment or an image",
    hidden: true,
    responses: { 200: null },
    handle: media,
  }),
];

type Playable = { asset: AssetRow; subtitles: SubtitleRow[]; token: string; expiresAt: number };

function requireReady({ playbackStatus }: AssetRow): void {
  if (playbackStatus !== "ready")
    throw new HttpError(422, "asset_not_ready", `The asset is ${playbackStatus}, not ready.`);
}

function imagesOf(app: App, asset: PicturedAsset, token: string) {
  const carried = asset.playbackPolicy === "signed" ? token : null;
  const url = (file: string) => mediaUrl(app.baseUrl(), asset, file, carried);
  return {
    thumbnailUrl: hasPoster(asset) ? url("thumbnail.jpg") : null,
    storyboardUrl: asset.storyboardPath === null ? null : url("storyboard.vtt"),
  };
}

function addressesOf(app: App, asset: AssetRow, token: string) {
  const carried = asset.playbackPolicy === "signed" ? token : null;
  const url = (file: string) => mediaUrl(app.baseUrl(), asset, file, carried);
  return {
    hlsUrl: asset.manifestUrl ?? url("master.m3u8"),
    dashUrl: asset.dashManifestPath === null ? null : url("manifest.mpd"),
    ...imagesOf(app, asset, token),
    mp4Url: asset.mp4Path === null ? null : url("video.mp4"),
    embedUrl: pageUrl(app.baseUrl(), "embed", asset, carried),
  };
}

const subtitlesOf = (app: App, asset: AssetRow, rows: readonly SubtitleRow[], token: string) =>
  rows.map((row) => ({
    language: row.language,
    label: row.label,
    url: mediaUrl(app.baseUrl(), asset, subtitleFile(row), asset.playbackPolicy === "signed" ? token : null),
  }));

function playbackOf(app: App, { asset, subtitles, token, expiresAt }: Playable) {
  const { hlsUrl, dashUrl, thumbnailUrl, storyboardUrl, mp4Url, embedUrl } = addressesOf(app, asset, token);
  const body: v.InferInput<typeof Playback> = {
    asset_id: asset.id,
    external_id: asset.externalId,
    playback_policy: asset.playbackPolicy,
    hls_url: hlsUrl,
    dash_url: dashUrl,
    thumbnail_url: thumbnailUrl,
    storyboard_url: storyboardUrl,
    ...(mp4Url !== null && { mp4_url: mp4Url }),
    subtitles: subtitlesOf(app, asset, subtitles, token),
    renditions: asset.renditions.map(
      ({ name, width, height, frame_rate = null, codecs, bandwidth, average_bandwidth = null, score }) => ({
        name,
        width,
        height,
        frame_rate,
        codecs,
        bandwidth,
        average_bandwidth,
        ...(score != null && { score }),
      }),
    ),
    token,
    token_expires_at: iso(expiresAt),
    embed_url: embedUrl,
  };
  return new Reply(200, body);
}
