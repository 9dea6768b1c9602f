import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { loadConfig } from "#platform/config/load.ts";
import type { Route } from "#platform/http/route.ts";
import { openApp } from "#src/open.ts";

/** A route, and a valid body for it from the OpenAPI document. */
export type FuzzRoute = { route: Route; example: unknown };

/** They would end the run, because they change what the other requests depend on. */
const LEFT_OUT: readonly ((route: Route) => boolean)[] = [
  ({ path }) => path.endsWith("/rotate"),
  ({ path }) => path.endsWith("/device_tokens/current"),
];

/** All routes of this program, derived from its route table. */
export async function routeTable(): Promise<FuzzRoute[]> {
  const folder = mkdtempSync(join(tmpdir(), "vodbox-fuzz-"));
  const config = loadConfig({ flags: { data_dir: folder, port: 0, min_free_bytes: 0 }, env: {} });
  const opened = await openApp(config, { log: pino({ level: "silent" }) });
  try {
    const answer = await opened.server.fetch(new Request("http://localhost/api/v1/openapi.json"));
    const document = (await answer.json()) as {
      paths: Record<string, Record<string, { requestBody?: { content?: Record<string, { example?: unknown }> } }>>;
    };
    return opened.routes
      .filter((route) => !LEFT_OUT.some((is) => is(route)))
      .map((route) => {
        const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
        const content = document.paths[path]?.[route.method.toLowerCase()]?.requestBody?.content ?? {};
        return { route, example: (content["application/json"] ?? content["multipart/form-data"])?.example };
      });
  } finally {
    opened.beginStop();
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
