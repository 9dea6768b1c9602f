import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { own, paths } from "#scripts/build/paths.ts";
import { releaseTime } from "#scripts/release/time.ts";
import { openApiDocument } from "../document.ts";
import type { Document } from "../schema.ts";
import { zip } from "../zip.ts";
import { operationsFile } from "./operations.ts";

const source = join(paths.root, "src/clients/go");
export const goPackageName = `vodbox-go-${own.version}.zip`;

/** Writes the Go client into `folder`: the files of its module. */
export async function writeGoPackage(folder: string): Promise<void> {
  const names = globSync(["*.{go,mod,md}"], { cwd: source });
  const files = new Map(names.map((name) => [name, readFileSync(join(source, name))]));
  files.set("operations.go", Buffer.from(operationsFile((await openApiDocument()) as unknown as Document)));
  const client = String(files.get("client.go")).replace('Version = "0"', `Version = "${own.version}"`);
  files.set("client.go", Buffer.from(client));
  files.set("LICENSE", readFileSync(join(paths.root, "LICENSE")));
  mkdirSync(folder, { recursive: true });
  const ordered = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(join(folder, goPackageName), zip(ordered, releaseTime()));
}
