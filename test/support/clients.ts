import { execFileSync } from "node:child_process";
import { existsSync, globSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withLock } from "#scripts/build/cache.ts";
import { own, paths } from "#scripts/build/paths.ts";
import { packClients } from "#scripts/clients/pack.ts";
import { newFolder } from "./folder.ts";

const SOURCES = ["src/**", "scripts/clients/**", "package.json", "tsconfig*.json"];
const out = join(paths.root, "dist");

export type ClientPackage = "client" | "react" | "vue";

/** Path of a packed client package, which is written when it is missing or older than its sources. */
export async function clientPackage(name: ClientPackage): Promise<string> {
  const file = join(out, `vodbox-${name}-${own.version}.tgz`);
  await withLock(join(paths.root, "build/clients.lock"), async () => {
    const packedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    const changed = globSync(SOURCES, { cwd: paths.root }).map((path) => statSync(join(paths.root, path)).mtimeMs);
    if (changed.every((time) => time <= packedAt)) return;
    await packClients(out);
  });
  if (!existsSync(file)) throw new Error(`There is no ${file}.`);
  return file;
}

/** A new directory in which the packages are installed as a user would, without a registry. The caller deletes it. */
export async function installedClients(...names: ClientPackage[]): Promise<string> {
  const folder = newFolder();
  writeFileSync(join(folder, "package.json"), '{"name": "user", "private": true, "type": "module"}');
  const files: string[] = [];
  for (const name of names) files.push(await clientPackage(name));
  const options = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--silent"];
  execFileSync("npm", ["install", ...options, ...files], { cwd: folder });
  return folder;
}

/** The installed client, as `import "@vodbox/client"` finds it in Node.js. Its types are tested by test/clients/types. */
export async function importClient(folder: string): Promise<any> {
  const entry = join(folder, "entry.js");
  writeFileSync(entry, 'export * from "@vodbox/client";\n');
  return import(/* @vite-ignore */ pathToFileURL(entry).href);
}
