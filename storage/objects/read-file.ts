import fs, { constants } from "node:fs";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { codeOf } from "./folders.ts";
import type { ByteRange } from "./store.ts";

/** Node's default of 64 KB per read costs half of the throughput. */
const READ_BYTES = 512 * 1024;

const openFd = promisify(fs.open);
const closeFd = promisify(fs.close);
const statFd = promisify(fs.fstat) as (fd: number, options: { bigint: true }) => Promise<fs.BigIntStats>;

/** Opens a regular file; null when there is none. The caller must consume or destroy the stream that `read` returns. */
export async function openFile(path: string) {
  let fd: number;
  try {
    // A pipe without a writer would otherwise wait for one.
    fd = await openFd(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(codeOf(error))) return null;
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
  return { stat, close: () => closeFd(fd), read: (range: ByteRange) => new FileBody(fd, range) };
}

export const tornFile = () => new Error("The object is shorter than it was.");

/**
 * The bytes of a range of an open file, which it closes. An error, not an early end, when the file has become shorter.
 * A caller with a faster way than a stream, which needs a new buffer for each read, takes the file out of it.
 */
export class FileBody extends Readable {
  readonly #end: number;
  #fd: number;
  #position: number;
  #idle: (() => void) | null = null;
  #isReading = false;
  /** Bytes that passed this stream. */
  readBytes = 0;

  constructor(fd: number, { start, end }: ByteRange) {
    super({ highWaterMark: READ_BYTES });
    this.#fd = fd;
    this.#position = start;
    this.#end = end;
  }

  /** The caller must close the file. Null when the stream is or was being read. */
  takeFile(): ({ fd: number } & ByteRange) | null {
    if (this.#fd === -1 || this.#isReading || this.readBytes > 0) return null;
    const file = { fd: this.#fd, start: this.#position, end: this.#end };
    this.#fd = -1;
    this.destroy();
    return file;
  }

  override _read(): void {
    const bytes = Math.min(READ_BYTES, this.#end - this.#position + 1);
    if (bytes <= 0) {
      this.push(null);
      return;
    }
    this.#isReading = true;
    fs.read(this.#fd, Buffer.allocUnsafeSlow(bytes), 0, bytes, this.#position, (error, bytes, buffer) => {
      this.#isReading = false;
      this.#idle?.();
      if (this.destroyed) return;
      if (error || bytes === 0) return void this.destroy(error ?? tornFile());
      this.#position += bytes;
      this.readBytes += bytes;
      this.push(bytes === buffer.length ? buffer : buffer.subarray(0, bytes));
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const close = () => {
      const fd = this.#fd;
      this.#fd = -1;
      if (fd === -1) done(error);
      else fs.close(fd, (failed) => done(error ?? failed));
    };
    // The descriptor may belong to another file as soon as it is closed.
    if (this.#isReading) this.#idle = close;
    else close();
  }
}
