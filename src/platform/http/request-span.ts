import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { activeTraceparent, inSpan, TRACEPARENT, type Tracer } from "#lib/tracing";
import type { Caller } from "./caller.ts";
import type { Context, Route } from "./route.ts";

/** Forms of our API for clients of others, which the OpenAPI document does not contain. */
const OTHER_APIS = new Set(["/mux/**:path", "/mcp"]);

/**
 * Whether requests of a route are traced: those of the API, but no pages, media and health checks. Workers poll and send
 * heartbeats all the time, so of their requests only those with a trace.
 */
const isTraced = ({ hidden, path, credential }: Route, traceparent: string | null) =>
  (!hidden || OTHER_APIS.has(path)) && (credential !== "worker" || traceparent !== null);

/** Who may continue a trace, and thereby decide whether it is recorded: the operator, and clients with a key that a setting trusts. */
const isTrusted = ({ config }: App, { kind }: Caller) =>
  kind === "worker" || kind === "admin" || (config.trust_traceparent && kind !== "anyone");

type RequestWork<T> = { isDispatched: boolean; work: () => Promise<T>; statusOf: (result: T) => number };

/**
 * Runs the handler of an authenticated request in a span. The trace of a client that is not trusted is a link only: our own
 * sampler decides. `isDispatched`: made by the handler of another request, whose span is the parent. `statusOf` a result.
 */
export function inRequestSpan<T>(
  tracer: Tracer,
  route: Route,
  { app, caller, headers, method }: Context,
  { isDispatched, work, statusOf }: RequestWork<T>,
): Promise<T> {
  const outer = isDispatched ? activeTraceparent() : null;
  const sent = headers.get(TRACEPARENT);
  if (!isTraced(route, outer ?? sent)) return work();
  const isContinued = outer !== null || isTrusted(app, caller);
  const attributes = {
    "http.request.method": method,
    "http.route": route.path,
    ...(route.operationId !== undefined && { "vodbox.operation": route.operationId }),
    ...("tenantId" in caller && { "vodbox.tenant.id": caller.tenantId }),
  };
  const options = {
    kind: "server",
    attributes,
    parent: outer ?? (isContinued ? sent : null),
    isRemote: outer === null,
    link: isContinued ? null : sent,
  } as const;
  return inSpan(tracer, `${method} ${route.path}`, options, async (span) => {
    try {
      const result = await work();
      span.set({ "http.response.status_code": statusOf(result) });
      return result;
    } catch (error) {
      span.set({ "http.response.status_code": error instanceof HttpError ? error.status : 500 });
      throw error;
    }
  });
}
