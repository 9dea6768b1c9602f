import type { IncomingMessage } from "node:http";
import { setTimeout } from "#lib/base";
import type { Route } from "./route.ts";

/** Upper bound on routes without a credential, whatever the setting. */
const ANONYMOUS_MS = 20_000;
/** Interval of the checks. A timer per chunk would cost more than processing the chunk. */
const LOOK_MS = 1000;
const LOOKS = 8;

/** How long a request body may be idle, in ms. Without `route`: a URL that matches no route. */
export function idleLimitMs(bodyIdleSeconds: number, route?: Pick<Route, "credential">): number {
  const limitMs = bodyIdleSeconds * 1000;
  const isAnonymous = route === undefined || route.credential === "none";
  return isAnonymous ? Math.min(limitMs, ANONYMOUS_MS) : limitMs;
}

/**
 * Closes the connection of `incoming` when no byte of an unfinished body has arrived for `limitMs`, regardless of who reads the
 * body: JSON, a form, raw bytes, or no handler. While received bytes are unread here, the client waits for the server
 * and is not idle. The watch ends when the body is complete; otherwise it continues after the response.
 */
export function watchBody(incoming: IncomingMessage | undefined, limitMs: number): () => void {
  if (!incoming || incoming.complete || !hasBody(incoming)) return () => {};
  const { socket } = incoming;
  let bytes = socket.bytesRead;
  let since = performance.now();
  let timer: NodeJS.Timeout;
  const look = () => {
    if (incoming.complete || socket.destroyed) return;
    const now = performance.now();
    if (socket.bytesRead !== bytes || incoming.readableLength > 0) {
      bytes = socket.bytesRead;
      since = now;
    } else if (now - since >= limitMs) {
      socket.destroy();
      return;
    }
    again();
  };
  const again = () => {
    timer = setTimeout(look, Math.min(LOOK_MS, limitMs / LOOKS)).unref();
  };
  again();
  return () => {
    if (incoming.complete) clearTimeout(timer);
  };
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
