import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenAPI3 } from "openapi-typescript";
import pino from "pino";
import { loadConfig } from "#platform/config/load.ts";
import { openApp } from "#src/open.ts";

/** The OpenAPI document, as a server with an empty data directory returns it. */
export async function openApiDocument(): Promise<OpenAPI3> {
  const dataDir = mkdtempSync(join(tmpdir(), "vodbox-client-"));
  try {
    const config = loadConfig({ flags: { data_dir: dataDir, port: 0 }, env: {} });
    const opened = await openApp(config, { log: pino({ level: "silent" }) });
    const answer = await opened.server.fetch(new Request("http://127.0.0.1/api/v1/openapi.json"));
    const document = (await answer.json()) as OpenAPI3;
    await opened.close();
    return document;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
