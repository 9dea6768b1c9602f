import type { IncomingMessage } from "node:http";

/** As nginx's lingering_timeout: what is still coming after that is cut off. */
const LINGER_MS = 5000;

/**
 * Reads on and throws away what a refused request still sends. RFC 9112, 9.6: a connection that is closed on unread
 * bytes is reset, and the refusal is lost on its way; one that is kept with its body paused is stuck for ever.
 */
export function discardRest(incoming: IncomingMessage | undefined): void {
  if (!incoming || incoming.complete || incoming.destroyed) return;
  const timer = setTimeout(() => incoming.socket?.destroy(), LINGER_MS);
  incoming
    .on("error", () => {})
    .once("close", () => clearTimeout(timer))
    .resume();
}
