import { HttpError } from "../lib/errors.ts";
import type { Context } from "./route.ts";

/** Nobody reads this answer. */
const gone = () => new HttpError(400, "incomplete_body", "The client closed the connection; nothing was done.");

/**
 * Runs `work` with a signal that aborts when the connection of the request closes. An IncomingMessage itself says
 * "close" once its body is read, so the socket is watched.
 */
export async function whileConnected<T>(
  { incoming, request }: Pick<Context, "incoming" | "request">,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (!incoming) return work(request.signal);
  const { socket } = incoming;
  const left = new AbortController();
  const onClose = () => left.abort(gone());
  if (socket.destroyed) onClose();
  socket.once("close", onClose);
  try {
    return await work(left.signal);
  } finally {
    socket.off("close", onClose);
  }
}
