import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { buildCache } from "./cache.ts";
import type { BuildKind } from "./kind.ts";

/** Brotli's quality with a twentieth of the time of the best one, and a tenth more bytes. */
const FAST_QUALITY = 5;

/**
 * The brotli of a text: the smallest for a release. That takes seconds for a large script, once: the result stays in the
 * cache, and other builds use it when it is there.
 */
export async function compressed(text: Buffer, kind: BuildKind): Promise<Buffer> {
  const path = join(buildCache, "dense", `${createHash("sha256").update(text).digest("hex")}.br`);
  if (existsSync(path)) return readFile(path);
  const bytes = await promisify(brotliCompress)(text, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: kind === "release" ? constants.BROTLI_MAX_QUALITY : FAST_QUALITY,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
    },
  });
  if (kind !== "release") return bytes;
  mkdirSync(join(buildCache, "dense"), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, bytes);
  renameSync(`${path}.${process.pid}`, path);
  return bytes;
}

/** Writes `<path>.br`: the server does not compress files of the executable with brotli. */
export async function writeCompressed(path: string, kind: BuildKind): Promise<void> {
  await writeFile(`${path}.br`, await compressed(await readFile(path), kind));
}
