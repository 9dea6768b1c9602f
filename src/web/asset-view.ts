import type { App } from "#app.ts";
import { hasPoster } from "#features/assets/poster.ts";
import { basePath, mediaUrl, publicId } from "#features/assets/urls.ts";
import { spokenText } from "#features/search/spoken-text.ts";
import { playableSubtitles } from "#features/subtitles/queries.ts";
import { rememberedPlayer } from "#features/tenants/queries.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { clock } from "./clock.ts";
import { html, type Markup } from "./html.ts";
import type { PageName } from "./page.ts";
import {
  heading,
  message,
  type Notice,
  type PlayingOptions,
  playerFrame,
  playerOptions,
  scriptUrl,
  storageOrigin,
} from "./player-page.ts";

/** What the pages of an asset and of its shares show. */

/** The id of the element. */
const TRANSCRIPT = "transcript";

type Playing = {
  token: string | null;
  /** The query of the page's URL. */
  query: URLSearchParams;
  /** Below the player. */
  more?: Markup | false;
};

/** A page that plays an asset that is ready. */
export async function assetView(
  app: App,
  asset: AssetRow,
  page: PageName,
  { token, query, more }: Playing,
): Promise<Notice> {
  const startTime = /^\d{1,6}(\.\d{1,3})?$/.exec(query.get("start_time") ?? "")?.[0] ?? null;
  return {
    status: 200,
    title: asset.title,
    content: content(asset, page, {
      base: basePath(app.baseUrl()),
      look: await rememberedPlayer(app, asset.tenantId, basePath(app.baseUrl())),
      token,
      ...playerOptions(query),
      startTime,
      more: more ?? false,
      transcript: page === "watch" && (await transcript(app, asset, token)),
    }),
    script: scriptUrl(app),
    ...mediaFrom(app, asset),
    ...(asset.width && asset.height && { shape: `${asset.width}/${asset.height}` }),
  };
}

/** Additional media origins of the page: a customer's own CDN, or storage. */
function mediaFrom(app: App, { manifestUrl }: AssetRow): { mediaFrom?: string } {
  if (manifestUrl !== null) return { mediaFrom: `${URL.parse(manifestUrl)?.origin ?? ""} https:` };
  return storageOrigin(app);
}

export const videoNotFound = () =>
  message(404, "Video not found", "The link may be mistyped, or the video was deleted.");
export const suspended = () => message(403, "This video is not available", "The account that owns it is suspended.");

/** Null when the asset can be played. */
export function stateNotice(asset: AssetRow): Notice | null {
  if (asset.playbackStatus === "errored") return message(200, asset.title, "This video could not be processed.");
  return asset.playbackStatus === "ready" ? null : waiting(asset);
}

function waiting({ playbackStatus, progress }: AssetRow): Notice {
  const isProcessing = playbackStatus === "processing";
  const state = isProcessing ? `It is being processed: ${progress} %.` : "It has not been uploaded yet.";
  const bar = html`<progress max="100" value="${progress}" aria-label="Progress"></progress>`;
  const text = `${state} This page refreshes automatically.`;
  return { ...message(200, "This video is not ready yet", text, isProcessing && bar), refresh: true };
}

/** The element in which the player shows what is said: the text itself for those who read a public page without scripts. */
async function transcript(app: App, asset: AssetRow, token: string | null): Promise<Markup | false> {
  const all = await playableSubtitles(app, asset.id);
  const subtitle = all.find(({ isDefault }) => isDefault) ?? all[0];
  if (!subtitle) return false;
  const isPublic = asset.playbackPolicy === "public" && token === null;
  const text = isPublic && (await spokenText(app, subtitle));
  return html`<div id="${TRANSCRIPT}">${text && html`<h2>Transcript</h2><p lang="${subtitle.language}" dir="auto">${text}</p>`}</div>`;
}

type Player = PlayingOptions & {
  base: string;
  startTime: string | null;
  more: Markup | false;
  transcript: Markup | false;
};

function content(asset: AssetRow, page: PageName, { startTime, more, transcript, ...playing }: Player): Markup {
  const own = html` playback-id="${publicId(asset)}"${startTime && html` start-time="${startTime}"`}${transcript && html` transcript="${TRANSCRIPT}"`}`;
  const image = hasPoster(asset) ? mediaUrl(playing.base, asset, "thumbnail.jpg", playing.token) : null;
  const player = playerFrame(own, page, asset.title, { ...playing, image });
  if (page === "embed") return html`<h1 class="heard">${asset.title}</h1>${player}${more}`;
  const size = asset.height ? ` · ${asset.width} × ${asset.height}` : "";
  return html`${player}${heading(asset.title, playing)}<p class="about">${clock(asset.durationSeconds)}${size}</p>${asset.description && html`<p class="description">${asset.description}</p>`}${more}${transcript}`;
}
