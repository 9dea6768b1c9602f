import { type App, forApp } from "#app.ts";
import type { Authenticator, Credentials } from "./auth.ts";
import type { Caller } from "./caller.ts";
import type { Route } from "./route.ts";

type Server = { fetch(request: Request): Promise<Response>; authenticator: Authenticator };

const bound = forApp((): { server: Server | null } => ({ server: null }));

/** Once, when the server of an app exists. */
export function bindDispatch(app: App, server: Server): void {
  bound(app).server = server;
}

function serverOf(app: App): Server {
  const { server } = bound(app);
  if (!server) throw new Error("The server does not run yet.");
  return server;
}

/** The addresses of the clients for which requests are dispatched. */
const addresses = new WeakMap<Request, string>();
/** The client's address of a dispatched request; undefined for another one. */
export const dispatchedAddress = (request: Request): string | undefined => addresses.get(request);

/**
 * Answers a request as if it had arrived from outside, without a connection: with authentication, limits and validation. The
 * URL is one of this server. `address`: of the client for which it is made.
 */
export function dispatch(app: App, request: Request, address: string): Promise<Response> {
  addresses.set(request, address);
  return serverOf(app).fetch(request);
}

/** The caller of a request that arrived in the form of another API. Throws 401 or 403, as the pipeline does for `route`. */
export const authenticate = (app: App, route: Route, credentials: Credentials): Promise<Caller> =>
  serverOf(app).authenticator.authenticate(route, credentials);
