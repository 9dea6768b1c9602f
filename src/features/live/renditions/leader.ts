import { FastResponse } from "srvx";
import type { App, Peers } from "#app.ts";
import { clientClosed, HttpError } from "#lib/base";
import type { Context } from "#platform/http/route.ts";

/** Where the process that receives streams posts its address. */
const NAME = "live-encodes";
/** The headers of a worker's request and of its response that are passed on. */
const HEADERS = ["content-type", "x-svc-worker-token", "x-svc-admin-token", "x-svc-job-lease-token"];

/**
 * The process of a server that receives streams has their encodes. Makes requests of workers known to it that
 * arrive in other processes. `address`: its URL on the local machine.
 */
export const leadEncodes = (peers: Peers, address: string): Promise<void> => peers.post(NAME, address);

/**
 * Forwards a request of a worker to the process that receives streams. Null in that process, and while there is none.
 * `body` is called only for a request that is forwarded. Throws 503 `busy` when that process does not answer.
 */
export async function forwarded(
  { app, url, method, headers, signal }: Pick<Context, "app" | "url" | "method" | "headers" | "signal">,
  body?: () => string | ReadableStream,
): Promise<Response | null> {
  const leader = await leaderOf(app);
  if (leader === null) return null;
  const named = HEADERS.flatMap((name) => (headers.has(name) ? [[name, headers.get(name) as string]] : []));
  const response = await fetch(`${leader}${url.pathname}`, {
    method,
    headers: Object.fromEntries(named),
    signal,
    redirect: "error",
    ...(body && { body: body(), duplex: "half" }),
  } as RequestInit).catch(() => {
    if (signal.aborted) throw clientClosed();
    throw new HttpError(503, "busy", "The process that receives streams does not answer; try again.");
  });
  const type = response.headers.get("content-type");
  const common = { "cache-control": "no-store", ...(type && { "content-type": type }) };
  return new FastResponse(response.body, { status: response.status, headers: common });
}

async function leaderOf({ peers }: App): Promise<string | null> {
  if (!peers || peers.slot === LEADER) return null;
  const address = await peers.posted(NAME);
  return typeof address === "string" ? address : null;
}

/** The slot of the process that receives live streams. */
export const LEADER = 0;
