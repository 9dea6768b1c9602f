import type { App } from "#app.ts";
import { hasPoster } from "#features/assets/poster.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { mediaUrl, pageUrl } from "#features/assets/urls.ts";
import { iso } from "#lib/base";
import type { AssetRow } from "#storage/db/schema.ts";
import { Markup } from "./html.ts";
import { summaryOf } from "./sharing.ts";

/**
 * JSON-LD for search engines (schema.org). It is data, which no Content-Security-Policy executes; `<` is escaped, because an
 * end tag in a title would end the element.
 */
export const jsonLd = (data: unknown): Markup =>
  new Markup(`<script type="application/ld+json">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>`);

/** A public asset as schema.org's VideoObject. */
export function videoObject(app: App, asset: ShownAsset) {
  const { title, description } = summaryOf(asset);
  const base = app.baseUrl();
  return {
    "@type": "VideoObject",
    name: title,
    // Required by search engines.
    description: description || title,
    uploadDate: iso(asset.readyAt ?? asset.createdAt),
    duration: `PT${Math.max(1, Math.round(asset.durationSeconds))}S`,
    url: pageUrl(base, "watch", asset, null),
    embedUrl: pageUrl(base, "embed", asset, null),
    ...(hasPoster(asset) && { thumbnailUrl: mediaUrl(base, asset, "thumbnail.jpg", null) }),
  };
}

/** The JSON-LD of a watch page; nothing for what is not public. */
export const watchData = (app: App, asset: AssetRow): Markup | false =>
  asset.playbackPolicy === "public" &&
  asset.playbackStatus === "ready" &&
  jsonLd({ "@context": "https://schema.org", ...videoObject(app, asset) });
