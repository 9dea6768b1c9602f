import { statfs } from "node:fs/promises";
import type { App } from "../../../app.ts";
import { cacheDir } from "../../../lib/cache-dir.ts";

/** What a server and its workers make in an hour; below that new files soon fail while there is space. */
const MIN_FILES = 10_000;
/** The executable unpacks 60 MB there. */
const MIN_CACHE_BYTES = 100e6;

/** Space and room for files where the data directory lies, and space for the cache. Throws Error with all faults. */
export async function examineDisk({ config }: App): Promise<string> {
  const data = await statfs(config.data_dir);
  const faults: string[] = [];
  const free = data.bavail * data.bsize;
  if (free < config.min_free_bytes)
    faults.push(
      `only ${amountOf(free)} free, less than VODBOX_MIN_FREE_BYTES: uploads are refused; free some space, or give the data directory more`,
    );
  // Some file systems count none.
  const countsFiles = data.files > 0;
  if (countsFiles && data.ffree < MIN_FILES)
    faults.push(
      `room for only ${data.ffree} more files (inodes); remove some, or give the data directory another disk`,
    );
  const cache = cacheDir();
  const { bavail, bsize } = await statfs(cache);
  if (bavail * bsize < MIN_CACHE_BYTES)
    faults.push(
      `only ${amountOf(bavail * bsize)} free in the cache folder ${cache}: the next version cannot be unpacked; set VODBOX_CACHE_DIR`,
    );
  if (faults.length > 0) throw new Error(faults.join("; "));
  const files = countsFiles ? `, room for ${data.ffree} more files` : "";
  return `${amountOf(free)} free${files}; ${amountOf(bavail * bsize)} in the cache folder`;
}

const amountOf = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
