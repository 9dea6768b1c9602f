import type { Readable } from "node:stream";
import { parse as parseRange } from "range-parser";
import { FastResponse } from "srvx";
import { HttpError, notFound } from "#lib/base";
import { FileBody } from "#storage/objects/read-file.ts";
import type { ObjectInfo, ObjectStore } from "#storage/objects/store.ts";
import { corsHeaders, MEDIA_CORS } from "./cors.ts";
import { matchingTag } from "./if-none-match.ts";
import { onResponseSent } from "./response-sent.ts";
import type { SegmentCache } from "./segment-cache.ts";

export type ObjectResponse = {
  objects: ObjectStore;
  key: string;
  method: string;
  headers: Headers;
  contentType: string;
  cacheControl: string;
  /** Metadata that the caller has already, or the whole object. */
  known?: { info: ObjectInfo; bytes?: Buffer };
  /** Objects whose keys are never rewritten may be cached in memory. */
  cache?: SegmentCache;
  extraHeaders?: Record<string, string>;
  /** Called with a negative number for bytes that were counted but not delivered. */
  onSent?: (bytes: number) => void;
};

/**
 * Serves one object with ranges and conditions (RFC 9110, 13 and 14), HEAD, and open CORS. Throws 404 when it does not
 * exist.
 */
export async function serveObject(
  delivery: Omit<ObjectResponse, "objects"> & { objects: Pick<ObjectStore, "head" | "get"> },
): Promise<Response> {
  const { objects, key, headers, cache } = delivery;
  const cached = delivery.known ?? cache?.get(key);
  const info = cached?.info ?? (await objects.head(key)) ?? notFound("file");
  const common: Record<string, string> = {
    ...corsHeaders(MEDIA_CORS),
    "accept-ranges": "bytes",
    "cache-control": delivery.cacheControl,
    "content-type": delivery.contentType,
    "x-content-type-options": "nosniff",
    etag: info.etag,
    "last-modified": info.modifiedAt.toUTCString(),
    ...delivery.extraHeaders,
  };
  if (isUnchanged(headers, info)) return new FastResponse(null, { status: 304, headers: common });

  const range = requestedRange(headers, info);
  const start = range?.start ?? 0;
  const length = range ? range.end - range.start + 1 : info.bytes;
  if (range) common["content-range"] = `bytes ${range.start}-${range.end}/${info.bytes}`;
  common["content-length"] = String(length);
  const status = range ? 206 : 200;
  if (delivery.method === "HEAD" || length === 0) return new FastResponse(null, { status, headers: common });

  const bytes = cached?.bytes ?? (await cache?.load(objects, info));
  if (bytes) {
    delivery.onSent?.(length);
    const part = range ? bytes.subarray(start, start + length) : bytes;
    const response = new FastResponse(part as Uint8Array<ArrayBuffer>, { status, headers: common });
    const giveBack = cache?.lend(bytes);
    onResponseSent(response, (unsent) => {
      giveBack?.();
      if (unsent > 0) delivery.onSent?.(-unsent);
    });
    return response;
  }
  const { body } = (await objects.get(key, range ?? undefined)) ?? notFound("file");
  // srvx pipes Node streams directly; wrapping one in a web stream costs a third of the throughput. Its types allow
  // only web bodies.
  const response = new FastResponse(body as unknown as ReadableStream, { status, headers: common });
  const { onSent } = delivery;
  if (onSent && body instanceof FileBody) {
    // Only one of both applies: sent as a stream, or as a file through the socket.
    body.once("close", () => onSent(body.readBytes));
    onResponseSent(response, (unsent) => onSent(length - unsent));
  } else if (onSent) countBytes(body, onSent);
  return response;
}

function countBytes(body: Readable, onSent: (bytes: number) => void): void {
  let bytes = 0;
  body.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  body.pause();
  body.once("close", () => onSent(bytes));
}

function isUnchanged(headers: Headers, info: ObjectInfo): boolean {
  // RFC 9110, 13.1.3: If-Modified-Since is ignored next to If-None-Match.
  if (headers.has("if-none-match")) return matchingTag(headers, [info.etag]) !== null;
  const since = Date.parse(headers.get("if-modified-since") ?? "");
  return !Number.isNaN(since) && Math.floor(info.modifiedAt.getTime() / 1000) * 1000 <= since;
}

/** In the `code` of range-parser. */
const MALFORMED = 1;

/**
 * Null: the whole object. Only single ranges are supported; several are answered with the whole, as RFC 9110, 14.2
 * allows. Malformed ranges and other units are ignored (14.1.1 and 14.2). Throws 416 when the range does not overlap.
 */
function requestedRange(headers: Headers, info: ObjectInfo): { start: number; end: number } | null {
  const header = headers.get("range");
  if (header === null || info.bytes === 0) return null;
  const condition = headers.get("if-range");
  if (condition !== null && condition !== info.etag && condition !== info.modifiedAt.toUTCString()) return null;
  const { type, code, ranges } = parseRange(info.bytes, header);
  if (type !== "bytes" || (code & MALFORMED) !== 0) return null;
  if (ranges.length === 0) {
    throw new HttpError(416, "range_not_satisfiable", `The file has ${info.bytes} bytes.`, {
      headers: { "content-range": `bytes */${info.bytes}` },
    });
  }
  return (ranges.length === 1 && ranges[0]) || null;
}
