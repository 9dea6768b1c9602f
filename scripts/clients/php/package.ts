import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { own, paths } from "#scripts/build/paths.ts";
import { releaseTime } from "#scripts/release/time.ts";
import { openApiDocument } from "../document.ts";
import type { Document } from "../schema.ts";
import { zip } from "../zip.ts";
import { operationsFile } from "./operations.ts";

const source = join(paths.root, "src/clients/php");
export const phpPackageName = `vodbox-php-${own.version}.zip`;
export const wordPressPluginName = `vodbox-wordpress-${own.version}.zip`;

/** Writes the PHP client into `folder`, in the form that Composer's repository of the type `artifact` reads. */
export async function writePhpPackage(folder: string): Promise<void> {
  write(folder, phpPackageName, await phpFiles());
}

/** Writes the plugin for WordPress, which contains the client, into `folder`, in the form that WordPress installs. */
export async function writeWordPressPlugin(folder: string): Promise<void> {
  const plugin = join(paths.root, "deploy/integrations/wordpress");
  const names = globSync("vodbox/*.*", { cwd: plugin });
  const files = new Map<string, Buffer>(names.map((name) => [name, readFileSync(join(plugin, name))]));
  const main = String(files.get("vodbox/vodbox.php")).replace(/^( \* Version: ).*$/m, `$1${own.version}`);
  files.set("vodbox/vodbox.php", Buffer.from(main));
  for (const [name, content] of await phpFiles())
    if (name.startsWith("src/") || name === "LICENSE") files.set(`vodbox/client/${name}`, content);
  write(folder, wordPressPluginName, files);
}

function write(folder: string, name: string, files: Map<string, Buffer>): void {
  mkdirSync(folder, { recursive: true });
  const ordered = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(join(folder, name), zip(ordered, releaseTime()));
}

/** The files of the PHP client by path. */
async function phpFiles(): Promise<Map<string, Buffer>> {
  const names = globSync(["*.{json,md}", "src/*.php"], { cwd: source });
  const files = new Map<string, Buffer>(names.map((name) => [name, readFileSync(join(source, name))]));
  const document = (await openApiDocument()) as unknown as Document;
  files.set("src/Operations.php", Buffer.from(operationsFile(document)));
  const manifest = JSON.parse(String(files.get("composer.json")));
  files.set("composer.json", Buffer.from(`${JSON.stringify({ ...manifest, version: own.version }, null, 4)}\n`));
  const client = String(files.get("src/Client.php")).replace("VERSION = '0'", `VERSION = '${own.version}'`);
  files.set("src/Client.php", Buffer.from(client));
  files.set("LICENSE", readFileSync(join(paths.root, "LICENSE")));
  return files;
}
