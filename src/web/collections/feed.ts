import type { App } from "#app.ts";
import { hasPoster } from "#features/assets/poster.ts";
import type { ShownAsset } from "#features/assets/shown.ts";
import { mediaUrl, pageUrl, publicId } from "#features/assets/urls.ts";
import { collectionPath } from "#features/collections/schema.ts";
import { rememberedPlayer } from "#features/tenants/queries.ts";
import { writeXml } from "#lib/manifests";
import { withoutForbidden, type XmlElement } from "#lib/xml";
import type { CollectionRow } from "#storage/db/schema.ts";
import { clock } from "../clock.ts";
import { type Enclosure, enclosuresOf } from "./enclosures.ts";

const NAMESPACES = {
  version: "2.0",
  "xmlns:atom": "http://www.w3.org/2005/Atom",
  "xmlns:itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
  "xmlns:media": "http://search.yahoo.com/mrss/",
};

type Attributes = Record<string, string | number | null | undefined>;

const clean = (value: string | number) => withoutForbidden(String(value));

function element(
  name: string,
  content: string | number | (XmlElement | null)[],
  attributes: Attributes = {},
): XmlElement {
  const given = Object.entries(attributes).flatMap(([key, value]) =>
    value == null ? [] : [[key, clean(value)] as const],
  );
  const children = Array.isArray(content) ? content.filter((one) => one !== null) : [];
  return { name, attributes: new Map(given), children, text: Array.isArray(content) ? "" : clean(content) };
}
const empty = (name: string, attributes: Attributes) => element(name, "", attributes);

/** RFC 822, which RSS requires, with a year of four digits. */
const rfc822 = (time: number) => new Date(time).toUTCString();

type Feed = {
  collection: CollectionRow;
  videos: readonly ShownAsset[];
  /** Cursor of older videos; null when there are none. */
  next: string | null;
  /** The cursor of this page of the feed; null for the first one. */
  cursor: string | null;
};

/**
 * RSS 2.0 of a published collection, with enclosures, and the tags that podcast programs (iTunes) and search engines (Media
 * RSS) read. Older videos are in further pages (RFC 5005, 3).
 */
export async function feedOf(app: App, { collection, videos, next, cursor }: Feed): Promise<string> {
  const base = app.baseUrl();
  const code = collection.publicCode as string;
  const page = base + collectionPath("page", code);
  const feedUrl = (at: string | null) =>
    base + collectionPath("feed", code) + (at === null ? "" : `?${new URLSearchParams({ cursor: at })}`);
  const link = (rel: string, href: string) => empty("atom:link", { rel, href, type: "application/rss+xml" });
  const enclosures = await enclosuresOf(app, videos);
  const { logo_url: logo } = await rememberedPlayer(app, collection.tenantId, base);
  const pictured = videos.find(hasPoster);
  const image = logo ?? (pictured ? mediaUrl(base, pictured, "thumbnail.jpg", null) : null);
  const changedAt = Math.max(collection.updatedAt, ...videos.map((asset) => asset.updatedAt));
  const channel = element("channel", [
    element("title", collection.name),
    element("link", page),
    // Required, also without a text.
    element("description", collection.description || collection.name),
    link("self", feedUrl(cursor)),
    next === null ? null : link("next", feedUrl(next)),
    element("generator", "vodbox"),
    element("lastBuildDate", rfc822(changedAt)),
    image === null
      ? null
      : element("image", [element("url", image), element("title", collection.name), element("link", page)]),
    image === null ? null : empty("itunes:image", { href: image }),
    element("itunes:type", "episodic"),
    ...videos.map((asset) => itemOf(app, asset, enclosures.get(asset.id) as Enclosure)),
  ]);
  return writeXml(element("rss", [channel], NAMESPACES));
}

function itemOf(app: App, asset: ShownAsset, { url, type, bytes }: Enclosure): XmlElement {
  const base = app.baseUrl();
  const poster = hasPoster(asset) ? mediaUrl(base, asset, "thumbnail.jpg", null) : null;
  const { title, description, width, height, durationSeconds } = asset;
  return element("item", [
    element("title", title),
    element("link", pageUrl(base, "watch", asset, null)),
    element("description", description || title),
    element("guid", publicId(asset), { isPermaLink: "false" }),
    element("pubDate", rfc822(asset.readyAt ?? asset.createdAt)),
    empty("enclosure", { url, length: bytes, type }),
    element("itunes:duration", clock(durationSeconds)),
    poster === null ? null : empty("itunes:image", { href: poster }),
    element(
      "media:content",
      [
        element("media:title", title, { type: "plain" }),
        poster === null ? null : empty("media:thumbnail", { url: poster }),
        empty("media:player", { url: pageUrl(base, "embed", asset, null) }),
      ],
      { url, type, medium: "video", duration: Math.round(durationSeconds), width, height },
    ),
  ]);
}
