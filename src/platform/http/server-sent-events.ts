import { once } from "node:events";
import { PassThrough } from "node:stream";
import { FastResponse } from "srvx";
import type { Context } from "./route.ts";

/** Bytes that wait for a client. With more it is disconnected. */
const MAX_WAITING = 256 * 1024;
/** With more, wait until it has `drained`: single messages still fit. */
const BEHIND = MAX_WAITING / 2;
/** How long browsers wait before they connect again. */
const RETRY_MS = 2000;
/** For a client that must come later because there are too many streams. */
export const RETRY_SECONDS = RETRY_MS / 1000;

export type SentEvents = {
  /** Sends complete messages (WHATWG HTML, 9.2.5). */
  send(text: string): void;
  comment(): void;
  isEnded(): boolean;
  end(): void;
  /** Whether so much waits for the client that many more messages would disconnect it. */
  isBehind(): boolean;
  /** Resolves when the client has received most of what was sent, or the stream has ended. */
  drained(): Promise<void>;
  /** Ends the stream if its credential is not valid any more. */
  recheck(): Promise<void>;
};

/** A message. JSON contains no line break, so one `data` line is sufficient (WHATWG HTML, 9.2.6). */
export const sentEvent = ({ id, event, data }: { id?: number | string; event: string; data: unknown }): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** A response of server-sent events. `begin` is called with the open stream, and the function it returns at its end. */
export function serverSentEvents(context: Context, begin: (events: SentEvents) => () => void): Response {
  const { app, incoming, method } = context;
  const common = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
  if (method === "HEAD") return new FastResponse(null, { headers: common });
  const body = new PassThrough();
  const end = () => void body.end();
  const waiting = () => body.writableLength + body.readableLength;
  const send = (text: string) => {
    if (!body.writable) return;
    body.write(text);
    if (waiting() > MAX_WAITING) body.destroy(new Error("The client reads too slowly."));
  };
  send(`retry: ${RETRY_MS}\n\n`);
  const stopped = begin({
    send,
    end,
    comment: () => send(":\n\n"),
    isEnded: () => !body.writable,
    isBehind: () => waiting() > BEHIND,
    drained: async () => {
      if (!body.writableNeedDrain) return;
      // Removes the other listener, of which there would be one more for each call.
      const done = new AbortController();
      const options = { signal: done.signal };
      await Promise.race([once(body, "drain", options), once(body, "close", options)]).catch(() => {});
      done.abort();
    },
    recheck: () => context.recheck().catch(end),
  });
  const onGone = () => body.destroy();
  const { socket } = incoming ?? {};
  socket?.once("close", onGone);
  app.stopping.addEventListener("abort", end, { once: true });
  body.on("error", (error) => app.log.debug({ request_id: context.requestId, err: error }, "an event stream ended"));
  body.once("close", () => {
    stopped();
    socket?.off("close", onGone);
    app.stopping.removeEventListener("abort", end);
  });
  if (socket?.destroyed || app.stopping.aborted) end();
  return new FastResponse(body as unknown as ReadableStream, { headers: common });
}
