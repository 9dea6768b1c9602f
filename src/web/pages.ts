import type { AssetRow, SubtitleRow } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import { type Context, type Route, route } from "../http/route.ts";
import { HttpError } from "../lib/errors.ts";
import { publicId } from "../resources/assets/addresses.ts";
import { findPublicAsset } from "../resources/assets/queries.ts";
import { deliveryOf } from "../resources/playback/hand-out.ts";
import type { PlaybackTokens } from "../resources/playback/token.ts";
import { subtitleFile } from "../resources/subtitles/address.ts";
import { playableSubtitles } from "../resources/subtitles/queries.ts";
import { embeddedFile, versionOf } from "./embedded-file.ts";
import { html, type Markup } from "./html.ts";
import { basePath, type PageName, respond, type View } from "./page.ts";

const SCRIPT = "web/player.js";

/** `/watch/<asset>`, `/embed/<asset>` and the script that they load; nothing comes from anywhere else. */
export const pageRoutes = (tokens: PlaybackTokens): Route[] => [
  ...(["watch", "embed"] as const).map((page) =>
    route({
      method: "GET",
      path: `/${page}/:id`,
      credential: "none",
      tag: "Pages",
      summary: `The ${page} page of an asset`,
      hidden: true,
      responses: { 200: null },
      handle: async (context) => respond(page, await viewOf(context, tokens, page)),
    }),
  ),
  route({
    method: "GET",
    path: "/player.js",
    credential: "none",
    tag: "Pages",
    summary: "The pages' script",
    hidden: true,
    responses: { 200: null },
    async handle({ headers, url }) {
      // Under its version it never changes; without one it has to be asked for again.
      const isPinned = url.searchParams.get("v") === (await versionOf(SCRIPT));
      const cacheControl = isPinned ? "public, max-age=31536000, immutable" : "public, no-cache";
      return embeddedFile(SCRIPT, { type: "text/javascript; charset=utf-8", cacheControl, headers });
    },
  }),
];

async function viewOf({ app, params, url }: Context, tokens: PlaybackTokens, page: PageName): Promise<View> {
  const asset = await findPublicAsset(app, (params as { id: string }).id);
  if (!asset) return message(404, "No such video", "The address may be mistyped, or the video was removed.");
  const token = url.searchParams.get("token");
  if (asset.playbackPolicy === "signed") {
    const refused = await refusal(tokens, asset, token);
    if (refused) return refused;
  }
  if (asset.playbackStatus === "errored") return message(200, asset.title, "This video could not be processed.");
  if (asset.playbackStatus !== "ready") return waiting(asset);
  return {
    status: 200,
    title: asset.title,
    description: asset.description,
    content: player(app, asset, {
      subtitles: await playableSubtitles(app, asset.id),
      token,
      page,
      autoplay: url.searchParams.get("autoplay") === "1",
      isTracked: url.searchParams.get("disable_tracking") !== "1",
    }),
    script: `${basePath(app)}/player.js?v=${await versionOf(SCRIPT)}`,
    ...mediaFrom(app, asset),
    ...(asset.width && asset.height && { shape: `${asset.width}/${asset.height}` }),
  };
}

/** Whose media the page may load beside ours: a customer's own network's, or storage's. */
function mediaFrom(app: App, { manifestUrl }: AssetRow): { mediaFrom?: string } {
  if (manifestUrl !== null) return { mediaFrom: `${URL.parse(manifestUrl)?.origin ?? ""} https:` };
  const origin = deliveryOf(app) === "proxy" ? null : app.objects?.addressOrigin;
  return origin ? { mediaFrom: origin } : {};
}

async function refusal(tokens: PlaybackTokens, asset: AssetRow, token: string | null): Promise<View | null> {
  if (!token)
    return message(403, "This video is private", "Open it with the link that you were given: it holds a token.");
  try {
    await tokens.verify(asset, token);
    return null;
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return message(403, "This link has expired", "Or a part of it is missing. Ask whoever sent it for a new one.");
  }
}

const message = (status: number, title: string, text: string, more: Markup | false = false): View => ({
  status,
  title,
  content: html`<div class="frame"><div class="message"><strong>${title}</strong>${more}<span>${text}</span></div></div>`,
});

function waiting({ playbackStatus, progress }: AssetRow): View {
  const isProcessing = playbackStatus === "processing";
  const state = isProcessing ? `It is being processed: ${progress} %.` : "It has not been uploaded yet.";
  const bar = html`<progress max="100" value="${progress}" aria-label="Progress"></progress>`;
  const text = `${state} The page looks again by itself.`;
  return { ...message(200, "This video is not ready yet", text, isProcessing && bar), refresh: true };
}

type Playing = {
  subtitles: SubtitleRow[];
  token: string | null;
  page: PageName;
  autoplay: boolean;
  isTracked: boolean;
};

function player(app: App, asset: AssetRow, { subtitles, token, page, autoplay, isTracked }: Playing): Markup {
  const signed = asset.playbackPolicy === "signed" && token ? `?token=${encodeURIComponent(token)}` : "";
  const media = `${basePath(app)}/media/${publicId(asset)}`;
  const source = asset.manifestUrl ?? `${media}/master.m3u8${signed}`;
  const poster = asset.thumbnailPath ? `${media}/thumbnail.jpg${signed}` : null;
  const beacons =
    isTracked && html`data-beacons="${basePath(app)}/api/v1/playback_events" data-asset="${publicId(asset)}"`;
  const tracks = subtitles.map(
    (row) =>
      html`<track kind="subtitles" srclang="${row.language}" label="${row.label}" src="${media}/${subtitleFile(row)}${signed}" ${row.isDefault && html`default`}>`,
  );
  const video = html`<video controls playsinline preload="metadata" data-src="${source}" ${beacons} ${poster && html`poster="${poster}"`} ${autoplay && html`autoplay muted`} aria-label="${asset.title}">${tracks}</video>`;
  const frame = html`<div class="frame">${video}<p class="notice" role="alert" data-notice hidden></p></div>`;
  if (page === "embed") return frame;
  const size = asset.height ? ` · ${asset.width} × ${asset.height}` : "";
  return html`${frame}<h1>${asset.title}</h1><p class="about">${clock(asset.durationSeconds)}${size}</p>${asset.description && html`<p class="description">${asset.description}</p>`}`;
}

/** 0:08, 12:34, 1:02:03. */
function clock(durationSeconds: number): string {
  const whole = Math.round(durationSeconds);
  const parts = [Math.floor(whole / 60) % 60, whole % 60];
  if (whole >= 3600) parts.unshift(Math.floor(whole / 3600));
  return parts.map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}
