import { createHash, randomBytes } from "node:crypto";
import type { AssetRow } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import { type Context, type Route, route } from "../http/route.ts";
import { embedded } from "../lib/embedded.ts";
import { HttpError } from "../lib/errors.ts";
import { publicId } from "../resources/assets/addresses.ts";
import { findPublicAsset } from "../resources/assets/queries.ts";
import type { PlaybackTokens } from "../resources/playback/token.ts";
import { html, type Markup } from "./html.ts";
import { PAGE_STYLE } from "./style.ts";

type Page = "watch" | "embed";
type View = { status: number; title: string; content: Markup; description?: string | null; refresh?: boolean };

/** Made at the first request and then kept: neither changes while the program runs. */
let script: { bytes: Buffer; version: string } | undefined;
function playerScript() {
  if (!script) {
    const bytes = embedded("web/player.js");
    script = { bytes, version: createHash("sha256").update(bytes).digest("hex").slice(0, 12) };
  }
  return script;
}

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
      handle: async (context) => respond(context.app, page, await viewOf(context, tokens, page)),
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
    handle() {
      const { bytes, version } = playerScript();
      const headers = {
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "public, max-age=31536000, immutable",
        etag: `"${version}"`,
      };
      return new Response(new Uint8Array(bytes), { headers });
    },
  }),
];

async function viewOf({ app, params, url }: Context, tokens: PlaybackTokens, page: Page): Promise<View> {
  const asset = await findPublicAsset(app, (params as { id: string }).id);
  if (!asset) return message(404, "No such video", "The address may be mistyped, or the video was removed.");
  const token = url.searchParams.get("token");
  if (asset.playbackPolicy === "signed") {
    const refused = await refusal(tokens, asset, token);
    if (refused) return refused;
  }
  if (asset.playbackStatus === "errored") return message(200, asset.title, "This video could not be processed.");
  if (asset.playbackStatus !== "ready") {
    const progress =
      asset.playbackStatus === "processing"
        ? `It is being processed: ${asset.progress} %.`
        : "It has not been uploaded yet.";
    return {
      ...message(200, "This video is not ready yet", `${progress} The page looks again by itself.`),
      refresh: true,
    };
  }
  return {
    status: 200,
    title: asset.title,
    description: asset.description,
    content: player(app, asset, token, page, url),
  };
}

async function refusal(tokens: PlaybackTokens, asset: AssetRow, token: string | null): Promise<View | null> {
  if (!token)
    return message(403, "This video is private", "Open it with the link that you were given: it holds a token.");
  try {
    await tokens.verify(asset, token);
    return null;
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return message(403, "This link has expired", "Ask whoever sent it for a fresh one.");
  }
}

const message = (status: number, title: string, text: string): View => ({
  status,
  title,
  content: html`<div class="frame"><div class="message"><strong>${title}</strong><span>${text}</span></div></div>`,
});

function player(app: App, asset: AssetRow, token: string | null, page: Page, url: URL): Markup {
  const signed = asset.playbackPolicy === "signed" && token ? `?token=${encodeURIComponent(token)}` : "";
  // By path alone: the page may be looked at through another name than the base URL's.
  const media = `${new URL(app.baseUrl()).pathname.replace(/\/$/, "")}/media/${publicId(asset)}`;
  const source = asset.manifestUrl ?? `${media}/master.m3u8${signed}`;
  const poster = asset.thumbnailPath ? `${media}/thumbnail.jpg${signed}` : null;
  const autoplay = url.searchParams.get("autoplay") === "1";
  const video = html`<video controls playsinline preload="metadata" data-src="${source}" ${poster && html`poster="${poster}"`} ${autoplay && html`autoplay muted`} aria-label="${asset.title}"></video>`;
  const frame = html`<div class="frame">${video}<p class="notice" role="alert" data-notice hidden></p></div>`;
  if (page === "embed") return frame;
  const minutes = `${Math.floor(asset.durationSeconds / 60)}:${String(Math.floor(asset.durationSeconds % 60)).padStart(2, "0")}`;
  const size = asset.height ? ` · ${asset.width} × ${asset.height}` : "";
  return html`${frame}<h1>${asset.title}</h1><p class="about">${minutes}${size}</p>${asset.description && html`<p class="description">${asset.description}</p>`}`;
}

function respond(app: App, page: Page, view: View): Response {
  const nonce = randomBytes(16).toString("base64");
  const base = new URL(app.baseUrl()).pathname.replace(/\/$/, "");
  const body = html`<!doctype html>
<html lang="en" class="${page}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${view.title}</title>${view.description && html`<meta name="description" content="${view.description.slice(0, 300)}">`}
${view.refresh && html`<meta http-equiv="refresh" content="5">`}
<style nonce="${nonce}">${PAGE_STYLE}</style></head>
<body>${page === "watch" ? html`<main>${view.content}</main>` : view.content}
<script src="${base}/player.js?v=${playerScript().version}" defer></script></body></html>`;
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'nonce-${nonce}'`,
    "img-src 'self' https:",
    "media-src 'self' blob: https:",
    "connect-src 'self' https:",
    "worker-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
    page === "embed" ? "frame-ancestors *" : "frame-ancestors 'self'",
  ].join("; ");
  return new Response(body.text, {
    status: view.status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      // The address may hold a token: it must not leak to wherever a viewer goes next.
      "referrer-policy": "no-referrer",
    },
  });
}
