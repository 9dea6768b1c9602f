import type { App } from "#app.ts";
import { hasPoster } from "#features/assets/poster.ts";
import { mediaUrl, pageUrl } from "#features/assets/urls.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { html, type Markup } from "./html.ts";

const MAX_DESCRIPTION = 300;
const DEFAULT_SIZE = { width: 1280, height: 720 };

export const carriedToken = ({ playbackPolicy }: AssetRow, token: string | null) =>
  playbackPolicy === "signed" ? token : null;
export const sizeOf = ({ width, height }: AssetRow) => (width && height ? { width, height } : DEFAULT_SIZE);

type Shared = {
  title: string;
  description?: string | undefined;
  /** Full URLs of the two pages. */
  watch: string;
  embed: string;
  image?: string | null;
  size?: { width: number; height: number };
  durationSeconds?: number;
};

/** Link previews on other sites: Open Graph (ogp.me). */
export function shareTags({ title, description, watch, embed, image, size, durationSeconds }: Shared): Markup {
  const { width, height } = size ?? DEFAULT_SIZE;
  const properties: [name: string, value: string | number | null | undefined][] = [
    ["og:type", "video.other"],
    ["og:title", title],
    ["og:description", description],
    ["og:url", watch],
    ["og:image", image],
    ["og:video", embed],
    ["og:video:type", "text/html"],
    ["og:video:width", width],
    ["og:video:height", height],
    ["video:duration", durationSeconds],
  ];
  const meta = properties.map(
    ([name, value]) =>
      value !== null && value !== undefined && value !== "" && html`<meta property="${name}" content="${value}">`,
  );
  return html`${description && html`<meta name="description" content="${description}">`}
<link rel="canonical" href="${watch}">${meta}<meta name="twitter:card" content="player"><meta name="twitter:player" content="${embed}"><meta name="twitter:player:width" content="${width}"><meta name="twitter:player:height" content="${height}">`;
}

/** Link previews, and oEmbed discovery. */
export function sharingHead(app: App, asset: AssetRow, token: string | null): Markup {
  const carried = carriedToken(asset, token);
  const watch = pageUrl(app.baseUrl(), "watch", asset, carried);
  const tags = shareTags({
    ...summaryOf(asset),
    watch,
    embed: pageUrl(app.baseUrl(), "embed", asset, carried),
    size: sizeOf(asset),
    image: hasPoster(asset) ? mediaUrl(app.baseUrl(), asset, "thumbnail.jpg", carried) : null,
  });
  return html`${tags}
${oembedLinks(app, watch, asset.title)}`;
}

/** What previews say about an asset. */
export const summaryOf = (asset: Pick<AssetRow, "title" | "description" | "durationSeconds">) => ({
  title: asset.title,
  description: asset.description?.slice(0, MAX_DESCRIPTION),
  durationSeconds: Math.round(asset.durationSeconds),
});

/** oEmbed discovery (2.4) of a page. */
export function oembedLinks(app: App, watch: string, title: string): Markup {
  const oembed = (format: string) => `${app.baseUrl()}/oembed?format=${format}&url=${encodeURIComponent(watch)}`;
  return html`<link rel="alternate" type="application/json+oembed" href="${oembed("json")}" title="${title}"><link rel="alternate" type="text/xml+oembed" href="${oembed("xml")}" title="${title}">`;
}
