import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { constants, zstdCompress } from "node:zlib";
import { type PackedFile, packedAsset } from "#lib/executable";
import { buildCache } from "./cache.ts";
import type { BuildKind } from "./kind.ts";

/** The levels of zstd. 19 reduces 41 MB to 9.7 MB in 20 seconds, 9 to 11.1 MB in one; either once, because results stay in the cache. */
const LEVELS = { dense: 19, fast: 9 };

/**
 * Compresses `files` (name -> path) for src/lib/executable/extract.ts; returns the assets, including the index. Files with the same
 * content, such as two names of one program, share an asset.
 */
export async function pack(
  files: Record<string, string>,
  folder: string,
  kind: BuildKind,
): Promise<Record<string, string>> {
  const index: Record<string, PackedFile> = {};
  const assets: Record<string, string> = {};
  const contents = new Map<string, Buffer>();
  for (const [name, path] of Object.entries(files)) {
    const content = readFileSync(path);
    const sha256 = createHash("sha256").update(content).digest("hex");
    index[name] = { sha256, bytes: content.length };
    contents.set(sha256, content);
  }
  await Promise.all(
    [...contents].map(async ([sha256, content]) => {
      assets[packedAsset(sha256)] = await compressed(content, sha256, kind);
    }),
  );
  const indexPath = join(folder, "packed-index.json");
  writeFileSync(indexPath, JSON.stringify(index));
  return { ...assets, "packed/index.json": indexPath };
}

async function compressed(content: Buffer, sha256: string, kind: BuildKind): Promise<string> {
  const pathOf = (level: number) => join(buildCache, "packed", `${sha256}-${level}.zst`);
  if (existsSync(pathOf(LEVELS.dense))) return pathOf(LEVELS.dense);
  const level = kind === "release" ? LEVELS.dense : LEVELS.fast;
  const path = pathOf(level);
  if (existsSync(path)) return path;
  const bytes = await promisify(zstdCompress)(content, { params: { [constants.ZSTD_c_compressionLevel]: level } });
  mkdirSync(join(buildCache, "packed"), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, bytes);
  renameSync(`${path}.${process.pid}`, path);
  return path;
}
