import type { Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { writeAll } from "#lib/base";
import type { Writing } from "./space.ts";
import { ObjectTooLarge } from "./store.ts";

/** Written at once: a chunk of `node:http` is 64 KB, and a system call for each costs a fifth of the throughput. */
const BATCH_BYTES = 4 * 1024 * 1024;
const MIN_BATCH_BYTES = 256 * 1024;
/** For all bodies together: with 4 MB for each of twenty, and as much being written, memory was 250 MB. */
const COLLECTED_BYTES = 16 * 1024 * 1024;
let collecting = 0;
const batchBytes = () => Math.max(MIN_BATCH_BYTES, Math.min(BATCH_BYTES, COLLECTED_BYTES / collecting));
/** The kernel accepts at most 1,024 buffers in one call. */
const BATCH_CHUNKS = 1000;

export type WriteBodyOptions = {
  maxBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Position in the file at which the body begins; by default the file's current position. */
  position?: number;
  /** Updated with the body. */
  hash?: Hash;
  /** The received bytes of a body that fails are written before the error is thrown. */
  keepTorn?: boolean | undefined;
} & Partial<Writing>;

/**
 * Writes all of `body` to `file`; returns the bytes written. While one batch is written the next is collected, and the
 * body is paused when that is full. After an error the body is left paused, not destroyed: destroying a request would
 * close the socket that the response is sent on.
 */
export async function writeBody(file: FileHandle, body: Readable | Uint8Array, options: WriteBodyOptions) {
  const { maxBytes = Number.POSITIVE_INFINITY, signal, onProgress, admit, position = null, hash, keepTorn } = options;
  const write = async (chunks: Uint8Array[], at: number | null) => {
    const written = await admit?.(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));
    try {
      return await writeAll(file, chunks, at);
    } finally {
      written?.();
    }
  };
  signal?.throwIfAborted();
  if (body instanceof Uint8Array) {
    if (body.byteLength > maxBytes) throw new ObjectTooLarge(maxBytes);
    hash?.update(body);
    await write([body], position);
    return body.byteLength;
  }
  const source = collect(body, { maxBytes, signal, hash, keepTorn });
  try {
    let written = 0;
    for (;;) {
      const batch = await source.next();
      if (batch === null) return written;
      written += await write(batch, position === null ? null : position + written);
      await onProgress?.(written);
    }
  } finally {
    source.stop();
  }
}

/**
 * The body in batches of about 4 MB, less when many are received at once. With its own listeners: `for await` over a
 * request takes a quarter longer. After the last batch, or an error, `stop` must be called.
 */
export function collect(
  body: Readable,
  {
    maxBytes,
    signal,
    hash,
    keepTorn = false,
  }: Pick<WriteBodyOptions, "signal" | "keepTorn"> & {
    maxBytes: number;
    hash?: Hash | undefined;
  },
) {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let total = 0;
  let ended = false;
  // A stream that was consumed before is empty: that is not an empty object.
  let failure: Error | null = body.errored ?? (body.destroyed || body.readableEnded ? prematureClose() : null);
  let wake = () => {};
  const fail = (error: Error) => {
    failure ??= error;
    body.pause();
    wake();
  };
  const onData = (data: Uint8Array | string) => {
    const chunk = typeof data === "string" ? Buffer.from(data) : data;
    total += chunk.byteLength;
    if (total > maxBytes) return fail(new ObjectTooLarge(maxBytes));
    hash?.update(chunk);
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes < batchBytes() && chunks.length < BATCH_CHUNKS) return;
    body.pause();
    wake();
  };
  const onEnd = () => {
    ended = true;
    wake();
  };
  const onClose = () => !ended && fail(prematureClose());
  const onAbort = () => fail(signal?.reason ?? new Error("aborted"));
  // An error listener stays attached: the body may fail later, without another listener.
  body.on("error", fail);
  body.on("data", onData).on("end", onEnd).on("close", onClose);
  signal?.addEventListener("abort", onAbort);
  collecting++;
  let stopped = false;

  return {
    /** The next batch, null after the last; throws the body's error. */
    async next(): Promise<Uint8Array[] | null> {
      while (!failure && !ended && bytes < batchBytes() && chunks.length < BATCH_CHUNKS) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        if (body.isPaused()) body.resume();
        await woken;
      }
      if (failure && !(keepTorn && bytes > 0)) throw failure;
      if (bytes === 0) return null;
      const batch = chunks;
      chunks = [];
      bytes = 0;
      if (!failure) body.resume();
      return batch;
    },
    stop() {
      if (!stopped) collecting--;
      stopped = true;
      body.off("data", onData).off("end", onEnd).off("close", onClose);
      signal?.removeEventListener("abort", onAbort);
      body.pause();
    },
  };
}

const prematureClose = () => Object.assign(new Error("The body ended early."), { code: "ERR_STREAM_PREMATURE_CLOSE" });
