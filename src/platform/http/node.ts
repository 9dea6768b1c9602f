import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { H3 } from "h3";
import { NodeRequest, sendNodeResponse } from "srvx/node";
import { FileBody } from "#storage/objects/read-file.ts";
import { closeWhenStalled, STALL_MS } from "./close-when-stalled.ts";
import { oneAfterAnother } from "./one-after-another.ts";
import { responseSentListener } from "./response-sent.ts";
import { sendFile } from "./send-file.ts";
import { refuseTinyChunks } from "./tiny-chunks.ts";

type Plain = { status: number; headers: string[]; body: unknown };
/** srvx's FastResponse can return its content without building a web Response. */
type Convertible = { _toNodeResponse?(): Plain };

/**
 * Serves h3 through node:http. srvx writes head and body separately; a complete body is sent here in one write, because
 * the system call is half the cost of a small response. Streams are left to srvx. A client that takes nothing of a response
 * for `stallMs` is disconnected.
 */
export function nodeListener(h3: Pick<H3, "fetch">, stallMs = STALL_MS): RequestListener {
  const listener = oneAfterAnother((incoming, outgoing) => {
    const exchange = { incoming, outgoing, stallMs };
    const answered = h3.fetch(new NodeRequest({ req: incoming, res: outgoing }));
    if (answered instanceof Promise)
      answered.then((response) => send(exchange, response)).catch(() => outgoing.destroy());
    else send(exchange, answered).catch(() => outgoing.destroy());
  });
  return (incoming, outgoing) => {
    refuseTinyChunks(incoming, outgoing);
    listener(incoming, outgoing);
  };
}

type Exchange = { incoming: IncomingMessage; outgoing: ServerResponse; stallMs: number };
/** Sending takes so long in one iteration, and continues in the next: thousands of viewers of a live stream are answered at once. */
const SENDING_MS = 4;

/**
 * Complete responses of one event loop iteration, sent together at its end. Each separate write wakes the receiver,
 * which costs as much as all else; in a burst it is awake already. With 64 connections this is 1.9 times the
 * throughput.
 */
const waiting: { outgoing: ServerResponse; write: () => void }[] = [];
function sendWaiting(): void {
  const until = performance.now() + SENDING_MS;
  let sent = 0;
  for (const { outgoing, write } of waiting) {
    sent++;
    try {
      write();
    } catch {
      outgoing.destroy();
    }
    if (performance.now() >= until) break;
  }
  waiting.splice(0, sent);
  if (waiting.length > 0) setImmediate(sendWaiting);
}

async function send({ incoming, outgoing, stallMs }: Exchange, response: Response): Promise<void> {
  const convertible = response as Response & Convertible;
  if (!convertible._toNodeResponse) {
    closeWhenStalled(outgoing, stallMs);
    return sendNodeResponse(outgoing, response);
  }
  const { status, headers, body } = convertible._toNodeResponse();
  const isWhole = body === undefined || body === null || typeof body === "string" || body instanceof Uint8Array;
  if (!isWhole) closeWhenStalled(outgoing, stallMs);
  if (body instanceof FileBody && incoming.method !== "HEAD") {
    if (sendFile(outgoing, { status, headers }, body, responseSentListener(response))) return;
  }
  // Reading it twice would return nothing, so a body that is not complete is passed on as it is.
  if (!isWhole)
    return sendNodeResponse(outgoing, { _toNodeResponse: () => ({ status, headers, body }) } as unknown as Response);
  const hasBody = incoming.method !== "HEAD" && body !== undefined && body !== null;
  if (waiting.length === 0) setImmediate(sendWaiting);
  const listener = hasBody ? responseSentListener(response) : undefined;
  const isLarge = hasBody && body instanceof Uint8Array && body.length > PIECE_BYTES;
  const write = () => {
    outgoing.writeHead(status, headers);
    if (listener || isLarge) {
      closeWhenStalled(outgoing, stallMs);
      return sendInPieces(outgoing, body as Uint8Array, listener);
    }
    outgoing.end(hasBody ? body : undefined);
    // The kernel takes most responses at once.
    if (outgoing.writableLength > 0) closeWhenStalled(outgoing, stallMs);
  };
  waiting.push({ outgoing, write });
}

/** Large enough not to slow a fast client, and the granularity at which undelivered bytes are known. */
const PIECE_BYTES = 512 * 1024;

function sendInPieces(outgoing: ServerResponse, body: Uint8Array, ended = (_unsentBytes: number) => {}): void {
  let sentBytes = 0;
  let acceptedBytes = 0;
  const next = (error?: Error | null) => {
    if (error) return;
    acceptedBytes = sentBytes;
    const piece = body.subarray(sentBytes, sentBytes + PIECE_BYTES);
    sentBytes += piece.length;
    if (sentBytes < body.length) outgoing.write(piece, next);
    else outgoing.end(piece);
  };
  outgoing.once("finish", () => {
    acceptedBytes = body.length;
  });
  // A connection that was already closed does not emit it again.
  if (outgoing.closed) return ended(body.length);
  outgoing.once("close", () => ended(body.length - acceptedBytes));
  next();
}
