import { clientClosed, pacer } from "#lib/base";
import type { Context } from "#platform/http/route.ts";
import type { LiveStream } from "../registry.ts";

/** A request of a viewer who may watch. */
export type ViewerRequest = {
  context: Context;
  /** Which caches may store it: what is signed is for one viewer. */
  scope: "public" | "private";
  /** Empty without a token. */
  token: string;
  /** Counts what was sent. Negative for bytes that were counted, but not delivered. */
  onSent(bytes: number): void;
};

/**
 * In target durations: how long caches may keep a playlist or manifest of the current state, in which players look for what
 * is new every half target duration at most.
 */
const FRESH = 0.5;

/** In seconds; at least 1. */
export const freshSeconds = ({ timeline }: Pick<LiveStream, "timeline">, targets = FRESH): number =>
  Math.max(1, Math.floor(targets * (timeline.facts().targetSeconds ?? 0)));

/** The request for a playlist or manifest counts as one of a viewer, who is identified by address, user agent and token. */
export function countViewer({ context, token }: ViewerRequest, { viewers }: Pick<LiveStream, "viewers">): void {
  const { app, address, headers } = context;
  viewers.see([address, headers.get("user-agent"), token].join("\n"), app.clock.now());
}

/**
 * Waits for something of a stream, and throws 499 when the client disconnects. All viewers of a stream wait for the same
 * part: each is answered within its share of the event loop.
 */
export async function whileConnected<T>(
  { context: { signal } }: ViewerRequest,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  try {
    return await wait(signal);
  } catch (error) {
    throw signal.aborted ? clientClosed() : error;
  } finally {
    await pacer()();
  }
}
