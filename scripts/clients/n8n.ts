import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { own, paths } from "../build/paths.ts";
import { run } from "../build/run.ts";

export const n8nPackageName = `n8n-nodes-vodbox-${own.version}.tgz`;

/** Writes the npm package with the nodes for n8n into `folder`. */
export async function packN8n(folder: string): Promise<void> {
  const work = join(paths.root, "build/clients/n8n");
  rmSync(work, { recursive: true, force: true });
  cpSync(join(paths.root, "deploy/integrations/n8n"), work, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(work, "package.json"), "utf8"));
  writeFileSync(join(work, "package.json"), `${JSON.stringify({ ...manifest, version: own.version }, null, 2)}\n`);
  cpSync(join(paths.root, "LICENSE"), join(work, "LICENSE"));
  mkdirSync(folder, { recursive: true });
  await run("npm", ["pack", work, "--silent", "--ignore-scripts", "--pack-destination", folder]);
}
