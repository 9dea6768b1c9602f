import fs, { constants } from "node:fs";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { codeOf } from "./folders.ts";
import type { ByteRange } from "./store.ts";

/** A read of 64 KB, Node's default, costs half of the throughput. */
const READ_BYTES = 512 * 1024;

const openFd = promisify(fs.open);
const closeFd = promisify(fs.close);
const statFd = promisify(fs.fstat) as (fd: number, options: { bigint: true }) => Promise<fs.BigIntStats>;

/** Opens a plain file; null when there is none. The caller must consume or destroy the stream that `read` returns. */
export async function openFile(path: string) {
  let fd: number;
  try {
    fd = await openFd(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) return null;
    throw error;
  }
  const stat = await statFd(fd, { bigint: true }).catch(async (error) => {
    await closeFd(fd);
    throw error;
  });
  if (!stat.isFile()) {
    await closeFd(fd);
    return null;
  }
  return { stat, close: () => closeFd(fd), read: (range: ByteRange) => readRange(fd, range) };
}

/** Streams the bytes of `range` and closes `fd`. An error, not an early end, when the file holds fewer by then. */
function readRange(fd: number, { start, end }: ByteRange): Readable {
  if (end < start) {
    fs.closeSync(fd);
    return Readable.from([]);
  }
  const read: typeof fs.read = ((...args: Parameters<typeof fs.read>) => {
    const done = args.at(-1) as unknown as (error: Error | null, bytes: number, buffer: unknown) => void;
    const torn = (error: Error | null, bytes: number, buffer: unknown) =>
      !error && bytes === 0
        ? done(new Error("The object is shorter than it was."), 0, buffer)
        : done(error, bytes, buffer);
    (fs.read as unknown as (...all: unknown[]) => void)(...args.slice(0, -1), torn);
  }) as typeof fs.read;
  const own = { read, close: fs.close, open: fs.open };
  return fs.createReadStream("", { fd, start, end, highWaterMark: READ_BYTES, fs: own });
}
