import type { Readable } from "node:stream";
import { collect } from "../write-body.ts";

/** 10,000 of them hold more than the largest upload; a stream holds two in memory, the one that goes and the one that comes. */
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
          const taken = Math.min(chunk.byteLength, PART_BYTES - filled);
          part.set(chunk.subarray(0, taken), filled);
          filled += taken;
          if (taken < chunk.byteLength) rest.unshift(chunk.subarray(taken));
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
