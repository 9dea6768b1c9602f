import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { UploadRow } from "../../../storage/db/schema.ts";
import { ObjectTooLarge, StorageFull } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { storageOf } from "../../http/storage.ts";
import { doorOf } from "../../outbound/app-door.ts";
import { BlockedDestination, type Door, OutboundFailure } from "../../outbound/outcome.ts";

/** `retryable`: another time it may go well. The code and message stand in the asset's `error`. */
export class FetchFailed extends Error {
  readonly code: string;
  readonly retryable: boolean;
  constructor(code: string, message: string, retryable: boolean) {
    super(message);
    this.code = code;
    this.retryable = retryable;
  }
}

const MOST_REDIRECTS = 5;
const ANSWER_MS = 30_000;
/** Nothing for so long: the other side has gone. */
const IDLE_MS = 60_000;

export type FetchProgress = {
  /** Told once, when the answer's head says so. Bytes. */
  onLength(bytes: number): Promise<void>;
  onBytes(received: number): void;
  /** Asked before the object takes its place. */
  confirm(): Promise<void>;
};

/** Brings what stands at `url` to the upload's key; answers its bytes. Throws FetchFailed. Durable when it resolves. */
export async function fetchSource(app: App, upload: UploadRow, url: string, progress: FetchProgress): Promise<number> {
  const gone = new AbortController();
  const signal = AbortSignal.any([app.stopping, gone.signal]);
  let timer = setTimeout(() => gone.abort(), ANSWER_MS);
  const stillThere = () => {
    clearTimeout(timer);
    timer = setTimeout(() => gone.abort(), IDLE_MS);
  };
  const most = app.config.max_upload_bytes;
  try {
    const answer = await answerOf(await doorOf(app), url, signal);
    stillThere();
    const length = Number(answer.headers["content-length"] ?? Number.NaN);
    if (length > most) throw tooLarge(most);
    if (!Number.isNaN(length)) await progress.onLength(length);
    let received = 0;
    async function* counted() {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        received += chunk.length;
        stillThere();
        progress.onBytes(received);
        yield chunk;
      }
    }
    // Bytes, not values: so many kilobytes wait for the disk, and no more.
    const body = Readable.from(counted(), { objectMode: false });
    const { confirm } = progress;
    const stored = await storageOf(app).put(upload.objectKey, body, { maxBytes: most, signal, confirm });
    if (stored.bytes === 0) throw new FetchFailed("source_empty", "There are no bytes at the address.", false);
    return stored.bytes;
  } catch (error) {
    throw failureOf(error as Error, most, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Follows redirects, each through the same door: it is judged like any other address. */
async function answerOf(door: Door, url: string, signal: AbortSignal): Promise<IncomingMessage> {
  let address = url;
  for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
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
    throw new FetchFailed("source_refused", `The address answered ${status}.`, passing);
  }
  throw new FetchFailed("source_refused", `The address redirects more than ${MOST_REDIRECTS} times.`, false);
}

const tooLarge = (most: number) =>
  new FetchFailed("source_too_large", `The source has more than ${most} bytes.`, false);

function failureOf(error: Error, most: number, signal: AbortSignal): Error {
  if (error instanceof FetchFailed || error instanceof StorageFull) return error;
  if (error instanceof ObjectTooLarge) return tooLarge(most);
  if (error instanceof BlockedDestination) return new FetchFailed("source_blocked", error.message, false);
  if (error instanceof OutboundFailure) return new FetchFailed("source_unreachable", error.message, true);
  if (signal.aborted) return new FetchFailed("source_unreachable", "The address fell silent.", true);
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ECONNRESET" || code.startsWith("ERR_STREAM") || code.startsWith("HPE_"))
    return new FetchFailed("source_unreachable", "The connection broke before the end.", true);
  return error;
}
