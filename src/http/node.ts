import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { H3 } from "h3";
import { NodeRequest, sendNodeResponse } from "srvx/node";
import { FileBody } from "../../storage/objects/read-file.ts";
import { responseSentListener } from "./response-sent.ts";
import { sendFile } from "./send-file.ts";

type Plain = { status: number; headers: string[]; body: unknown };
/** srvx's FastResponse can say what it holds without building a web Response. */
type Convertible = { _toNodeResponse?(): Plain };

/**
 * h3 behind node:http. What srvx sends in two writes, head and body, goes out in one here where the body is whole: half
 * of the time of a small answer is the system call. Streams are srvx's to send.
 */
export function nodeListener(h3: H3): RequestListener {
  return (incoming, outgoing) => {
    const answered = h3.fetch(new NodeRequest({ req: incoming, res: outgoing }));
    if (answered instanceof Promise)
      answered.then((response) => send(incoming, outgoing, response)).catch(() => outgoing.destroy());
    else send(incoming, outgoing, answered).catch(() => outgoing.destroy());
  };
}

/**
 * Whole answers of one turn of the event loop, sent together at its end. Each write by itself wakes the reader on the
 * other side and takes as long as all the rest; those of a burst find it awake. At 64 connections it is 1.9 times the requests.
 */
const waiting: { outgoing: ServerResponse; write: () => void }[] = [];
function sendWaiting(): void {
  for (const { outgoing, write } of waiting.splice(0)) {
    try {
      write();
    } catch {
      outgoing.destroy();
    }
  }
}

async function send(incoming: IncomingMessage, outgoing: ServerResponse, response: Response): Promise<void> {
  const convertible = response as Response & Convertible;
  if (!convertible._toNodeResponse) return sendNodeResponse(outgoing, response);
  const { status, headers, body } = convertible._toNodeResponse();
  const isWhole = body === undefined || body === null || typeof body === "string" || body instanceof Uint8Array;
  if (body instanceof FileBody && incoming.method !== "HEAD") {
    if (sendFile(outgoing, { status, headers }, body, responseSentListener(response))) return;
  }
  // Asked a second time it would be empty, so what is no whole body is handed on as it is.
  if (!isWhole)
    return sendNodeResponse(outgoing, { _toNodeResponse: () => ({ status, headers, body }) } as unknown as Response);
  const hasBody = incoming.method !== "HEAD" && body !== undefined && body !== null;
  if (waiting.length === 0) setImmediate(sendWaiting);
  const ended = hasBody ? responseSentListener(response) : undefined;
  const write = () => {
    outgoing.writeHead(status, headers);
    if (ended) sendInPieces(outgoing, body as Uint8Array, ended);
    else outgoing.end(hasBody ? body : undefined);
  };
  waiting.push({ outgoing, write });
}

/** So large that a fast reader does not notice; and what one who leaves did not take is known to within one of them. */
const PIECE_BYTES = 512 * 1024;

function sendInPieces(outgoing: ServerResponse, body: Uint8Array, ended: (unsentBytes: number) => void): void {
  let given = 0;
  let taken = 0;
  const next = (error?: Error | null) => {
    if (error) return;
    taken = given;
    const piece = body.subarray(given, given + PIECE_BYTES);
    given += piece.length;
    if (given < body.length) outgoing.write(piece, next);
    else outgoing.end(piece);
  };
  outgoing.once("finish", () => {
    taken = body.length;
  });
  // One that was closed before says so no more.
  if (outgoing.closed) return ended(body.length);
  outgoing.once("close", () => ended(body.length - taken));
  next();
}
