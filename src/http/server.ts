import { randomUUID } from "node:crypto";
import { H3, type H3Event, HTTPError } from "h3";
import { FastResponse } from "srvx";
import * as v from "valibot";
import { DatabaseBusy, isInDoubt, isUnreachable } from "../../storage/db/failures.ts";
import { InvalidKey } from "../../storage/objects/keys.ts";
import { StorageFull, StorageUnavailable } from "../../storage/objects/store.ts";
import type { App } from "../app.ts";
import { TooComplex, tooComplex } from "../lib/document-limits.ts";
import { HttpError } from "../lib/errors.ts";
import { recentRequests } from "../lib/recent-requests.ts";
import { diskOf } from "../limits/disk-reserve.ts";
import { admit } from "../limits/expensive.ts";
import type { Owner } from "../limits/fair-queue.ts";
import { audited } from "./audit.ts";
import { type Authenticator, createAuthenticator } from "./auth.ts";
import { readJson } from "./body.ts";
import { idleLimitMs, watchBody } from "./body-idle.ts";
import { clientAddresses } from "./client-address.ts";
import { corsHeaders, preflightHeaders } from "./cors.ts";
import { discardRest } from "./discard-rest.ts";
import { findReplay, keepAnswer, repeatOf } from "./idempotency.ts";
import { createLimits, type Limits } from "./limits.ts";
import { metricsOf } from "./metrics.ts";
import { type Context, isBodyRequired, type Method, Reply, type Route } from "./route.ts";
import { streamOf } from "./stream.ts";
import { validate } from "./validate.ts";

const DEFAULT_BODY_BYTES = 1 << 20;
/** Requests of this size are served from the reserve of the disk: deleting, renaming and the like still work there. */
const SMALL_BODY = 32 * 1024;

export type HttpServer = { h3: H3; fetch(request: Request): Promise<Response>; authenticator: Authenticator };

/** All routes behind one door. */
export function createServer(app: App, routes: readonly Route[]): HttpServer {
  const h3 = new H3({ silent: true, onError: (error) => render(app, error, newRequestId(), null) });
  const authenticator = createAuthenticator(app);
  const limits = createLimits(app.config);
  const addressOf = clientAddresses(app.config.trusted_proxies);
  const pipeline: RequestPipeline = {
    authenticator,
    limits,
    addressOf: ({ req, runtime }) => {
      const peer = (runtime?.node?.req as Context["incoming"])?.socket.remoteAddress;
      return peer === undefined ? "local" : addressOf(peer, req.headers);
    },
  };
  const { requests } = metricsOf(app);
  const elsewhereMs = idleLimitMs(app.config.body_idle_seconds);
  for (const [path, methods] of byPath(routes)) {
    const allow = [...methods.keys()].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
    for (const [method, route] of methods) {
      const limitMs = idleLimitMs(app.config.body_idle_seconds, route);
      const row = { route, always: headersOf(route, method, allow) };
      const count = requests.of(path, method);
      const plain = async (event: H3Event) => {
        const from = performance.now();
        const recent = recentRequests.begin();
        const endWatch = watchBody(incomingOf(event), limitMs);
        const response = await answer(app, row, event, pipeline).finally(() => {
          endWatch();
          recentRequests.end(recent);
        });
        count(response.status, performance.now() - from);
        return response;
      };
      const handler = app.log.isLevelEnabled("debug") ? logged(app, route, pipeline, plain) : plain;
      h3.on(method, path, handler);
      if (method === "GET") h3.on("HEAD", path, handler);
    }
    const cors = [...methods.values()].find((route) => route.cors)?.cors;
    if (cors && !methods.has("OPTIONS")) {
      const headers = preflightHeaders(cors, allow);
      h3.on("OPTIONS", path, () => renderReply(new Reply(204, undefined, headers), newRequestId()));
    }
    h3.all(path, (event) => {
      watchBody(incomingOf(event), elsewhereMs);
      const error = new HttpError(
        405,
        "method_not_allowed",
        `${event.req.method} is not possible here; use ${allow}.`,
        { headers: { allow } },
      );
      return render(app, error, newRequestId(), event);
    });
  }
  const countElsewhere = requests.of("(none)", "ANY");
  h3.all("/**", (event) => {
    watchBody(incomingOf(event), elsewhereMs);
    countElsewhere(404, 0);
    return render(app, nothingHere(), newRequestId(), event);
  });
  return { h3, authenticator, fetch: async (request) => h3.fetch(request) };
}

type RequestPipeline = { authenticator: Authenticator; limits: Limits; addressOf(event: H3Event): string };
type Row = { route: Route; always: Record<string, string> | undefined };

const incomingOf = ({ runtime }: H3Event) => runtime?.node?.req as Context["incoming"];

/** What the row says of all its answers. */
function headersOf({ cors, headers }: Route, method: Method, allow: string): Row["always"] {
  const ofCors = cors && (method === "OPTIONS" ? preflightHeaders(cors, allow) : corsHeaders(cors));
  return cors || headers ? { ...headers, ...ofCors } : undefined;
}

/** By route, never by address: an address may hold a token. */
function logged(
  app: App,
  route: Route,
  { addressOf }: RequestPipeline,
  handler: (event: H3Event) => Promise<Response>,
) {
  return async (event: H3Event) => {
    const from = performance.now();
    const response = await handler(event);
    const ms = Math.round(performance.now() - from);
    const { method } = event.req;
    app.log.debug({ method, route: route.path, status: response.status, ms, client: addressOf(event) }, "request");
    return response;
  };
}

function byPath(routes: readonly Route[]): Map<string, Map<Method, Route>> {
  const table = new Map<string, Map<Method, Route>>();
  for (const route of routes) {
    const methods = table.get(route.path) ?? new Map<Method, Route>();
    for (const method of [route.method, route.alias]) {
      if (!method) continue;
      if (methods.has(method)) throw new Error(`Two routes for ${method} ${route.path}`);
      methods.set(method, route);
    }
    table.set(route.path, methods);
  }
  return table;
}

const nothingHere = () => new HttpError(404, "not_found", "There is nothing at this address.");
const newRequestId = () => `req_${randomUUID()}`;

/** match (done) → authenticate → scope → rate limit → params → bounded body → handle → render. */
async function answer(
  app: App,
  { route, always }: Row,
  event: H3Event,
  { authenticator, limits, addressOf }: RequestPipeline,
): Promise<Response> {
  const requestId = newRequestId();
  // What is refused for its credential is not counted: it is told what is allowed, and not what is left.
  let every = route.limit ? { ...always, ...limits.policyOf(route.limit) } : always;
  try {
    const { headers } = event.req;
    const caller = await authenticator.authenticate(route, headers, event.url.searchParams);
    const address = addressOf(event);
    if (route.limit) every = { ...always, ...(await limits.consume(route.limit, caller, address)) };
    const limit: Context["limit"] = async (name) => void (await limits.consume(name, caller, address));
    const context = await contextOf(app, route, event, { caller, requestId, address, limit });
    const repeat = repeatOf(route, caller, headers, context.url.pathname, context.body);
    if (repeat) {
      const replay = await findReplay(app.db, app, repeat);
      if (replay) return renderReply(await restored(route, context, replay), requestId, every);
      // Asked again inside the transaction: of two requests at once the second must find the first's answer.
      context.commit = (work) =>
        app.write(async (tx) => {
          const earlier = await findReplay(tx, app, repeat);
          if (earlier) return earlier;
          const result = await work(tx);
          const reply = asReply(route, result);
          await keepAnswer(tx, app, repeat, reply.status, reply.body, route.idempotent?.secretFields ?? []);
          return result;
        });
    }
    const handled = await audited(route, context, addressOf(event), () => admitted(route, context));
    // Only now, when what the first of two requests wrote is committed and can be read.
    const isRepeat = handled instanceof Reply && "idempotent-replayed" in handled.headers;
    const result = isRepeat ? await restored(route, context, handled) : handled;
    if (result instanceof Response) {
      result.headers.set("x-request-id", requestId);
      for (const name in every) result.headers.set(name, every[name] as string);
      return result;
    }
    return renderReply(asReply(route, result), requestId, every);
  } catch (error) {
    discardRest(incomingOf(event));
    return render(app, error, requestId, event, { route, always: every });
  }
}

/** Runs the handler, for an expensive operation when its turn has come; what is streamed keeps its place until it is sent. */
async function admitted(route: Route, context: Context): Promise<unknown> {
  const { expensive } = route;
  // A handler that reads the body itself waits when it has it: a slow sender keeps no place.
  if (!expensive || route.raw) return route.handle(context);
  const owner = ownerOf(context);
  const permit = await admit(context.app, expensive, owner, context.signal);
  let stream: ReturnType<typeof streamOf>;
  try {
    const result = await route.handle(context);
    stream = result instanceof Response ? streamOf(result) : undefined;
    stream?.once("close", () => permit.release());
    return result;
  } finally {
    if (!stream || stream.closed) permit.release();
  }
}

/** Whose places an operation takes. */
const ownerOf = ({ caller, address }: Context): Owner =>
  caller.kind === "key" || caller.kind === "batch" ? caller.tenantId : caller.kind === "admin" ? "admin" : address;

async function restored(route: Route, context: Context, { status, body, headers }: Reply): Promise<Reply> {
  return new Reply(status, (await route.idempotent?.restore?.(context, body)) ?? body, headers);
}

type Asked = Pick<Context, "caller" | "requestId" | "address" | "limit">;

async function contextOf(app: App, route: Route, event: H3Event, asked: Asked): Promise<Context> {
  const { req } = event;
  const incoming = incomingOf(event);
  const named = decoded(event.context.params);
  const params = route.params ? validate(route.params, named, "params") : named;
  const query = route.query ? validate(route.query, Object.fromEntries(event.url.searchParams), "query") : {};
  const body = route.body ? validate(route.body, await readBody(app, route, req, incoming), "body") : undefined;
  return Object.assign(new ContextBase(req), {
    app,
    ...asked,
    params,
    query,
    body,
    headers: req.headers,
    method: req.method,
    url: event.url,
    incoming,
    commit: ((work) => app.write(work)) as Context["commit"],
  });
}

/**
 * The signal is made when it is first read, since most requests need none. Its accessor is on a prototype: one in each
 * context would be a hidden class each, of 3 KB, which only the long collection frees.
 */
class ContextBase {
  readonly request: Request;
  constructor(request: Request) {
    this.request = request;
  }
  get signal(): AbortSignal {
    return this.request.signal;
  }
}

async function readBody(app: App, route: Route, request: Request, incoming: Context["incoming"]): Promise<unknown> {
  await requireRoom(app, request, incoming);
  if (route.form) return (await import("./form.ts")).readForm({ request, incoming }, route.form.maxFileBytes);
  const body = await readJson(
    { request, incoming },
    { maxBytes: route.maxBodyBytes ?? DEFAULT_BODY_BYTES, oversized: route.oversized },
  );
  // `null` is a body that is not an object.
  if (body !== undefined) return body;
  // `{}` stands in for an absent body, so that the error names the missing fields; without such fields it names the body.
  if (route.body && isBodyRequired(route) && v.is(route.body, {}))
    throw new HttpError(422, "parameter_missing", "body: is required; send a JSON object.", {
      details: { body: ["is required"] },
    });
  return {};
}

/** What a route makes of a large body goes to the database: it must fit on the disk above the reserve. Throws StorageFull. */
async function requireRoom(app: App, request: Request, incoming: Context["incoming"]): Promise<void> {
  const length = request.headers.get("content-length");
  // A body in chunks does not say its size.
  const isLarge = length === null ? incoming?.headers["transfer-encoding"] !== undefined : Number(length) > SMALL_BODY;
  if (isLarge && app.config.database_url === undefined) await diskOf(app).ensure(Number(length ?? 0));
}

function decoded(params: Record<string, string> = {}): Record<string, string> {
  try {
    const plain = Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)] as const);
    // The database cuts text at NUL: nothing has such a name.
    if (plain.every(([, value]) => !value.includes("\0"))) return Object.fromEntries(plain);
  } catch {
    // Told below.
  }
  throw nothingHere();
}

/** Status of a plain value: the first 2xx that the row promises. */
function asReply(route: Route, result: unknown): Reply {
  if (result instanceof Reply) return result;
  const status =
    Object.keys(route.responses)
      .map(Number)
      .find((code) => code >= 200 && code < 300) ?? 200;
  return new Reply(status, result);
}

function renderReply(reply: Reply, requestId: string, more?: Record<string, string>): Response {
  const headers: Record<string, string> = {
    "x-request-id": requestId,
    "cache-control": "no-store",
    ...more,
    ...reply.headers,
  };
  if (reply.status === 204 || reply.body === undefined) {
    // Without it Node would send an empty body in chunks.
    if (reply.status !== 204) headers["content-length"] ??= "0";
    return new FastResponse(null, { status: reply.status, headers });
  }
  headers["content-type"] ??= "application/json; charset=utf-8";
  return new FastResponse(JSON.stringify(reply.body), { status: reply.status, headers });
}

/** The one place where an error becomes an answer. What is not an HttpError is logged whole and told as nothing. */
function render(app: App, thrown: unknown, requestId: string, event: H3Event | null, row?: Row): Response {
  const error = toHttpError(thrown);
  if (error.status >= 500) {
    app.log.error(
      {
        request_id: requestId,
        method: event?.req.method,
        route: row?.route.path,
        err: error.status === 500 || thrown instanceof StorageUnavailable || isUnavailable(thrown) ? thrown : undefined,
        code: error.code,
      },
      "request failed",
    );
  }
  const { headers, ...extra } = error.extra;
  const body = { error: error.message, code: error.code, ...extra, request_id: requestId };
  return renderReply(new Reply(error.status, body, headers), requestId, row?.always);
}

const isUnavailable = (thrown: unknown) => isUnreachable(thrown) || thrown instanceof DatabaseBusy;

function toHttpError(thrown: unknown): HttpError {
  // h3 could not even read the address (a broken percent-encoding, say): there is nothing at such a one.
  if (thrown instanceof HTTPError && thrown.status === 400) return nothingHere();
  if (thrown instanceof HttpError) return thrown;
  if (thrown instanceof TooComplex) return tooComplex(thrown.message);
  if (thrown instanceof InvalidKey) return new HttpError(422, "validation_failed", thrown.message);
  if (thrown instanceof StorageFull)
    return new HttpError(507, "storage_full", "Storage is full; nothing was changed. Free some space and try again.");
  if (thrown instanceof StorageUnavailable)
    return new HttpError(503, "storage_unavailable", "Storage does not answer; try again.", {
      headers: { "retry-after": "5" },
    });
  if (isUnavailable(thrown)) {
    const done = isInDoubt(thrown) ? "whether this was done is not known: look before you try again" : "try again";
    return new HttpError(503, "database_unavailable", `The database does not answer; ${done}.`, {
      headers: { "retry-after": "5" },
    });
  }
  return new HttpError(500, "internal_server_error", "Something went wrong on the server.");
}
