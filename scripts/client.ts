import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenAPI3 } from "openapi-typescript";
import pino from "pino";
import { loadConfig } from "../src/config/load.ts";
import { openApp } from "../src/open.ts";
import { paths } from "./build/paths.ts";

/**
 * `node scripts/client.ts` writes the types of a TypeScript client, generated from the OpenAPI document alone, as any
 * user would have them. The tests that use it do not compile when the document says something else than they do.
 */
const target = join(paths.root, "build/client/api.d.ts");

// The generator prints with the compiler's old programming interface, which TypeScript 7 has no more.
registerHooks({
  resolve: (specifier, context, next) => next(specifier === "typescript" ? "typescript-5" : specifier, context),
});

async function documentOf(): Promise<OpenAPI3> {
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

const { default: openapiTS, astToString } = await import("openapi-typescript");
const types = astToString(await openapiTS(await documentOf()));
mkdirSync(join(paths.root, "build/client"), { recursive: true });
writeFileSync(target, types);
