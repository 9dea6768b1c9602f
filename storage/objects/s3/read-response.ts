import type { IncomingMessage } from "node:http";
import { setInterval, setTimeout } from "#lib/base";

/** A response of S3 that does not arrive. */
export class TimedOut extends Error {
  readonly code = "ETIMEDOUT";
}

/** A response of S3 that is longer than any valid one. */
export class TooLong extends Error {}

export type ReadLimits = { maxBytes: number; maxMs: number };

/** The whole body as text. Throws TooLong, TimedOut, or the error of the connection, which is closed then. */
export async function readText(response: IncomingMessage, { maxBytes, maxMs }: ReadLimits): Promise<string> {
  const timer = setTimeout(() => response.destroy(new TimedOut("S3 did not complete its response in time.")), maxMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      // Leaving the loop closes the connection.
      if (bytes > maxBytes) throw new TooLong(`S3 responded with more than ${maxBytes} bytes.`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Fails a body that S3 stops sending: its reader has taken everything, and nothing has arrived for `stallMs` to twice as
 * long. A body whose reader is slow has data that wait, and is not ended.
 */
export function failWhenStalled(response: IncomingMessage, stallMs: number, failure: () => Error): void {
  const { socket } = response;
  let seenBytes = -1;
  const timer = setInterval(() => {
    const isSilent = socket.bytesRead === seenBytes && response.readableLength === 0 && !response.complete;
    seenBytes = socket.bytesRead;
    if (isSilent) response.destroy(failure());
  }, stallMs);
  response.once("close", () => clearInterval(timer));
  // The end of a body that nobody reads is not reported.
  timer.unref();
}
