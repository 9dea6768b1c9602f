import type { IncomingMessage } from "node:http";
import { onSilence, setTimeout } from "#lib/base";

/** A response of S3 that does not arrive. */
export class TimedOut extends Error {
  readonly code = "ETIMEDOUT";
}

/** A response of S3 that is longer than any valid one. */
export class TooLong extends Error {}

/** `stallMs`: without a byte; `maxMs`: for the whole body. */
export type ReadLimits = { maxBytes: number; stallMs: number; maxMs: number };

/** The whole body as text. Throws TooLong, TimedOut, or the error of the connection, which is closed then. */
export async function readText(response: IncomingMessage, { maxBytes, stallMs, maxMs }: ReadLimits): Promise<string> {
  const late = () => new TimedOut("S3 did not complete its response in time.");
  const timer = setTimeout(() => response.destroy(late()), maxMs);
  failWhenStalled(response, stallMs, late);
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

/** Fails a body that S3 stops sending while its reader waits, after `stallMs` to twice as long. */
export function failWhenStalled(response: IncomingMessage, stallMs: number, failure: () => Error): void {
  const { socket } = response;
  onSilence(response, stallMs, () => response.complete || response.destroy(failure()), socket);
}
