import { Readable } from "node:stream";
import { FastResponse } from "srvx";
import { pacer } from "../lib/pace.ts";
import type { Context } from "./route.ts";

const CHUNK_CHARACTERS = 32 * 1024;

/**
 * An answer that is made while it is sent, as fast as the client takes it: it never stands in memory as a whole. What
 * goes wrong midway cuts the connection, so that nobody takes a part for the whole.
 */
export function streamed(
  { app, method, requestId }: Pick<Context, "app" | "method" | "requestId">,
  text: AsyncIterable<string>,
  headers: Record<string, string>,
): Response {
  const common = { "cache-control": "no-store", ...headers };
  if (method === "HEAD") return new FastResponse(null, { headers: common });
  const body = Readable.from(chunks(text), { objectMode: false, highWaterMark: CHUNK_CHARACTERS });
  body.on("error", (error) => {
    if (error.name !== "AbortError") app.log.error({ request_id: requestId, err: error }, "an answer was cut off");
  });
  // srvx pipes Node's own stream; its types know web bodies only.
  return new FastResponse(body as unknown as ReadableStream, { headers: common });
}

async function* chunks(text: AsyncIterable<string>): AsyncGenerator<Buffer> {
  const pace = pacer();
  let gathered = "";
  for await (const part of text) {
    gathered += part;
    if (gathered.length >= CHUNK_CHARACTERS) {
      yield Buffer.from(gathered);
      gathered = "";
    }
    await pace();
  }
  if (gathered !== "") yield Buffer.from(gathered);
}

export const streamedJson = (context: Context, text: AsyncIterable<string>, headers: Record<string, string> = {}) =>
  streamed(context, text, { "content-type": "application/json; charset=utf-8", ...headers });
