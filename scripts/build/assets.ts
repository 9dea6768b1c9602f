import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import fastifyApiReference from "@scalar/fastify-api-reference";
import { build, type Plugin } from "esbuild";
import { generateClient } from "../clients/generate.ts";
import { writeGuide } from "../guide/write.ts";
import { compressed, writeCompressed } from "./compressed.ts";
import { bundleConsole } from "./console.ts";
import type { BuildKind } from "./kind.ts";
import { pageColors } from "./page-colors.ts";
import { installedVersion, nodeVersion, own, paths } from "./paths.ts";

/**
 * Fills build/client, and build/assets with everything but ffmpeg: fast enough to run before every test.
 * `console/files.json` is written last.
 */
export async function writeAssets(kind: BuildKind): Promise<void> {
  for (const folder of ["migrations", "web", "console", "docs", "guide", "parsing"])
    rmSync(join(paths.assets, folder), { recursive: true, force: true });
  mkdirSync(paths.assets, { recursive: true });
  copyMigrations();
  mkdirSync(join(paths.assets, "web"));
  writeFileSync(join(paths.assets, "web/colors.css"), pageColors());
  const versions = { version: own.version, node: nodeVersion, libsql: installedVersion("libsql") };
  writeFileSync(join(paths.assets, "build-info.json"), JSON.stringify(versions));
  // The console contains the client, with the operations of a server, which needs the migrations.
  await Promise.all([
    packDocumentation(kind),
    bundleBrowserCode(kind),
    bundleParserThread(),
    packGuide(kind),
    generateClient(),
  ]);
  await bundleConsole(kind);
}

function copyMigrations(): void {
  const from = join(paths.root, "storage/db/migrations");
  if (!existsSync(from)) return;
  cpSync(from, join(paths.assets, "migrations"), {
    recursive: true,
    filter: (path) => path === from || path.endsWith(".sql"),
  });
}

/**
 * Scalar's script for browsers, which its package for Fastify contains; the package of the script itself needs 290 MB of
 * others. Only compressed: of 4.9 MB a fifth remains, and all browsers accept brotli.
 */
async function packDocumentation(kind: BuildKind): Promise<void> {
  const routes: { url: string; handler: (request: unknown, reply: object) => string }[] = [];
  const register = fastifyApiReference as unknown as (server: object, options: object, done: () => void) => void;
  const server = { hasPlugin: () => false, route: (each: (typeof routes)[number]) => routes.push(each) };
  register(server, { routePrefix: "/docs", configuration: { url: "/openapi.json" } }, () => {});
  const reply = { header: () => reply, send: (body: string) => body };
  const script = routes.find(({ url }) => url.endsWith("/scalar.js"))?.handler({}, reply);
  if (!script) throw new Error("@scalar/fastify-api-reference has no route with the script");
  mkdirSync(join(paths.assets, "docs"), { recursive: true });
  writeFileSync(join(paths.assets, "docs/scalar.js.br"), await compressed(Buffer.from(script), kind));
}

/** Texts only compressed, like the reference; images as they are. */
async function packGuide(kind: BuildKind): Promise<void> {
  const folder = join(paths.assets, "guide");
  writeGuide(folder);
  const texts = readdirSync(folder).filter((name) => !/\.(webp|png)$/.test(name));
  for (const name of texts) {
    await writeCompressed(join(folder, name), kind);
    rmSync(join(folder, name));
  }
}

const ownScript = join(paths.root, "src/web/client/parts/own-script.ts");

/**
 * media-chrome writes its style elements as text without a nonce, and a page with a strict policy would block them: the
 * player passes on the nonce of its own script. Without their indentation, and with
 * minified styles, the compressed script is 1 kB smaller.
 */
const mediaChromeTemplates: Plugin = {
  name: "media-chrome-templates",
  setup(builder) {
    builder.onLoad({ filter: /node_modules\/media-chrome\/dist\/.*\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      // All of them are in template strings.
      const text = source
        .replaceAll(/\n\s+/g, "\n")
        .replaceAll(/<style[\s\S]*?<\/style>/g, minifiedStyle)
        .replaceAll("<style", `<style\${styleNonce}`);
      const contents = source.includes("<style")
        ? `import { styleNonce } from ${JSON.stringify(ownScript)};\n${text}`
        : text;
      return { contents, loader: "js" };
    });
  },
};

const minifiedStyle = (css: string) =>
  css
    .replaceAll(/([;{},])\n+/g, "$1")
    .replaceAll(/;?\n?}/g, "}")
    .replaceAll(": ", ":")
    .replaceAll(" {", "{");

/** Each file directly in src/web/client is a script, bundled with all its imports, including hls.js. */
export async function bundleBrowserCode(kind: BuildKind): Promise<void> {
  const folder = join(paths.root, "src/web/client");
  if (!existsSync(folder)) return;
  const entries = readdirSync(folder).filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
  await build({
    entryPoints: Object.fromEntries(entries.map((name) => [basename(name, ".ts"), join(folder, name)])),
    outdir: join(paths.assets, "web"),
    bundle: true,
    platform: "browser",
    // A classic script: it works with and without type="module", and adds nothing to the page's global scope.
    format: "iife",
    // The oldest that have what the player calls, such as findLast.
    target: ["chrome97", "firefox104", "safari15.4"],
    minify: true,
    plugins: [mediaChromeTemplates],
    logLevel: "warning",
  });
  const scripts = entries.map((name) => join(paths.assets, "web", `${basename(name, ".ts")}.js`));
  await Promise.all(scripts.map((path) => writeCompressed(path, kind)));
}

/** The code of a parser thread in the executable, where it cannot import files (src/platform/parsing/start-thread.ts). */
async function bundleParserThread(): Promise<void> {
  await build({
    entryPoints: [join(paths.root, "src/platform/parsing/thread.ts")],
    outfile: join(paths.assets, "parsing/thread.js"),
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    minify: true,
    // Messages contain class names.
    keepNames: true,
    legalComments: "none",
    logLevel: "warning",
  });
}
