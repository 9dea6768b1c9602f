import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { buildCache } from "./cache.ts";

/** The smallest brotli of a text. It takes seconds for a large script, once: the result stays in the cache. */
export async function densest(text: Buffer): Promise<Buffer> {
  const path = join(buildCache, "dense", `${createHash("sha256").update(text).digest("hex")}.br`);
  if (existsSync(path)) return readFile(path);
  const bytes = await promisify(brotliCompress)(text, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
    },
  });
  mkdirSync(join(buildCache, "dense"), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, bytes);
  renameSync(`${path}.${process.pid}`, path);
  return bytes;
}

/** Writes `<path>.br`: the server does not compress files of the executable as densely. */
export async function writeDense(path: string): Promise<void> {
  await writeFile(`${path}.br`, await densest(await readFile(path)));
}
