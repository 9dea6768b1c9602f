import type { App } from "#app.ts";
import { pacer } from "#lib/base";
import type { Route } from "#platform/http/route.ts";
import { route } from "#platform/http/route.ts";
import { embeddedFile, versionOf } from "./embedded-file.ts";
import { html } from "./html.ts";
import { htmlResponse, newNonce } from "./html-response.ts";
import { brotliOf, type StaticBytes, serveStatic, staticBytes } from "./static-bytes.ts";

const DOCUMENT = "/api/v1/openapi.json";
/** Paths of the page's scripts, in the order in which the page runs them, and their embedded files. */
const SCRIPTS = { "docs/start.js": "web/docs.js", "docs/scalar.js": "docs/scalar.js" } as const;

const POLICY = {
  // Scalar's templates position menus and size icons with style attributes, which have no nonce.
  "style-src-attr": "'unsafe-inline'",
  "img-src": "'self' data:",
  "connect-src": "'self'",
};

/** All URLs are relative, so that the page works below the path of a proxy. */
function page(): Response {
  const nonce = newNonce();
  const scripts = Object.entries(SCRIPTS).map(
    ([path, file]) => html`<script nonce="${nonce}" src="${path}?v=${versionOf(file)}" defer></script>`,
  );
  const body = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>vodbox API</title><link rel="icon" href="data:,"><meta name="color-scheme" content="light dark">
<meta property="csp-nonce" content="${nonce}" nonce="${nonce}">${scripts}</head>
<body><div id="docs"></div><noscript><h1>vodbox API</h1>
<p>This page needs JavaScript. The same reference, as an OpenAPI document: <a href="${DOCUMENT.slice(1)}">${DOCUMENT}</a>.</p></noscript></body></html>`;
  return htmlResponse(body, { nonce, policy: POLICY });
}

/** JSON of an object with large properties of properties. Serialized in parts, because it takes long as a whole. */
async function serialized(object: Record<string, unknown>): Promise<string> {
  const pace = pacer();
  const members: string[] = [];
  for (const [name, value] of Object.entries(object)) {
    await pace();
    const isLarge = name === "paths" || name === "components" || name === "schemas";
    const text = isLarge ? await serialized(value as Record<string, unknown>) : JSON.stringify(value);
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(",")}}`;
}

async function writeDocument(app: App, api: readonly Route[]): Promise<StaticBytes> {
  const { openApi } = await import("#platform/http/openapi.ts");
  const text = await serialized({ ...(await openApi(api)), servers: [{ url: app.baseUrl() }] });
  const bytes = new TextEncoder().encode(text);
  return staticBytes(
    bytes,
    async () => bytes,
    () => brotliOf(bytes),
  );
}

/** The OpenAPI document, derived from the route table, and the page that shows it, which works offline. */
export function documentRoutes(api: readonly Route[]): Route[] {
  let document: Promise<StaticBytes> | undefined;
  const open = { method: "GET", credential: "none", tag: "Documents", hidden: true, responses: { 200: null } } as const;
  return [
    route({
      ...open,
      path: DOCUMENT,
      summary: "Get this API as an OpenAPI 3.0.3 document",
      async handle(context) {
        document ??= writeDocument(context.app, api).catch((error) => {
          document = undefined;
          throw error;
        });
        const about = { type: "application/json; charset=utf-8", cacheControl: "public, no-cache" };
        return serveStatic(await document, context, about);
      },
    }),
    route({ ...open, path: "/docs", summary: "API reference", handle: page }),
    ...Object.entries(SCRIPTS).map(([path, file]) =>
      route({
        ...open,
        path: `/${path}`,
        summary: "Get a script of the reference page",
        handle(context) {
          // A page of another version must not keep this one's script.
          const isCurrent = context.url.searchParams.get("v") === versionOf(file);
          const cacheControl = isCurrent ? "public, max-age=31536000, immutable" : "public, no-cache";
          return embeddedFile(context, file, { type: "text/javascript; charset=utf-8", cacheControl });
        },
      }),
    ),
  ];
}
