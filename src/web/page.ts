import { html, type Markup } from "./html.ts";
import { htmlResponse, newNonce, type Policy } from "./html-response.ts";
import type { PageLanguage } from "./page-language.ts";
import { pageStyle } from "./style.ts";

export type PageName = "watch" | "embed";

export type View = {
  status: number;
  title: string;
  content: Markup;
  /** Open Graph and the like. */
  head?: Markup;
  /** By default English. */
  language?: PageLanguage;
  /** In addition to the style of all pages. */
  style?: Markup;
  /** Aspect ratio, width over height. */
  shape?: string;
  /** The player's script, when there is something to play. */
  script?: string;
  /** A script that uses the player. */
  moreScript?: string;
  /** The page is reloaded until the video is available. */
  refresh?: boolean;
  /** Origins of external media, for the policy. */
  mediaFrom?: string;
  /** Origins that may embed this page in a frame. */
  framedBy: readonly string[];
  /** The page has a form for this server. */
  hasForm?: boolean;
  /** False: search engines must not list it. */
  isListed?: boolean;
  headers?: Record<string, string>;
};

const REFRESH_SECONDS = 5;

/** A light triangle on a dark disc; inline, because browsers request /favicon.ico otherwise. */
export const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Ccircle cx='16' cy='16' r='16' fill='%233b6cf6'/%3E%3Cpath d='M12 9l12 7-12 7z' fill='%23fff'/%3E%3C/svg%3E";

/** The frame of every page, with a Content-Security-Policy that allows only our own files. */
export function respond(page: PageName, view: View): Response {
  const nonce = newNonce();
  const body = html`<!doctype html>
<html lang="${view.language ?? "en"}" class="${page}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${view.title}</title>${view.head}
${view.isListed === false && html`<meta name="robots" content="noindex, nofollow">`}${view.refresh && html`<meta http-equiv="refresh" content="${REFRESH_SECONDS}">`}
<link rel="icon" href="${ICON}">
<style nonce="${nonce}">${pageStyle()}${view.style}${view.shape && html`:root{--shape:${view.shape}}`}</style></head>
<body><main>${view.content}</main>
${view.script && html`<script nonce="${nonce}" src="${view.script}" defer></script>`}${view.moreScript && html`<script nonce="${nonce}" src="${view.moreScript}" defer></script>`}</body></html>`;
  const { status, headers = {} } = view;
  return htmlResponse(body, { nonce, policy: policy(view), status, headers });
}

function policy({ mediaFrom = "", framedBy, hasForm = false }: View): Policy {
  const from = (...sources: string[]) => [...sources, mediaFrom].filter(Boolean).join(" ");
  return {
    "img-src": from("'self'", "data:"),
    "media-src": from("'self'", "blob:"),
    "connect-src": from("'self'"),
    ...(hasForm && { "form-action": "'self'" }),
    "frame-ancestors": framedBy.length === 0 ? "'none'" : framedBy.join(" "),
  };
}
