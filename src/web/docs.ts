import type { openApi } from "../http/openapi.ts";
import type { Route } from "../http/route.ts";
import { route } from "../http/route.ts";
import { embeddedFile } from "./embedded-file.ts";

const DOCUMENT = "/api/v1/openapi.json";
const FILES: Record<string, string> = {
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "swagger-ui.css": "text/css; charset=utf-8",
};

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>vodbox API</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="docs"></div><script src="docs/swagger-ui-bundle.js"></script><script src="docs/start.js"></script></body></html>`;
const START = `SwaggerUIBundle({ url: "api/v1/openapi.json", dom_id: "#docs", deepLinking: true, validatorUrl: null });`;

const text = (body: string, type: string) =>
  new Response(body, {
    headers: {
      "content-type": `${type}; charset=utf-8`,
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
    },
  });

/** The OpenAPI document, read off the table of routes, and the page that shows it; offline like all else. */
export function documentRoutes(api: readonly Route[]): Route[] {
  let document: ReturnType<typeof openApi> | undefined;
  const open = { method: "GET", credential: "none", tag: "Documents", hidden: true, responses: { 200: null } } as const;
  return [
    route({
      ...open,
      path: DOCUMENT,
      summary: "Get this API as an OpenAPI 3.0.3 document",
      async handle({ app }) {
        document ??= import("../http/openapi.ts").then(({ openApi }) => openApi(api));
        return { ...(await document), servers: [{ url: app.baseUrl() }] };
      },
    }),
    route({ ...open, path: "/docs", summary: "This interface for people", handle: () => text(PAGE, "text/html") }),
    route({
      ...open,
      path: "/docs/start.js",
      summary: "Get the script of the reference page",
      handle: () => text(START, "text/javascript"),
    }),
    ...Object.entries(FILES).map(([name, type]) =>
      route({
        ...open,
        path: `/docs/${name}`,
        summary: "Get an asset of the reference page",
        handle: ({ headers }) => embeddedFile(`docs/${name}`, { type, cacheControl: "public, max-age=3600", headers }),
      }),
    ),
  ];
}
