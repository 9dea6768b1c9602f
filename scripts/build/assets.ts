import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { installedVersion, nodeVersion, own, paths } from "./paths.ts";

/** Fills build/assets with everything but ffmpeg: quick enough to be run before every test. */
export async function writeAssets(): Promise<void> {
  for (const folder of ["migrations", "web", "docs", "parsing"])
    rmSync(join(paths.assets, folder), { recursive: true, force: true });
  mkdirSync(paths.assets, { recursive: true });
  copyMigrations();
  copyDocumentation();
  await bundleBrowserCode();
  await bundleParserThread();
  const versions = { version: own.version, node: nodeVersion, libsql: installedVersion("libsql") };
  writeFileSync(join(paths.assets, "build-info.json"), JSON.stringify(versions));
}

function copyMigrations(): void {
  const from = join(paths.root, "storage/db/migrations");
  if (!existsSync(from)) return;
  cpSync(from, join(paths.assets, "migrations"), {
    recursive: true,
    filter: (path) => path === from || path.endsWith(".sql"),
  });
}

function copyDocumentation(): void {
  for (const name of ["swagger-ui-bundle.js", "swagger-ui.css"]) {
    cpSync(join(paths.modules, "swagger-ui-dist", name), join(paths.assets, "docs", name));
  }
}

const ownScript = join(paths.root, "src/web/client/parts/own-script.ts");

/**
 * media-chrome writes its style elements as text without a nonce, and a page with a strict policy would show them not:
 * the player passes on the nonce of its own script.
 */
const stylesWithNonce: Plugin = {
  name: "styles-with-nonce",
  setup(builder) {
    builder.onLoad({ filter: /node_modules\/media-chrome\/dist\/.*\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      // All of them stand in template strings.
      const text = source.replaceAll("<style", `<style\${styleNonce}`);
      const contents = text === source ? source : `import { styleNonce } from ${JSON.stringify(ownScript)};\n${text}`;
      return { contents, loader: "js" };
    });
  },
};

/** A second's work, so not for a server. */
const densest = (text: Buffer) =>
  promisify(brotliCompress)(text, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
    },
  });

/** Each file directly in src/web/client is a script of its own, with all it imports, hls.js too. */
async function bundleBrowserCode(): Promise<void> {
  const folder = join(paths.root, "src/web/client");
  if (!existsSync(folder)) return;
  const entries = readdirSync(folder).filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
  await build({
    entryPoints: Object.fromEntries(entries.map((name) => [basename(name, ".ts"), join(folder, name)])),
    outdir: join(paths.assets, "web"),
    bundle: true,
    platform: "browser",
    // A classic script: it works with and without type="module", and leaves nothing in the page's global scope.
    format: "iife",
    target: "es2020",
    minify: true,
    plugins: [stylesWithNonce],
    logLevel: "warning",
  });
  const scripts = entries.map((name) => join(paths.assets, "web", `${basename(name, ".ts")}.js`));
  await Promise.all(scripts.map(async (path) => writeFileSync(`${path}.br`, await densest(await readFile(path)))));
}

/** What a parser thread runs inside the executable, where it cannot import files (src/parsing/start-thread.ts). */
async function bundleParserThread(): Promise<void> {
  await build({
    entryPoints: [join(paths.root, "src/parsing/thread.ts")],
    outfile: join(paths.assets, "parsing/thread.js"),
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    minify: true,
    // Messages name classes.
    keepNames: true,
    legalComments: "none",
    logLevel: "warning",
  });
}
