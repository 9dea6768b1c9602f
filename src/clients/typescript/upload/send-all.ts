import { backoffMs, isDelayAcceptable, sleep } from "../attempts.ts";
import { VodboxError } from "../error.ts";
import { createProgress, type UploadProgress } from "./progress.ts";
import type { Source } from "./source.ts";

/** Where the bytes of an upload are appended. */
export type Target = {
  /** Sends bytes that begin at `offset`; returns the offset that the server has then. */
  append(
    offset: number,
    body: Blob | Uint8Array<ArrayBuffer>,
    options: { signal?: AbortSignal | undefined; onSent(bytes: number): void },
  ): Promise<number>;
  /** The offset that the server has. */
  offset(signal?: AbortSignal): Promise<number>;
  /** Takes the whole file in one request, and from its beginning. */
  isWhole?: boolean;
};

export type SendOptions = {
  onProgress?: (progress: UploadProgress) => void;
  /** Aborts the upload. What was sent is kept, and a later call resumes there. */
  signal?: AbortSignal;
  /** Attempts without progress before the upload fails; default 10, which is about two minutes. */
  maxRetries?: number;
};

const MIB = 2 ** 20;
/** A chunk is what is sent in about three seconds: what is sent again after a failure, and what a stream keeps. */
const CHUNK = { first: MIB, least: MIB / 4, most: 8 * MIB, seconds: 3 };
const MAX_RETRIES = 10;

/** Sends the bytes of `source` from `offset` on, and continues after failures. */
export async function sendAll(
  target: Target,
  source: Source,
  offset: number,
  { onProgress = () => {}, signal, maxRetries = MAX_RETRIES }: SendOptions,
): Promise<void> {
  const report = createProgress(source.size, onProgress);
  let chunkBytes = target.isWhole ? source.size : CHUNK.first;
  let mostBytes = CHUNK.most;
  let failures = 0;
  let at = offset;
  report(at);
  while (at < source.size) {
    const from = at;
    const body = await source.read(from, Math.min(from + chunkBytes, source.size));
    const startedAt = performance.now();
    try {
      // The last byte counts when the server has stored it.
      const onSent = (bytes: number) => report(Math.min(from + bytes, source.size - 1));
      at = await target.append(from, body, { signal, onSent });
      if (!(at > from))
        throw new VodboxError({ status: 409, code: "no_progress", message: "The server stored no bytes." });
      failures = 0;
      if (!target.isWhole)
        chunkBytes = Math.min(mostBytes, nextChunkBytes(chunkBytes, at - from, performance.now() - startedAt));
    } catch (error) {
      if (isTooLarge(error) && !target.isWhole && chunkBytes > CHUNK.least) {
        mostBytes = chunkBytes = Math.max(CHUNK.least, Math.floor(chunkBytes / 4));
        continue;
      }
      if (!(error instanceof VodboxError) || !isTemporary(error) || ++failures > maxRetries) throw error;
      if (!target.isWhole) chunkBytes = CHUNK.least;
      await sleep(backoffMs(failures, error), signal);
      at = await offsetAfterFailure(target, from, signal);
      if (at > from) failures = 0;
    }
    report(at);
  }
}

function nextChunkBytes(chunkBytes: number, sent: number, ms: number): number {
  const inTime = (sent / Math.max(ms, 1)) * 1000 * CHUNK.seconds;
  return Math.round(Math.min(Math.max(inTime, CHUNK.least), CHUNK.most, chunkBytes * 4));
}

/** Proxies have limits: nginx takes 1 MiB unless it is configured otherwise. */
const isTooLarge = (error: unknown) => error instanceof VodboxError && error.status === 413;

/** The server has stored what arrived before a failure. When it cannot be asked yet, the next attempt will. */
async function offsetAfterFailure(target: Target, before: number, signal?: AbortSignal): Promise<number> {
  try {
    return await target.offset(signal);
  } catch (error) {
    if (error instanceof VodboxError && isTemporary(error)) return before;
    throw error;
  }
}

/** 400: a proxy or the server received the body incompletely. 409: the offset is another one. */
const isTemporary = (error: VodboxError) =>
  isDelayAcceptable(error) && (error.status >= 500 || [0, 400, 408, 409, 423, 429].includes(error.status));
