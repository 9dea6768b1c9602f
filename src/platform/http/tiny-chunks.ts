import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setTimeout } from "#lib/base";
import { suspect } from "./read-in-pieces.ts";

/** A body may begin with so many chunks of any size. */
const CHUNKS = 256;
/** Then they have at least so many bytes on average, of which each read from the network may cut one in two. */
const MIN_BYTES = 8;
/** The connection stays open so long, unread: a client that repeats the attack at once would only begin more of them. */
const LINGER_MS = 5000;

const ERROR = JSON.stringify({
  error: `The body has chunks of fewer than ${MIN_BYTES} bytes; send it in larger ones, or with a Content-Length.`,
  code: "tiny_chunks",
});
const RESPONSE = [
  "HTTP/1.1 400 Bad Request",
  "Connection: close",
  "Content-Type: application/json; charset=utf-8",
  `Content-Length: ${Buffer.byteLength(ERROR)}`,
  "",
  ERROR,
].join("\r\n");

/**
 * Refuses a body that has tiny chunks (RFC 9112, 7.1), with 400 where no response has begun: nothing more of its connection is
 * read, which is closed a little later. Each chunk costs an event and a buffer, whatever its size, so limits of bytes do not
 * limit what such a body costs.
 */
export function refuseTinyChunks(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming.headers["transfer-encoding"] === undefined) return;
  const { socket } = incoming;
  let chunks = 0;
  let bytes = 0;
  let isRefused = false;
  // Node's parser passes each chunk to this method.
  incoming.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
    if (isRefused) return false;
    if (chunk !== null) {
      chunks++;
      bytes += chunk.length;
    }
    if (chunks <= CHUNKS || bytes >= chunks * MIN_BYTES) return Readable.prototype.push.call(incoming, chunk, encoding);
    isRefused = true;
    suspect(socket);
    incoming._read = () => {};
    socket.pause();
    if (!outgoing.headersSent) socket.write(RESPONSE);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
    return false;
  };
}
