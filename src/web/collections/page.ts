import type { App } from "#app.ts";
import { hasPoster } from "#features/assets/poster.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { basePath, mediaUrl, pageUrl } from "#features/assets/urls.ts";
import { collectionPath } from "#features/collections/schema.ts";
import { rememberedPlayer } from "#features/tenants/queries.ts";
import { iso } from "#lib/base";
import type { CollectionRow } from "#storage/db/schema.ts";
import { clock } from "../clock.ts";
import { html, Markup } from "../html.ts";
import type { PageLanguage } from "../page-language.ts";
import type { Notice } from "../player-page.ts";
import { oembedLinks, shareTags } from "../sharing.ts";
import { jsonLd, videoObject } from "../structured-data.ts";
import { COLLECTION_STYLE } from "./style.ts";
import { filled, textsIn } from "./texts.ts";

/** More are counted only as "more than". */
export const MAX_COUNTED = 1000;
const MAX_DESCRIPTION = 2000;

export type ShownPage = {
  collection: CollectionRow;
  videos: ShownAsset[];
  /** Counted up to one more than MAX_COUNTED. */
  count: number;
  q: string;
  /** Cursor of the next page; null on the last one. */
  next: string | null;
  isFirst: boolean;
  language: PageLanguage;
};

/** The page of a published collection: a grid of its public videos, and what other programs read of it. */
export async function collectionView(app: App, shown: ShownPage): Promise<Notice> {
  const { collection, videos, q, isFirst, language } = shown;
  return {
    status: 200,
    title: collection.name,
    language,
    style: COLLECTION_STYLE,
    hasForm: true,
    head: headOf(app, collection, { videos, isIndexed: q === "" && isFirst }),
    content: html`${await topOf(app, shown)}${gridOf(app, shown)}${linksOf(app, shown)}`,
    isListed: q === "",
  };
}

const pathOf = (app: App, { publicCode }: CollectionRow) =>
  basePath(app.baseUrl()) + collectionPath("page", publicCode as string);

async function topOf(app: App, { collection, count, q, language }: ShownPage): Promise<Markup> {
  const t = textsIn(language);
  const path = pathOf(app, collection);
  const { logo_url } = await rememberedPlayer(app, collection.tenantId, basePath(app.baseUrl()));
  const code = collection.publicCode as string;
  const total = count > MAX_COUNTED ? filled(t.manyVideos, { count: MAX_COUNTED.toLocaleString(language) }) : "";
  const videos = count === 1 ? t.oneVideo : filled(t.videos, { count: count.toLocaleString(language) });
  const isWorthASearch = q !== "" || count > 1;
  return html`<header class="top"><div>${logo_url && html`<img class="logo" src="${logo_url}" alt="">`}<h1>${collection.name}</h1>${collection.description && html`<p class="lead" dir="auto">${collection.description.slice(0, MAX_DESCRIPTION)}</p>`}<p class="links"><span>${total || videos}</span>${count > 0 && html`<a href="${basePath(app.baseUrl())}${collectionPath("embed", code)}">${t.playAll}</a>`}<a href="${basePath(app.baseUrl())}${collectionPath("feed", code)}" type="application/rss+xml">${t.feed}</a></p></div>${isWorthASearch && html`<form class="search" role="search" action="${path}"><input type="search" name="q" value="${q}" maxlength="200" placeholder="${t.searchIn}" aria-label="${t.searchIn}"><button>${t.search}</button></form>`}</header>`;
}

function gridOf(app: App, { videos, q, language, collection }: ShownPage): Markup {
  const t = textsIn(language);
  const clear = html`<a href="${pathOf(app, collection)}">${t.clear}</a>`;
  if (videos.length === 0)
    return html`<div class="nothing"><p role="status">${q === "" ? t.empty : filled(t.nothingFound, { q })}</p>${q !== "" && html`<p class="pages">${clear}</p>`}</div>`;
  const cards = videos.map(
    (asset) =>
      html`<li><a class="card" href="${pageUrl(basePath(app.baseUrl()), "watch", asset, null)}">${shot(app, asset, language)}<strong dir="auto">${asset.title}</strong>${dateOf(asset, language)}</a></li>`,
  );
  const found = q !== "" && html`<p class="links"><span>${filled(t.found, { q })}</span>${clear}</p>`;
  return html`${found}<ul class="grid">${cards}</ul>`;
}

const FILM = new Markup('<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M8 5v14l11-7z"/></svg>');

/** The poster of a video with its duration, which is spoken as such. */
export function shot(app: App, asset: ShownAsset, language: PageLanguage): Markup {
  const time = clock(asset.durationSeconds);
  const image = html`<img src="${mediaUrl(basePath(app.baseUrl()), asset, "thumbnail.jpg", null)}" alt="" loading="lazy" decoding="async">`;
  return html`<span class="shot">${hasPoster(asset) ? image : FILM}${asset.durationSeconds > 0 && html`<span class="length" role="img" aria-label="${filled(textsIn(language).minutes, { time })}">${time}</span>`}</span>`;
}

function dateOf(asset: ShownAsset, language: PageLanguage): Markup {
  const at = asset.readyAt ?? asset.createdAt;
  const shown = new Date(at).toLocaleDateString(language, { dateStyle: "long", timeZone: "UTC" });
  return html`<time datetime="${iso(at)}">${shown}</time>`;
}

function linksOf(app: App, { collection, q, next, isFirst, language }: ShownPage): Markup | false {
  if (next === null && isFirst) return false;
  const t = textsIn(language);
  const search: Record<string, string> = q === "" ? {} : { q };
  const to = (query: Record<string, string>) => `${pathOf(app, collection)}?${new URLSearchParams(query)}`;
  const back = q === "" ? pathOf(app, collection) : to(search);
  return html`<nav class="pages">${!isFirst && html`<a href="${back}">${t.newest}</a>`}${next !== null && html`<a rel="next" href="${to({ ...search, cursor: next })}">${t.more}</a>`}</nav>`;
}

/** Link previews, the feed, and the videos for search engines, which index the first page only. */
export function headOf(
  app: App,
  collection: CollectionRow,
  { videos, isIndexed }: { videos: readonly ShownAsset[]; isIndexed: boolean },
): Markup {
  const base = app.baseUrl();
  const urlOf = (what: "page" | "embed" | "feed") => base + collectionPath(what, collection.publicCode as string);
  const pictured = videos.find(hasPoster);
  const tags = shareTags({
    title: collection.name,
    description: collection.description?.slice(0, 300),
    watch: urlOf("page"),
    embed: urlOf("embed"),
    image: pictured ? mediaUrl(base, pictured, "thumbnail.jpg", null) : null,
  });
  const list = () => ({
    "@context": "https://schema.org",
    "@type": "ItemList",
    name: collection.name,
    url: urlOf("page"),
    itemListElement: videos.map((asset, index) => ({
      "@type": "ListItem",
      position: index + 1,
      item: videoObject(app, asset),
    })),
  });
  return html`${tags}
${oembedLinks(app, urlOf("page"), collection.name)}<link rel="alternate" type="application/rss+xml" href="${urlOf("feed")}" title="${collection.name}">
${isIndexed && jsonLd(list())}`;
}
