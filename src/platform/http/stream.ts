import { Readable } from "node:stream";
import { FastResponse } from "srvx";
import { backgroundPacer, setTimeout } from "#lib/base";
import type { Context } from "./route.ts";

const CHUNK_CHARACTERS = 32 * 1024;
/** A client that accepts no data for this long is disconnected. */
const STALL_MS = 60_000;

const streams = new WeakMap<Response, Readable>();
/** The response body of `streamed`; it closes when all data is sent, or when the connection is lost. */
export const streamOf = (response: Response): Readable | undefined => streams.get(response);

/**
 * A response that is generated while it is sent, at the client's pace, and never held in memory as a whole. An error
 * midway closes the connection, so that no client mistakes a part for the whole.
 */
export function streamed(
  { app, method, requestId, incoming }: Pick<Context, "app" | "method" | "requestId" | "incoming">,
  text: AsyncIterable<string>,
  headers: Record<string, string>,
): Response {
  const common = { "cache-control": "no-store", ...headers };
  if (method === "HEAD") return new FastResponse(null, { headers: common });
  const stalled = () => body.destroy(new Error(`The client received no data for ${STALL_MS / 1000} s.`));
  const body = Readable.from(chunks(text, stalled), { objectMode: false, highWaterMark: CHUNK_CHARACTERS });
  const onGone = () => body.destroy();
  incoming?.socket.once("close", onGone);
  body.once("close", () => incoming?.socket.off("close", onGone));
  body.on("error", (error: NodeJS.ErrnoException) => {
    // A client that leaves is not an error.
    if (error.name !== "AbortError" && error.code !== "ERR_STREAM_PREMATURE_CLOSE")
      app.log.error({ request_id: requestId, err: error }, "a response was aborted");
  });
  // srvx pipes Node streams directly; its types allow only web bodies.
  const response = new FastResponse(body as unknown as ReadableStream, { headers: common });
  streams.set(response, body);
  return response;
}

async function* chunks(text: AsyncIterable<string>, stalled: () => void): AsyncGenerator<Buffer> {
  const pace = backgroundPacer();
  let gathered = "";
  for await (const part of text) {
    gathered += part;
    if (gathered.length >= CHUNK_CHARACTERS) {
      const timer = setTimeout(stalled, STALL_MS);
      yield Buffer.from(gathered);
      clearTimeout(timer);
      gathered = "";
    }
    await pace();
  }
  if (gathered !== "") yield Buffer.from(gathered);
}

export const streamedJson = (context: Context, text: AsyncIterable<string>, headers: Record<string, string> = {}) =>
  streamed(context, text, { "content-type": "application/json; charset=utf-8", ...headers });
