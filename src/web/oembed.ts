import * as v from "valibot";
import type { App } from "#app.ts";
import { hasPoster, isFirstFrame } from "#features/assets/poster.ts";
import { mediaUrl, pageUrl } from "#features/assets/urls.ts";
import { requirePublished } from "#features/collections/published.ts";
import { collectionPath } from "#features/collections/schema.ts";
import { requirePlayable } from "#features/playback/player-data.ts";
import type { PlaybackTokens } from "#features/playback/token.ts";
import { sharePath } from "#features/shares/schema.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { withoutForbidden } from "#lib/xml";
import { encodingSpec } from "#media/encoding-spec.ts";
import { Reply, type Route, route } from "#platform/http/route.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { html } from "./html.ts";
import { requireOpenShare } from "./open-share.ts";
import { carriedToken, sizeOf } from "./sharing.ts";

/** The player with its list next to it. */
const PLAYLIST = { width: 960, height: 420 };
const Side = v.optional(
  v.pipe(v.string(), v.regex(/^[1-9]\d{0,4}$/, "must be a whole number of pixels"), v.transform(Number)),
);
const Query = v.object({
  url: v.pipe(
    v.string(),
    v.maxLength(4096, "is too long"),
    v.description("URL of a watch or embed page, including its token"),
  ),
  format: v.optional(v.string()),
  maxwidth: Side,
  maxheight: Side,
});

/** oEmbed 1.0 (oembed.com): how other sites embed links to our pages. */
export const oembedRoute = (tokens: PlaybackTokens): Route =>
  route({
    method: "GET",
    path: "/oembed",
    credential: "none",
    tag: "Pages",
    summary: "Get the oEmbed data of a watch or embed page",
    hidden: true,
    query: Query,
    cors: { allowHeaders: "", exposeHeaders: "" },
    responses: { 200: null },
    async handle({ app, query }) {
      const { url, format = "json" } = query;
      if (format !== "json" && format !== "xml")
        throw new HttpError(501, "not_implemented", "format must be json or xml.");
      const page = pageIn(app, url);
      const isOfCollection = "collection" in page;
      const { fields, isLasting } = await (isOfCollection
        ? collectionFields(app, page.collection, query)
        : assetFields(app, tokens, page, query)
      ).catch((error: unknown) => {
        // 2.3.4: a private resource is 401 here, and 403 elsewhere.
        if (!(error instanceof HttpError) || error.status !== 403) throw error;
        throw new HttpError(401, error.code, error.message);
      });
      const headers = {
        "cache-control": isLasting ? "public, max-age=300" : "private, no-store",
        "x-content-type-options": "nosniff",
      };
      if (format === "json") return new Reply(200, fields, headers);
      const elements = Object.entries(fields).map(
        ([name, value]) => `<${name}>${html`${withoutForbidden(String(value))}`.text}</${name}>`,
      );
      return new Response(
        `<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n<oembed>${elements.join("")}</oembed>`,
        {
          headers: {
            ...headers,
            "content-type": "text/xml; charset=utf-8",
            "access-control-allow-origin": "*",
            "x-content-type-options": "nosniff",
          },
        },
      );
    },
  });

/** Any host is accepted: a page may have more host names than the base URL's, and only our own pages are looked up. */
function pageIn(app: App, address: string): Page {
  const url = URL.parse(address) ?? invalid("url", "must be the address of a watch or embed page");
  const base = new URL(app.baseUrl()).pathname.replace(/\/$/, "");
  if (!url.pathname.startsWith(`${base}/`)) return notFound("page");
  const path = url.pathname.slice(base.length);
  const [, kind, code = ""] = /^\/(?:embed\/)?([cs])\/([^/]+)$/.exec(path) ?? [];
  if (kind !== undefined) return kind === "c" ? { collection: code } : { code };
  const ref = /^\/(?:watch|embed)\/([^/]+)$/.exec(path)?.[1] ?? notFound("page");
  return { ref, token: url.searchParams.get("token") };
}

/** A page of an asset, of a share, or of a published collection. */
type Page = AssetPage | { collection: string };
type AssetPage = { ref: string; token: string | null } | { code: string };
/** `image`: the URL of its poster. `isLasting`: until the asset changes. */
type Described = { asset: AssetRow; embed: string; image: string; isLasting: boolean };

async function describedBy(app: App, tokens: PlaybackTokens, of: AssetPage): Promise<Described> {
  if ("code" in of) {
    const { share, asset } = await requireOpenShare(app, of.code);
    if (share.passwordHash !== null)
      throw new HttpError(403, "share_password_required", "This share has a password; open its page.");
    const url = (page: "watch" | "embed") => app.baseUrl() + sharePath(page, share.code);
    return { asset, embed: url("embed"), image: `${url("watch")}/poster.jpg`, isLasting: false };
  }
  const { asset } = await requirePlayable(app, tokens, of);
  const carried = carriedToken(asset, of.token);
  return {
    asset,
    embed: pageUrl(app.baseUrl(), "embed", asset, carried),
    image: mediaUrl(app.baseUrl(), asset, "thumbnail.jpg", carried),
    isLasting: of.token === null,
  };
}

type Fields = { fields: Record<string, unknown>; isLasting: boolean };

async function assetFields(app: App, tokens: PlaybackTokens, of: AssetPage, query: EmbedRequest): Promise<Fields> {
  const described = await describedBy(app, tokens, of);
  return { fields: describe(app, described, query), isLasting: described.isLasting };
}

/** Its playlist is no video. */
async function collectionFields(app: App, code: string, { maxwidth, maxheight }: EmbedRequest): Promise<Fields> {
  const { name } = await requirePublished(app, code);
  const width = Math.min(PLAYLIST.width, maxwidth ?? PLAYLIST.width);
  const height = Math.min(PLAYLIST.height, maxheight ?? PLAYLIST.height);
  const size = { width, height };
  const html = frameOf(app.baseUrl() + collectionPath("embed", code), name, size);
  return { fields: { ...provider(app), type: "rich", title: name, html, ...size }, isLasting: false };
}

const provider = (app: App) => ({ version: "1.0", provider_name: "vodbox", provider_url: app.baseUrl() });

const frameOf = (url: string, title: string, { width, height }: { width: number; height: number }) =>
  html`<iframe src="${url}" width="${width}" height="${height}" title="${title}" frameborder="0" allow="autoplay; fullscreen; picture-in-picture" allowfullscreen></iframe>`
    .text;

type EmbedRequest = { maxwidth?: number | undefined; maxheight?: number | undefined };

function describe(app: App, { asset, embed, image }: Described, { maxwidth, maxheight }: EmbedRequest) {
  const whole = sizeOf(asset);
  const scale = Math.min(1, (maxwidth ?? whole.width) / whole.width, (maxheight ?? whole.height) / whole.height);
  const width = Math.max(1, Math.floor(whole.width * scale));
  const height = Math.max(1, Math.floor(whole.height * scale));
  return {
    ...provider(app),
    type: "video",
    title: asset.title,
    html: frameOf(embed, asset.title, { width, height }),
    width,
    height,
    ...(hasPoster(asset) &&
      asset.playbackStatus === "ready" && {
        thumbnail_url: image,
        ...thumbnailSize(asset, whole),
      }),
    duration: Math.round(asset.durationSeconds),
  };
}

/** The size of the chosen poster, of the whole frame of a clip, or as the encoder creates one. */
function thumbnailSize(asset: AssetRow, { width, height }: { width: number; height: number }) {
  const { posterWidth, posterHeight } = asset;
  if (isFirstFrame(asset)) return { thumbnail_width: width, thumbnail_height: height };
  if (posterWidth !== null && posterHeight !== null)
    return { thumbnail_width: posterWidth, thumbnail_height: posterHeight };
  const scale = Math.min(1, encodingSpec.thumbnail.max_short_side / Math.min(width, height));
  return { thumbnail_width: Math.round(width * scale), thumbnail_height: Math.round(height * scale) };
}
