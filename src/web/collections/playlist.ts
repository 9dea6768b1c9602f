import type { App } from "#app.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { basePath, publicId } from "#features/assets/urls.ts";
import { collectionPath } from "#features/collections/schema.ts";
import { rememberedPlayer } from "#features/tenants/queries.ts";
import type { CollectionRow } from "#storage/db/schema.ts";
import { html, Markup } from "../html.ts";
import type { PageLanguage } from "../page-language.ts";
import {
  message,
  type Notice,
  playerFrame,
  playerOptions,
  playlistScriptUrl,
  scriptUrl,
  storageOrigin,
} from "../player-page.ts";
import { headOf, shot } from "./page.ts";
import { COLLECTION_STYLE } from "./style.ts";
import { textsIn } from "./texts.ts";

const icon = (path: string) => new Markup(`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`);
const PREVIOUS = icon("M6 5h2v14H6zm3.5 7 9 7V5z");
const NEXT = icon("M16 5h2v14h-2zM5.5 5v14l9-7z");

type Shown = { collection: CollectionRow; videos: ShownAsset[]; language: PageLanguage };

/**
 * The player with the list of a collection's videos. Each entry is a link, so that the list works without its script, which
 * plays the next one.
 */
export async function playlistView(app: App, shown: Shown, query: URLSearchParams): Promise<Notice> {
  const { collection, videos, language } = shown;
  const t = textsIn(language);
  const named = query.get("video");
  const current = videos.find((asset) => publicId(asset) === named) ?? videos[0];
  if (!current) return { ...message(200, collection.name, t.empty), language };
  const look = await rememberedPlayer(app, collection.tenantId, basePath(app.baseUrl()));
  const own = html` playback-id="${publicId(current)}"`;
  const options = { ...playerOptions(query), token: null, look };
  // A video of a customer's own CDN is loaded from there.
  const isExternal = videos.some(({ manifestUrl }) => manifestUrl !== null);
  const entries = videos.map((asset) => entryOf(app, asset, { ...shown, isCurrent: asset === current }));
  return {
    status: 200,
    title: collection.name,
    language,
    style: COLLECTION_STYLE,
    head: headOf(app, collection, { videos, isIndexed: false }),
    content: html`<div class="playlist">${playerFrame(own, "embed", current.title, options)}<div class="side"><div class="bar"><h1 title="${collection.name}">${collection.name}</h1><label><input type="checkbox" id="autoplay" checked> ${t.autoplay}</label><button type="button" id="previous" title="${t.previous}" aria-label="${t.previous}">${PREVIOUS}</button><button type="button" id="next" title="${t.next}" aria-label="${t.next}">${NEXT}</button></div><ol class="list" aria-label="${t.playlist}">${entries}</ol></div></div>`,
    script: scriptUrl(app),
    moreScript: playlistScriptUrl(app),
    isListed: false,
    ...(isExternal ? { mediaFrom: "https:" } : storageOrigin(app)),
  };
}

function entryOf(
  app: App,
  asset: ShownAsset,
  { collection, language, isCurrent }: Shown & { isCurrent: boolean },
): Markup {
  const id = publicId(asset);
  const path = basePath(app.baseUrl()) + collectionPath("embed", collection.publicCode as string);
  return html`<li><a href="${path}?video=${id}&autoplay=1" data-id="${id}"${isCurrent && html` aria-current="true"`}>${shot(app, asset, language)}<strong dir="auto">${asset.title}</strong></a></li>`;
}
