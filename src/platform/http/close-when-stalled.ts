import type { ServerResponse } from "node:http";

/** A client that takes nothing for this long is disconnected, like one that stops reading a stream. */
const STALL_MS = 60_000;

/** Node restarts the time whenever the kernel takes bytes, and closes the connection at its end. */
export function closeWhenStalled(outgoing: ServerResponse): void {
  outgoing.setTimeout(STALL_MS);
  // Before Node sets the time for the next request, which may also be a stream that is silent for long.
  outgoing.prependOnceListener("finish", () => outgoing.setTimeout(0));
}
