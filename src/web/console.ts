import * as v from "valibot";
import type { App } from "#app.ts";
import { basePath } from "#features/assets/urls.ts";
import { providerName } from "#features/credentials/oidc/provider.ts";
import { deliveryOf } from "#features/playback/presigned-delivery.ts";
import { HttpError, notFound } from "#lib/base";
import { embedded, embeddedNames } from "#lib/executable";
import { type Context, type Route, route } from "#platform/http/route.ts";
import { embeddedFile, typeOf } from "./embedded-file.ts";
import { html } from "./html.ts";
import { htmlResponse, newNonce } from "./html-response.ts";
import { ICON } from "./page.ts";

/** What the build writes next to the files: each of them by its role (scripts/build/console.ts). Not for browsers. */
const MANIFEST = "files.json";
type Files = { script: string; style: string; preload: string[] };

const open = { method: "GET", credential: "none", tag: "Pages", hidden: true, responses: { 200: null } } as const;

let files: Files | undefined;
function filesOf(): Files {
  files ??= JSON.parse(embedded(`console/${MANIFEST}`).toString("utf8")) as Files;
  return files;
}
let names: Set<string> | undefined;

/** The console is a client of the public API: its pages are one document, which loads scripts of the executable. */
export const consoleRoutes: Route[] = [
  route({ ...open, path: "/console", summary: "Show the console", handle: shell }),
  route({ ...open, path: "/console/**:page", summary: "Show a page of the console", handle: shell }),
  route({
    ...open,
    path: "/",
    summary: "Show the console to browsers",
    handle(context) {
      if (/\btext\/html\b/.test(context.headers.get("accept") ?? "")) return shell(context);
      throw new HttpError(404, "not_found", "There is nothing at this URL; the console is at /console.");
    },
  }),
  route({
    ...open,
    path: "/console/files/:name",
    summary: "Get a script or style of the console",
    params: v.object({ name: v.string() }),
    handle(context) {
      const { name } = context.params;
      names ??= new Set(embeddedNames("console/").map((one) => one.slice("console/".length)));
      const type = typeOf(name);
      if (type === undefined || name === MANIFEST || !names.has(name)) notFound("file");
      // Names contain a hash of the content.
      const cacheControl = "public, max-age=31536000, immutable";
      return embeddedFile(context, `console/${name}`, { type, cacheControl });
    },
  }),
];

function shell({ app }: Pick<Context, "app">): Response {
  const nonce = newNonce();
  const base = basePath(app.baseUrl());
  const provider = providerName(app.config);
  const { script, style, preload } = filesOf();
  const at = (name: string) => `${base}/console/files/${name}`;
  const body = html`<!doctype html>
<html lang="en" data-base="${base}"${provider && html` data-oidc="${provider}"`}><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="description" content="vodbox: videos, live streams and their viewers"><title>vodbox</title><link rel="icon" href="${ICON}">
<link rel="stylesheet" nonce="${nonce}" href="${at(style)}">
${preload.map((name) => html`<link rel="modulepreload" nonce="${nonce}" href="${at(name)}">`)}
<script type="module" nonce="${nonce}" src="${at(script)}"></script></head>
<body><div id="console"></div><noscript>The console needs JavaScript. The API is described at <a href="${base}/docs">/docs</a>.</noscript></body></html>`;
  return htmlResponse(body, {
    nonce,
    policy: {
      "img-src": ["'self'", "data:", "blob:", ...storageOrigin(app)].join(" "),
      "connect-src": "'self'",
      // The player's page, with a policy of its own.
      "frame-src": "'self'",
      "require-trusted-types-for": "'script'",
      "trusted-types": "'none'",
    },
    headers: { vary: "Accept" },
  });
}

/** Where posters come from when storage delivers them. */
function storageOrigin(app: App): string[] {
  const origin = deliveryOf(app) === "proxy" ? null : app.objects?.addressOrigin;
  return origin ? [origin] : [];
}
