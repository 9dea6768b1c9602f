import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { withLock } from "../build/cache.ts";
import { own, paths } from "../build/paths.ts";
import { run } from "../build/run.ts";
import { noticesOf, shippedPackages } from "../licences.ts";

const SOURCE = "src/clients/commands";

/** Modules that others take the place of, with what these export. */
const REPLACED: Record<string, { by: string; names: string[] }> = {
  "storage/db/lock.ts": {
    by: "cli/client/lock.ts",
    names: ["DataDirInUse", "acquireDataLock", "isLocked", "holderOf"],
  },
  "cli/version.ts": { by: "cli/client/version.ts", names: ["printVersion"] },
};

const EXECUTABLE = "Use the executable of vodbox, which runs on Linux.";
const client = "this package has the commands of clients: push, import, mcp, health, and admin of a server elsewhere";
const SERVER_ONLY = `throw new UserError(${JSON.stringify(`A server and what belongs to it do not run here: ${client}. ${EXECUTABLE}`)})`;
const LOCAL_ONLY =
  'throw new UserError("This package opens no data directory: name a server with --server or VODBOX_SERVER.")';
const FFMPEG = "needs ffmpeg, which this package does not contain";

/** Modules whose functions fail instead, and what they throw. They would bring in the database, ffmpeg, or the server. */
const REFUSING: Record<string, string> = {
  "cli/serve.ts": SERVER_ONLY,
  "cli/worker.ts": SERVER_ONLY,
  "cli/live-ingest.ts": SERVER_ONLY,
  "cli/recognize.ts": SERVER_ONLY,
  "cli/captions.ts": SERVER_ONLY,
  "cli/demo/demo.ts": SERVER_ONLY,
  "src/open.ts": LOCAL_ONLY,
  "src/log.ts": LOCAL_ONLY,
  "src/platform/config/lost-database.ts": LOCAL_ONLY,
  "storage/db/open.ts": LOCAL_ONLY,
  "cli/admin/backup.ts": LOCAL_ONLY,
  "cli/admin/replica.ts": LOCAL_ONLY,
  "src/features/operations/doctor/offline.ts": LOCAL_ONLY,
  "storage/db/integrity.ts": LOCAL_ONLY,
  "cli/push/encoder.ts": `throw new UserError("--encode ${FFMPEG}. ${EXECUTABLE}")`,
  "cli/push/push-encoded.ts": `throw new UserError("--encode ${FFMPEG}. ${EXECUTABLE}")`,
  // One video of an import; others continue.
  "src/media/ffmpeg.ts": `throw new ItemError("its stream has separate audio, and ${FFMPEG}")`,
  "src/lib/executable/binaries.ts": `throw new ItemError("its stream has separate audio, and ${FFMPEG}")`,
};

const EXPORTED = /^export (?:async )?(?:function\*?|const|class) (\w+)/gm;

const clientModules: Plugin = {
  name: "client-modules",
  setup(builder) {
    const at = (path: string) => relative(paths.root, path).replaceAll("\\", "/");
    builder.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const replaced = REPLACED[at(path)];
      if (replaced) {
        const contents = `export { ${replaced.names} } from ${JSON.stringify(join(paths.root, replaced.by))};`;
        return { contents, loader: "ts", resolveDir: paths.root };
      }
      const refusal = REFUSING[at(path)];
      if (!refusal) return undefined;
      const names = [...readFileSync(path, "utf8").matchAll(EXPORTED)].map(([, name]) => name);
      const contents = [
        'import { UserError } from "#lib/base";',
        `import { ItemError } from ${JSON.stringify(join(paths.root, "cli/import/item-error.ts"))};`,
        ...names.map((name) => `export function ${name}() { ${refusal}; }`),
      ].join("\n");
      return { contents, loader: "ts", resolveDir: paths.root };
    });
    // A native library has no place in a package for every system.
    builder.onResolve({ filter: /^(libsql|@libsql\/|@fugood\/)/ }, ({ path, importer }) => ({
      errors: [{ text: `${at(importer)} imports ${path}: add a module to scripts/clients/commands.ts` }],
    }));
  },
};

/** Writes the commands of clients as one file, and returns what it was made from. */
async function bundleCommands(outfile: string): Promise<Metafile> {
  const { metafile } = await build({
    entryPoints: [join(paths.root, "cli/client/main.ts")],
    outfile,
    absWorkingDir: paths.root,
    bundle: true,
    metafile: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    supported: { "dynamic-import": false },
    minifySyntax: true,
    minifyWhitespace: true,
    // src/lib/executable/embedded.ts finds its files from its own place in the sources.
    banner: {
      js: `#!/usr/bin/env node\nconst __vodbox_url = require("node:url").pathToFileURL(__dirname + "/src/lib/executable/embedded.ts").href;`,
    },
    define: { "import.meta.url": "__vodbox_url", "process.env.NODE_ENV": '"production"' },
    legalComments: "none",
    plugins: [clientModules],
    logLevel: "warning",
  });
  return metafile;
}

/** Writes `vodbox-<version>.tgz` to `out`, the npm package of the commands; returns its path. */
export const packCommands = (out: string): Promise<string> =>
  withLock(join(paths.root, "build/clients/commands.lock"), async () => {
    const work = join(paths.root, "build/clients/commands");
    rmSync(work, { recursive: true, force: true });
    mkdirSync(join(work, "build/assets"), { recursive: true });
    mkdirSync(out, { recursive: true });
    const metafile = await bundleCommands(join(work, "vodbox.cjs"));
    const inputs = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
    const packages = shippedPackages().filter(({ folder }) =>
      inputs.some((input) => input.startsWith(`${relative(paths.root, folder)}/`)),
    );
    writeFileSync(join(work, "NOTICES.txt"), noticesOf(packages));
    writeFileSync(join(work, "build/assets/build-info.json"), JSON.stringify({ version: own.version }));
    const manifest = JSON.parse(readFileSync(join(paths.root, SOURCE, "package.json"), "utf8"));
    writeFileSync(join(work, "package.json"), `${JSON.stringify({ ...manifest, version: own.version }, null, 2)}\n`);
    cpSync(join(paths.root, SOURCE, "README.md"), join(work, "README.md"));
    cpSync(join(paths.root, "LICENSE"), join(work, "LICENSE"));
    await run("npm", ["pack", work, "--silent", "--ignore-scripts", "--pack-destination", out]);
    const packed = join(out, commandsPackage);
    if (!existsSync(packed)) throw new Error(`npm pack did not write ${packed}.`);
    return packed;
  });

export const commandsPackage = `vodbox-${own.version}.tgz`;
