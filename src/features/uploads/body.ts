import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { HttpError } from "#lib/base";
import type { Context } from "#platform/http/route.ts";
import { NoSuchMultipart, ObjectTooLarge, PartsMismatch } from "#storage/objects/store.ts";

/** The bytes of a request; Node's own stream where there is a socket. */
export const bodyOf = ({ incoming, request }: Pick<Context, "incoming" | "request">): Readable =>
  incoming ?? (request.body ? Readable.fromWeb(request.body as ReadableStream) : Readable.from([]));

export const tooLarge = (maxBytes: number): never => {
  throw new HttpError(
    413,
    "payload_too_large",
    `The body is larger than the ${maxBytes} bytes announced; nothing was stored.`,
  );
};

/** Throws what a body that could not be stored is answered with: 413, 409 for parts that do not fit, 400 for one that ended early. */
export function bodyFailed(error: unknown, incoming: Context["incoming"]): never {
  if (error instanceof ObjectTooLarge) return tooLarge(error.maxBytes);
  if (error instanceof NoSuchMultipart || error instanceof PartsMismatch)
    throw new HttpError(409, "upload_conflict", error.message);
  // The client disconnected: no one receives this response, and it is not an error of the server.
  if (incoming?.destroyed && !incoming.complete)
    throw new HttpError(400, "incomplete_body", "The request body ended early; nothing was stored.");
  throw error;
}
