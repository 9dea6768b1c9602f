import { statfs } from "node:fs/promises";
import type { App } from "#app.ts";
import { cacheDir } from "#lib/executable";

/** What a server and its workers may write in an hour; below that, writes soon fail. */
const MIN_FILES = 10_000;
/** The executable extracts 60 MB there. */
const MIN_CACHE_BYTES = 100e6;

/** Checks free space and inodes of the data directory, and free space of the cache. Throws Error with all faults. */
export async function examineDisk({ config }: App): Promise<string> {
  const data = await statfs(config.data_dir);
  const faults: string[] = [];
  const free = data.bavail * data.bsize;
  if (free < config.min_free_bytes)
    faults.push(
      `only ${amountOf(free)} free, less than VODBOX_MIN_FREE_BYTES: uploads are refused; free some space or use a larger disk`,
    );
  // Some file systems do not count inodes.
  const countsFiles = data.files > 0;
  if (countsFiles && data.ffree < MIN_FILES)
    faults.push(`only ${data.ffree} free inodes; delete files or use another disk`);
  const cache = cacheDir();
  const { bavail, bsize } = await statfs(cache);
  if (bavail * bsize < MIN_CACHE_BYTES)
    faults.push(
      `only ${amountOf(bavail * bsize)} free in the cache directory ${cache}: the next version cannot be extracted; set VODBOX_CACHE_DIR`,
    );
  if (faults.length > 0) throw new Error(faults.join("; "));
  const files = countsFiles ? `, ${data.ffree} free inodes` : "";
  return `${amountOf(free)} free${files}; ${amountOf(bavail * bsize)} in the cache directory`;
}

const amountOf = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
