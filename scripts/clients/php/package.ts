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

/** Writes the PHP client into `folder`, in the form that Composer's repository of the type `artifact` reads. */
export async function writePhpPackage(folder: string): Promise<void> {
  const names = globSync(["*.{json,md}", "src/*.php"], { cwd: source });
  const files = new Map(names.map((name) => [name, readFileSync(join(source, name))]));
  const document = (await openApiDocument()) as unknown as Document;
  files.set("src/Operations.php", Buffer.from(operationsFile(document)));
  const manifest = JSON.parse(String(files.get("composer.json")));
  files.set("composer.json", Buffer.from(`${JSON.stringify({ ...manifest, version: own.version }, null, 4)}\n`));
  const client = String(files.get("src/Client.php")).replace("VERSION = '0'", `VERSION = '${own.version}'`);
  files.set("src/Client.php", Buffer.from(client));
  files.set("LICENSE", readFileSync(join(paths.root, "LICENSE")));
  mkdirSync(folder, { recursive: true });
  const ordered = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(join(folder, phpPackageName), zip(ordered, releaseTime()));
}
