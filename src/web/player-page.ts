import type { App } from "../app.ts";
import { basePath } from "../resources/assets/urls.ts";
import { deliveryOf } from "../resources/playback/presigned-delivery.ts";
import { versionOf } from "./embedded-file.ts";
import { html, type Markup } from "./html.ts";
import type { View } from "./page.ts";

/** What the pages of assets and of channels have in common. */

export const PLAYER_SCRIPT = "web/svc-player.js";

/** The path of the player's script, which never changes. */
export const scriptUrl = (app: App) => `${basePath(app.baseUrl())}/svc-player.js?v=${versionOf(PLAYER_SCRIPT)}`;

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
  isTracked: query.get("disable_tracking") !== "1",
});
