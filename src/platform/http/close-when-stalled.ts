import type { ServerResponse } from "node:http";

/** A client that takes nothing for this long is disconnected. */
export const STALL_MS = 60_000;

/**
 * Closes the connection of a client that takes nothing of what waits for it. Node restarts the time whenever the kernel takes
 * bytes. A body that is silent itself, such as a stream of events, leaves nothing waiting and stays open.
 */
export function closeWhenStalled(outgoing: ServerResponse, stallMs: number): void {
  outgoing.setTimeout(stallMs, () => {
    if (outgoing.writableLength > 0) outgoing.destroy();
  });
  // Before Node sets the time for the next request.
  outgoing.prependOnceListener("finish", () => outgoing.setTimeout(0));
}
