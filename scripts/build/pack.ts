import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { constants, zstdCompress } from "node:zlib";
import type { PackedFile } from "../../src/lib/extract.ts";
import { buildCache } from "./cache.ts";

/** zstd 19 reduces 25 MB to 8.6 MB, in ten seconds and once: the result stays in the cache. */
const level = 19;

/** Compresses `files` (name -> path) for src/lib/extract.ts; returns the assets, including the index. */
export async function pack(files: Record<string, string>, folder: string): Promise<Record<string, string>> {
  const index: Record<string, PackedFile> = {};
  const assets: Record<string, string> = {};
  await Promise.all(
    Object.entries(files).map(async ([name, path]) => {
      const content = readFileSync(path);
      const sha256 = createHash("sha256").update(content).digest("hex");
      index[name] = { sha256, bytes: content.length };
      assets[`packed/${name}.zst`] = await compressed(content, sha256);
    }),
  );
  const indexPath = join(folder, "packed-index.json");
  writeFileSync(indexPath, JSON.stringify(index));
  return { ...assets, "packed/index.json": indexPath };
}

async function compressed(content: Buffer, sha256: string): Promise<string> {
  const path = join(buildCache, "packed", `${sha256}-${level}.zst`);
  if (existsSync(path)) return path;
  const bytes = await promisify(zstdCompress)(content, { params: { [constants.ZSTD_c_compressionLevel]: level } });
  mkdirSync(join(buildCache, "packed"), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, bytes);
  renameSync(`${path}.${process.pid}`, path);
  return path;
}
