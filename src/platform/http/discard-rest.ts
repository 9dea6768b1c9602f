import type { IncomingMessage } from "node:http";
import { setTimeout } from "#lib/base";

/** Like nginx's lingering_timeout: data that arrives later is cut off. */
const LINGER_MS = 5000;

/**
 * Reads and discards the rest of a refused request. Closing a connection with unread data resets it, and the response
 * is lost (RFC 9112, 9.6); keeping it with the body paused would block it forever.
 */
export function discardRest(incoming: IncomingMessage | undefined): void {
  if (!incoming || incoming.complete || incoming.destroyed) return;
  const timer = setTimeout(() => incoming.socket?.destroy(), LINGER_MS);
  incoming
    .on("error", () => {})
    .once("close", () => clearTimeout(timer))
    .resume();
}
