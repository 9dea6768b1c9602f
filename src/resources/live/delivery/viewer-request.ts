import type { Context } from "../../../http/route.ts";
import { clientClosed } from "../../../lib/errors.ts";

/** A request of a viewer who may watch. */
export type ViewerRequest = {
  context: Context;
  /** Of caches: what is signed is for one viewer. */
  scope: "public" | "private";
  /** Counts what was sent. Negative for bytes that were counted, but not delivered. */
  onSent(bytes: number): void;
};

/** Waits for something of a broadcast, and throws 499 when the client disconnects. */
export async function whileConnected<T>(
  { context: { signal } }: ViewerRequest,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  try {
    return await wait(signal);
  } catch (error) {
    throw signal.aborted ? clientClosed() : error;
  }
}
