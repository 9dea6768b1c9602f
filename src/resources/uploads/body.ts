import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { Context } from "../../http/route.ts";
import { HttpError } from "../../lib/errors.ts";

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
