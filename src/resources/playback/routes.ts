import * as v from "valibot";
import type { AssetRow, SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { Reply, type Route, route } from "../../http/route.ts";
import { iso } from "../../lib/clock.ts";
import { HttpError, invalid, notFound } from "../../lib/errors.ts";
import { mediaUrl, pageUrl } from "../assets/addresses.ts";
import { resolveAsset } from "../assets/queries.ts";
import { subtitleFile } from "../subtitles/address.ts";
import { playableSubtitles } from "../subtitles/queries.ts";
import type { MediaDoor } from "./media.ts";
import type { PlaybackTokens } from "./token.ts";

const HOUR = 3600;
const MAX_SECONDS = 12 * HOUR;

export const Playback = v.pipe(
  v.object({
    asset_id: v.number(),
    external_id: v.string(),
    playback_policy: v.picklist(["public", "signed"]),
    hls_url: v.string(),
    dash_url: v.nullable(v.string()),
    thumbnail_url: v.nullable(v.string()),
    storyboard_url: v.nullable(v.string()),
    subtitles: v.array(v.object({ language: v.string(), label: v.string(), url: v.string() })),
    token: v.string(),
    token_expires_at: v.pipe(v.string(), v.isoTimestamp()),
    embed_url: v.string(),
  }),
  v.title("Playback"),
);

const ExpiresIn = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/, "must be a whole number of seconds"),
    v.transform(Number),
    v.description("Seconds, 60 to 43,200"),
  ),
);

/** How long a token lives in seconds: as asked, else the greater of an hour and twice the video, at most twelve hours. */
function lifetime(asset: AssetRow, asked: number | undefined): number {
  if (asked === undefined) return Math.min(MAX_SECONDS, Math.max(HOUR, Math.ceil(asset.durationSeconds * 2)));
  if (asked < 60 || asked > MAX_SECONDS) invalid("expires_in", `must be between 60 and ${MAX_SECONDS} seconds`);
  return asked;
}

export const playbackRoutes = (tokens: PlaybackTokens, media: MediaDoor): Route[] => [
  route({
    method: "GET",
    path: "/api/v1/playback/:id",
    scope: "playback:read",
    tag: "Playback",
    summary: "Addresses and a token to play an asset with; by number or external id",
    params: v.object({ id: v.string() }),
    query: v.object({ expires_in: ExpiresIn }),
    responses: { 200: Playback },
    errors: { 422: ["asset_not_ready"] },
    async handle({ app, caller, params, query }) {
      const asset = (await resolveAsset(app.db, caller, params.id)) ?? notFound("asset");
      if (asset.playbackStatus !== "ready")
        throw new HttpError(422, "asset_not_ready", `The asset is ${asset.playbackStatus}, not ready to play.`);
      const expiresAt = app.clock.now() + lifetime(asset, query.expires_in) * 1000;
      const subtitles = await playableSubtitles(app, asset.id);
      return playbackOf(app, { asset, subtitles, token: await tokens.sign(asset, expiresAt), expiresAt });
    },
  }),
  route({
    method: "GET",
    path: "/media/:id/**:file",
    credential: "none",
    tag: "Media",
    summary: "Manifests, segments, pictures",
    hidden: true,
    responses: { 200: null },
    handle: media,
  }),
];

type Playable = { asset: AssetRow; subtitles: SubtitleRow[]; token: string; expiresAt: number };

function playbackOf(app: App, { asset, subtitles, token, expiresAt }: Playable) {
  const carried = asset.playbackPolicy === "signed" ? token : null;
  const url = (file: string) => mediaUrl(app.baseUrl(), asset, file, carried);
  const body: v.InferInput<typeof Playback> = {
    asset_id: asset.id,
    external_id: asset.externalId,
    playback_policy: asset.playbackPolicy,
    hls_url: asset.manifestUrl ?? url("master.m3u8"),
    dash_url: asset.dashManifestPath === null ? null : url("manifest.mpd"),
    thumbnail_url: asset.thumbnailPath === null ? null : url("thumbnail.jpg"),
    storyboard_url: null,
    subtitles: subtitles.map((row) => ({ language: row.language, label: row.label, url: url(subtitleFile(row)) })),
    token,
    token_expires_at: iso(expiresAt),
    embed_url: pageUrl(app.baseUrl(), "embed", asset, carried),
  };
  return new Reply(200, body);
}
