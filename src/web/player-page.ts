import { basename } from "node:path";
import type { App } from "#app.ts";
import { basePath } from "#features/assets/urls.ts";
import { deliveryOf } from "#features/playback/presigned-delivery.ts";
import type { rememberedPlayer } from "#features/tenants/queries.ts";
import { versionOf } from "./embedded-file.ts";
import { html, type Markup } from "./html.ts";
import type { PageName, View } from "./page.ts";

/** What the pages of assets and of channels have in common. */

export const PLAYER_SCRIPT = "web/svc-player.js";
export const TRANSCRIPT_SCRIPT = "web/svc-transcript.js";
export const PLAYLIST_SCRIPT = "web/svc-playlist.js";

const versioned = (app: App, file: string) => `${basePath(app.baseUrl())}/${basename(file)}?v=${versionOf(file)}`;
/** The path of the player's script, which never changes. */
export const scriptUrl = (app: App) => versioned(app, PLAYER_SCRIPT);
export const playlistScriptUrl = (app: App) => versioned(app, PLAYLIST_SCRIPT);

export type Notice = Omit<View, "framedBy">;

/** A page that works without a script, because there is nothing to play. */
export const message = (status: number, title: string, text: string, more: Markup | false = false): Notice => ({
  status,
  title,
  content: html`<div class="frame"><div class="message"><h1>${title}</h1>${more}<span>${text}</span></div></div>`,
});

/** The origin of storage, for the page's policy, where browsers load media from there. */
export function storageOrigin(app: App): { mediaFrom?: string } {
  const origin = deliveryOf(app) === "proxy" ? null : app.objects?.addressOrigin;
  return origin ? { mediaFrom: origin } : {};
}

/** What the query of a page says about its player. */
export const playerOptions = (query: URLSearchParams) => ({
  isAutomatic: query.get("autoplay") === "1",
  isTracked: query.get("analytics") !== "off" && query.get("disable_tracking") !== "1",
});

export type PlayingOptions = ReturnType<typeof playerOptions> & {
  token: string | null;
  /** As the tenant has set it. */
  look: Awaited<ReturnType<typeof rememberedPlayer>>;
};

/**
 * The player of a page. `own`: attributes that name what it plays. `image`: the URL of its poster, which is shown until the
 * script of the player has been loaded.
 */
export function playerFrame(
  own: Markup,
  page: PageName,
  title: string,
  options: PlayingOptions & { image?: string | null },
): Markup {
  const { token, isAutomatic, isTracked, look, image } = options;
  const { accent_color, logo_url, show_title } = look;
  return html`<div class="frame"><svc-player${own} page-keys${token && html` token="${token}"`}${isAutomatic && html` autoplay`}${!isTracked && html` disable-tracking`}${accent_color && html` accent-color="${accent_color}"`}${logo_url && html` logo="${logo_url}"`}${page === "embed" && show_title && html` video-title="${title}"`}>${image && html`<img src="${image}" alt="" fetchpriority="high">`}</svc-player></div>`;
}

/** The heading of a watch page; without the option for screen readers only. */
export const heading = (title: string, { look }: PlayingOptions): Markup =>
  html`<h1${!look.show_title && html` class="heard"`}>${title}</h1>`;
