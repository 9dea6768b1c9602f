import { existsSync } from "node:fs";
import { join } from "node:path";
import { writeAssets } from "./build/assets.ts";
import { paths } from "./build/paths.ts";
import { step } from "./build/report.ts";
import { packCommands } from "./clients/commands.ts";
import { writeGoPackage } from "./clients/go/package.ts";
import { packN8n } from "./clients/n8n.ts";
import { packClients } from "./clients/pack.ts";
import { writePhpPackage, writeWordPressPlugin } from "./clients/php/package.ts";
import { writePythonPackages } from "./clients/python/package.ts";

/** `npm run clients` writes the packages of the clients to dist/. */
// The server, which returns the OpenAPI document, needs the migrations.
if (!existsSync(join(paths.assets, "build-info.json"))) await step("assets", () => writeAssets("development"));
const out = join(paths.root, "dist");
await step("npm packages", () => packClients(out));
await step("commands", () => packCommands(out));
await step("Python client", () => writePythonPackages(out));
await step("PHP client", () => writePhpPackage(out));
await step("WordPress plugin", () => writeWordPressPlugin(out));
await step("n8n nodes", () => packN8n(out));
await step("Go client", () => writeGoPackage(out));
