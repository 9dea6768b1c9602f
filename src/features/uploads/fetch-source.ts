import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { App } from "#app.ts";
import { HttpError, setInterval, setTimeout } from "#lib/base";
import { BlockedDestination, type HttpClient, OutboundFailure } from "#lib/network";
import { storageOf } from "#platform/http/storage.ts";
import { httpClientOf } from "#platform/outbound/app-http-client.ts";
import type { UploadRow } from "#storage/db/schema.ts";
import { ObjectTooLarge, StorageFull } from "#storage/objects/store.ts";

/** `retryable`: a later attempt may succeed. Code and message appear in the asset's `error`. */
export class FetchFailed extends Error {
  readonly code: string;
  readonly retryable: boolean;
  constructor(code: string, message: string, retryable: boolean) {
    super(message);
    this.code = code;
    this.retryable = retryable;
  }
}

const MAX_REDIRECTS = 5;
/** Timeout of name resolution, connection, redirects and response header together. */
const ANSWER_MS = 30_000;
/** The rate of a source is averaged over this time. */
const RATE_WINDOW_MS = 60_000;
const LOOK_MS = 1000;

export type FetchProgress = {
  /** Aborts when the fetch must yield to another tenant's. */
  signal: AbortSignal;
  /** Called with the size that the response header declares, before any byte is stored; may throw to refuse it. */
  onLength(bytes: number): Promise<void>;
  /** Called with the number of bytes received, before the last of them are stored; may throw to refuse them. */
  onBytes(received: number): Promise<void> | void;
  /** Checked before the object is created. */
  confirm(): Promise<void>;
};

/** Downloads `url` to the upload's key; returns its size. Throws FetchFailed. Durable when it resolves. */
export async function fetchSource(app: App, upload: UploadRow, url: string, progress: FetchProgress): Promise<number> {
  const aborted = new AbortController();
  const signal = AbortSignal.any([app.stopping, aborted.signal, progress.signal]);
  const timer = setTimeout(() => aborted.abort(silent()), ANSWER_MS);
  const watch = new RateWatch(app, (failure) => aborted.abort(failure));
  const most = app.config.max_upload_bytes;
  try {
    const answer = await followRedirects(await httpClientOf(app), url, signal);
    clearTimeout(timer);
    const length = Number(answer.headers["content-length"] ?? Number.NaN);
    try {
      if (length > most) throw tooLarge(most);
      if (!Number.isNaN(length)) await progress.onLength(length);
    } catch (error) {
      answer.on("error", () => {}).destroy();
      throw error;
    }
    watch.start();
    let received = 0;
    async function* counted() {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        received += chunk.length;
        watch.received = received;
        await progress.onBytes(received);
        yield chunk;
      }
    }
    // The high water mark is in bytes: it bounds the data that waits for the disk.
    const body = Readable.from(counted(), { objectMode: false });
    const { confirm } = progress;
    const bytes = Number.isNaN(length) ? undefined : length;
    const stored = await storageOf(app).put(upload.objectKey, body, { maxBytes: most, bytes, signal, confirm });
    if (stored.bytes === 0) throw new FetchFailed("source_empty", "The file at the URL is empty.", false);
    return stored.bytes;
  } catch (error) {
    throw failureOf(error as Error, most, signal);
  } finally {
    clearTimeout(timer);
    watch.stop();
  }
}

/** Aborts a fetch whose source is slower than `fetch_min_bytes_per_second`, or takes longer than an upload may. */
class RateWatch {
  received = 0;
  readonly #app: App;
  readonly #end: (failure: FetchFailed) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(app: App, end: (failure: FetchFailed) => void) {
    this.#app = app;
    this.#end = end;
  }

  start(): void {
    const { fetch_min_bytes_per_second: least, upload_ttl_seconds: longest } = this.#app.config;
    const from = performance.now();
    const samples: { at: number; received: number }[] = [{ at: from, received: 0 }];
    this.#timer = setInterval(() => {
      const at = performance.now();
      samples.push({ at, received: this.received });
      while ((samples[1]?.at ?? at) <= at - RATE_WINDOW_MS) samples.shift();
      const first = samples[0] as (typeof samples)[0];
      const seconds = (at - first.at) / 1000;
      if (at - first.at >= RATE_WINDOW_MS && (this.received - first.received) / seconds < least)
        this.#end(tooSlow(`The source sent less than ${least} bytes per second over ${RATE_WINDOW_MS / 1000} s`));
      else if (at - from > longest * 1000) this.#end(tooSlow(`The source took longer than ${longest} s`));
    }, LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

const tooSlow = (reason: string) =>
  new FetchFailed("source_too_slow", `${reason}; upload the file, or use a faster server.`, false);
const silent = () => new FetchFailed("source_unreachable", "The source did not respond in time.", true);

/** Follows redirects with the safe HTTP client, which checks each URL. */
export async function followRedirects(door: HttpClient, url: string, signal: AbortSignal): Promise<IncomingMessage> {
  let address = url;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const headers = { "user-agent": "vodbox", accept: "*/*", "accept-encoding": "identity" };
    const answer = await door.send(address, { method: "GET", headers, signal });
    const status = answer.statusCode ?? 0;
    if (status === 200) return answer;
    answer.on("error", () => {}).destroy();
    const { location } = answer.headers;
    if (status >= 300 && status < 400 && location !== undefined && URL.canParse(location, address)) {
      address = new URL(location, address).href;
      continue;
    }
    const passing = status === 408 || status === 429 || status >= 500;
    throw new FetchFailed("source_refused", `The URL responded with status ${status}.`, passing);
  }
  throw new FetchFailed("source_refused", `The URL redirects more than ${MAX_REDIRECTS} times.`, false);
}

const tooLarge = (most: number) =>
  new FetchFailed("source_too_large", `The source has more than ${most} bytes.`, false);

function failureOf(error: Error, most: number, signal: AbortSignal): Error {
  if (error instanceof FetchFailed || error instanceof StorageFull || error instanceof HttpError) return error;
  if (signal.reason instanceof FetchFailed) return signal.reason;
  if (error instanceof ObjectTooLarge) return tooLarge(most);
  if (error instanceof BlockedDestination) return new FetchFailed("source_blocked", error.message, false);
  if (error instanceof OutboundFailure) return new FetchFailed("source_unreachable", error.message, true);
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ECONNRESET" || code.startsWith("ERR_STREAM") || code.startsWith("HPE_"))
    return new FetchFailed("source_unreachable", "The connection closed before the end of the file.", true);
  return error;
}
