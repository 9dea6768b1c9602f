import { readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";
import { writeCompressed } from "./compressed.ts";
import type { BuildKind } from "./kind.ts";
import { paths } from "./paths.ts";

/**
 * The console's scripts and styles, with a hash of their content in their names, and `files.json`, which names those that
 * the first page needs.
 */
export async function bundleConsole(kind: BuildKind): Promise<void> {
  const outdir = join(paths.assets, "console");
  const { metafile } = await build({
    entryPoints: [join(paths.root, "src/web/console/main.tsx")],
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    // The first versions with light-dark(), of 2023 and 2024.
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    define: { IS_DEVELOPMENT: String(kind !== "release") },
    metafile: true,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    legalComments: "none",
    logLevel: "warning",
  });
  const nameOf = (output: string) => relative(outdir, join(paths.root, output));
  const [main] = Object.entries(metafile.outputs).filter(([, { entryPoint }]) => entryPoint?.endsWith("main.tsx"));
  if (!main) throw new Error("The console has no entry point.");
  const [output, { imports, cssBundle }] = main;
  const preload = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => nameOf(path));
  const files = { script: nameOf(output), style: nameOf(cssBundle as string), preload };
  writeFileSync(join(outdir, "files.json"), JSON.stringify(files));
  const texts = readdirSync(outdir).filter((name) => /\.(js|css)$/.test(name));
  await Promise.all(texts.map(async (name) => writeCompressed(join(outdir, name), kind)));
}
