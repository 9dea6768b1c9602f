import type { Readable } from "node:stream";
import { collect } from "../write-body.ts";

/**
 * 10,000 of them are more than the largest upload; a stream keeps two in memory, the one being sent and the one being
 * received.
 */
export const PART_BYTES = 8 * 2 ** 20;

export type Parts = { next(): Promise<Buffer>; stop(): void };

/** `body` in parts of exactly PART_BYTES; the last is shorter and may be empty. */
export function partsOf(body: Readable, limits: { maxBytes: number; signal?: AbortSignal | undefined }): Parts {
  const source = collect(body, limits);
  let rest: Uint8Array[] = [];
  return {
    async next() {
      const part = Buffer.allocUnsafe(PART_BYTES);
      let filled = 0;
      for (;;) {
        for (let chunk = rest.shift(); chunk; chunk = rest.shift()) {
          const copied = Math.min(chunk.byteLength, PART_BYTES - filled);
          part.set(chunk.subarray(0, copied), filled);
          filled += copied;
          if (copied < chunk.byteLength) rest.unshift(chunk.subarray(copied));
          if (filled === PART_BYTES) return part;
        }
        const batch = await source.next();
        if (batch === null) return part.subarray(0, filled);
        rest = batch;
      }
    },
    stop: source.stop,
  };
}
