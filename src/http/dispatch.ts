import { type App, forApp } from "../app.ts";

type Fetch = (request: Request) => Promise<Response>;

const bound = forApp((): { fetch: Fetch | null } => ({ fetch: null }));

/** Once, when the server of an app exists. */
export function bindDispatch(app: App, fetch: Fetch): void {
  bound(app).fetch = fetch;
}

/**
 * Answers a request as if it had arrived from outside, without a connection: with authentication, limits and validation. The
 * URL is one of this server.
 */
export function dispatch(app: App, request: Request): Promise<Response> {
  const { fetch } = bound(app);
  if (!fetch) throw new Error("The server does not run yet.");
  return fetch(request);
}
