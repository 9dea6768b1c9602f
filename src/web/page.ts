import { randomBytes } from "node:crypto";
import { html, type Markup } from "./html.ts";
import { PAGE_STYLE } from "./style.ts";

export type PageName = "watch" | "embed";

export type View = {
  status: number;
  title: string;
  content: Markup;
  /** Open Graph and the like. */
  head?: Markup;
  /** Width over height of the picture. */
  shape?: string;
  /** The player's script, where there is something to play. */
  script?: string;
  /** The page is asked for again until there is something to see. */
  refresh?: boolean;
  /** Sources of media that lie with somebody else, as the policy names them. */
  mediaFrom?: string;
  /** Whose pages may show this one in a frame. */
  framedBy: readonly string[];
};

const REFRESH_SECONDS = 5;

/** A light triangle on a dark disc; inside the page, since browsers ask for /favicon.ico otherwise. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Ccircle cx='16' cy='16' r='16' fill='%233b6cf6'/%3E%3Cpath d='M12 9l12 7-12 7z' fill='%23fff'/%3E%3C/svg%3E";

/** The frame around every view, with a policy that lets nothing in but our own files. */
export function respond(page: PageName, view: View): Response {
  const nonce = randomBytes(16).toString("base64");
  const body = html`<!doctype html>
<html lang="en" class="${page}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${view.title}</title>${view.head}
${view.refresh && html`<meta http-equiv="refresh" content="${REFRESH_SECONDS}">`}
<link rel="icon" href="${ICON}">
<style nonce="${nonce}">${PAGE_STYLE}${view.shape && html`:root{--shape:${view.shape}}`}</style></head>
<body><main>${view.content}</main>
${view.script && html`<script nonce="${nonce}" src="${view.script}" defer></script>`}</body></html>`;
  return new Response(body.text, {
    status: view.status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy(nonce, view),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      // The address may hold a token: it must not leak to wherever a viewer goes next.
      "referrer-policy": "no-referrer",
    },
  });
}

function policy(nonce: string, { mediaFrom = "", framedBy }: View): string {
  const from = (...sources: string[]) => [...sources, mediaFrom].filter(Boolean).join(" ");
  return [
    "default-src 'none'",
    // By the nonce alone: nothing else that this server hands out, a client's file least of all, is a script here.
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `img-src ${from("'self'", "data:")}`,
    `media-src ${from("'self'", "blob:")}`,
    `connect-src ${from("'self'")}`,
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${framedBy.length === 0 ? "'none'" : framedBy.join(" ")}`,
  ].join("; ");
}
