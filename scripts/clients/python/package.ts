import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { own, paths } from "#scripts/build/paths.ts";
import { releaseTime } from "#scripts/release/time.ts";
import { openApiDocument } from "../document.ts";
import type { Document } from "../schema.ts";
import { zip } from "../zip.ts";
import { pythonModules } from "./generate.ts";
import { coreMetadata } from "./metadata.ts";

type Files = Map<string, Buffer>;

const source = join(paths.root, "src/clients/python");
export const pythonPackageNames = {
  wheel: `vodbox-${own.version}-py3-none-any.whl`,
  sdist: `vodbox-${own.version}.tar.gz`,
};

/** Writes the Python client into `folder`: a wheel, and a source distribution with the generated modules. */
export async function writePythonPackages(folder: string): Promise<void> {
  const files = await sourceFiles();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, pythonPackageNames.wheel), wheel(files));
  writeFileSync(join(folder, pythonPackageNames.sdist), await sdist(files));
}

/** All files of the source distribution by path, in a fixed order. */
async function sourceFiles(): Promise<Files> {
  const names = globSync(["*.{toml,md}", "vodbox/{*.py,py.typed}"], { cwd: source });
  const files: Files = new Map(names.map((name) => [name, readFileSync(join(source, name))]));
  const document = (await openApiDocument()) as unknown as Document;
  for (const [name, text] of Object.entries(pythonModules(document, own.version)))
    files.set(`vodbox/${name}`, Buffer.from(text));
  const pyproject = String(files.get("pyproject.toml")).replace(/^version = .*$/m, `version = "${own.version}"`);
  files.set("pyproject.toml", Buffer.from(pyproject));
  files.set("LICENSE", readFileSync(join(paths.root, "LICENSE")));
  files.set("PKG-INFO", Buffer.from(coreMetadata(pyproject, String(files.get("README.md")))));
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Binary distribution format 1.0 (PEP 427). */
function wheel(files: Files): Buffer {
  const info = `vodbox-${own.version}.dist-info`;
  const tags = "Wheel-Version: 1.0\nGenerator: vodbox\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
  const content: [string, Buffer][] = [
    ...[...files].filter(([name]) => name.startsWith("vodbox/")),
    [`${info}/LICENSE`, files.get("LICENSE") as Buffer],
    [`${info}/METADATA`, files.get("PKG-INFO") as Buffer],
    [`${info}/WHEEL`, Buffer.from(tags)],
  ];
  const rows = content.map(([name, bytes]) => {
    const digest = createHash("sha256").update(bytes).digest("base64url");
    return `${name},sha256=${digest},${bytes.length}\n`;
  });
  const record = `${info}/RECORD`;
  return zip([...content, [record, Buffer.from(`${rows.join("")}${record},,\n`)]], releaseTime());
}

function sdist(files: Files): Promise<Buffer> {
  const tar = pack();
  for (const [name, bytes] of files)
    tar.entry({ name: `vodbox-${own.version}/${name}`, mtime: releaseTime(), mode: 0o644 }, bytes);
  tar.finalize();
  return buffer(tar).then((bytes) => gzipSync(bytes, { level: 9 }));
}
