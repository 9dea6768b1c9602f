import { randomUUID } from "node:crypto";
import { H3, type H3Event, HTTPError } from "h3";
import { FastResponse } from "srvx";
import * as v from "valibot";
import type { App } from "#app.ts";
import { arrival, HttpError, recentRequests, sha256, TooComplex, tooComplex } from "#lib/base";
import { DatabaseBusy, isInDoubt, isUnreachable } from "#storage/db/failures.ts";
import { InvalidKey } from "#storage/objects/keys.ts";
import { StorageFull, StorageUnavailable } from "#storage/objects/store.ts";
import { diskOf } from "../limits/disk-reserve.ts";
import { admit } from "../limits/expensive.ts";
import { audited } from "./audit.ts";
import { type Authenticator, createAuthenticator } from "./auth.ts";
import { readJson } from "./body.ts";
import { idleLimitMs, watchBody } from "./body-idle.ts";
import { clientAddresses } from "./client-address.ts";
import { corsHeaders, preflightHeaders } from "./cors.ts";
import { requireJsonType, requireSameOrigin } from "./cross-site.ts";
import { discardRest } from "./discard-rest.ts";
import { dispatchedAddress } from "./dispatch.ts";
import { findReplay, repeatOf, requireRoom, storeResponse } from "./idempotency.ts";
import { createLimits, type Limits } from "./limits.ts";
import { metricsOf } from "./metrics.ts";
import { queueOwner } from "./queue-owner.ts";
import { inRequestSpan } from "./request-span.ts";
import { type Context, isBodyRequired, JsonText, type Method, Reply, type Route } from "./route.ts";
import { streamOf } from "./stream.ts";
import { validate } from "./validate.ts";

const DEFAULT_BODY_BYTES = 1 << 20;
/** Requests up to this size may use the disk reserve, so that deleting, renaming and the like work on a full disk. */
const SMALL_BODY = 32 * 1024;

export type HttpServer = { h3: H3; fetch(request: Request): Promise<Response>; authenticator: Authenticator };

/** The request pipeline of all routes. */
export function createServer(app: App, routes: readonly Route[]): HttpServer {
  const h3 = new H3({ silent: true, onError: (error) => render(app, error, newRequestId(), null) });
  const authenticator = createAuthenticator(app);
  const limits = createLimits(app);
  const addressOf = clientAddresses(app.config.trusted_proxies);
  const pipeline: RequestPipeline = {
    authenticator,
    limits,
    addressOf: ({ req, runtime }) => {
      const peer = (runtime?.node?.req as Context["incoming"])?.socket.remoteAddress;
      return peer === undefined ? (dispatchedAddress(req) ?? "local") : addressOf(peer, req.headers);
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
        // What a client makes of `assets/5/tags/..` (WHATWG URL, 4.4): it must not delete the asset.
        if (method === "DELETE" && event.url.pathname.endsWith("/"))
          return render(app, nothingHere(), newRequestId(), event);
        await arrival();
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
    const first = methods.values().next().value as Route;
    const cors = [...methods.values()].find((route) => route.cors)?.cors;
    if (cors && !methods.has("OPTIONS")) {
      h3.on("OPTIONS", path, ({ req }) => {
        const headers = preflightHeaders(cors, allow, req.headers.get("access-control-request-headers"));
        return renderReply(new Reply(204, undefined, headers), newRequestId());
      });
    }
    h3.all(path, (event) => {
      watchBody(incomingOf(event), elsewhereMs);
      const error = new HttpError(405, "method_not_allowed", `${event.req.method} is not allowed here; use ${allow}.`, {
        headers: { allow },
      });
      return render(app, error, newRequestId(), event, { route: first, always: undefined });
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

/** Headers that the row defines for all its responses. */
function headersOf({ cors, headers }: Route, method: Method, allow: string): Row["always"] {
  const ofCors = cors && (method === "OPTIONS" ? preflightHeaders(cors, allow) : corsHeaders(cors));
  return cors || headers ? { ...headers, ...ofCors } : undefined;
}

/** Logged by route, never by URL: a URL may contain a token. */
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

const nothingHere = () => new HttpError(404, "not_found", "There is nothing at this URL.");
const newRequestId = () => `req_${randomUUID()}`;

/** match (done) → authenticate → scope → rate limit → params → bounded body → handle → render. */
async function answer(
  app: App,
  { route, always }: Row,
  event: H3Event,
  { authenticator, limits, addressOf }: RequestPipeline,
): Promise<Response> {
  const requestId = newRequestId();
  // A request that is refused for its credential is not counted: its headers contain the policy, not the remaining
  // quota.
  let every = route.limit ? { ...always, ...limits.policyOf(route.limit) } : always;
  try {
    const { headers, method } = event.req;
    const credentials = { headers, query: event.url.searchParams, method, address: () => addressOf(event) };
    const caller = await authenticator.authenticate(route, credentials);
    if (route.beginsSession) {
      requireSameOrigin(headers, app.baseUrl());
      requireJsonType(headers);
    }
    const address = addressOf(event);
    if (route.limit) every = { ...always, ...(await limits.consume(route.limit, caller, address)) };
    const limit: Context["limit"] = async (name) => void (await limits.consume(name, caller, address));
    const recheck = async () => void (await authenticator.authenticate(route, credentials));
    const context = await contextOf(app, route, event, { caller, requestId, address, limit, recheck });
    const repeat = repeatOf(route, context);
    if (repeat) {
      // The body of a raw route is not known yet.
      const replay = route.raw ? null : await findReplay(app.db, app, repeat);
      if (replay) return renderReply(await restored(route, context, replay), requestId, every);
      await requireRoom(app.db, repeat);
      // Checked again inside the transaction: the second of two concurrent requests must find the response of the
      // first.
      context.identify = (body) => {
        repeat.requestHash = sha256(`${repeat.requestHash}\n${JSON.stringify(body)}`);
      };
      context.earlier = () => findReplay(app.db, app, repeat);
      context.commit = (work) =>
        app.write(async (tx) => {
          const earlier = await findReplay(tx, app, repeat);
          if (earlier) return earlier;
          const result = await work(tx);
          const reply = asReply(route, result);
          await storeResponse(tx, app, repeat, reply.status, reply.body, route.idempotent?.secretFields ?? []);
          return result;
        });
    }
    const work = () => audited(route, context, addressOf(event), () => admitted(route, context));
    const isDispatched = dispatchedAddress(event.req) !== undefined;
    const statusOf = (result: unknown) => (result instanceof Response ? result : asReply(route, result)).status;
    const { tracer } = app;
    const handled = await (tracer ? inRequestSpan(tracer, route, context, { isDispatched, work, statusOf }) : work());
    // Read after the wait, when the write of the first of two requests has committed.
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

/**
 * Runs the handler, for an expensive operation after admission by the fair queue. A streamed response keeps its slot
 * until it is sent.
 */
async function admitted(route: Route, context: Context): Promise<unknown> {
  const { expensive } = route;
  // A handler that reads the body itself waits after reading it, so that a slow sender takes no slot.
  if (!expensive || route.raw) return route.handle(context);
  const owner = queueOwner(context);
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

async function restored(route: Route, context: Context, { status, body, headers }: Reply): Promise<Reply> {
  return new Reply(status, (await route.idempotent?.restore?.(context, body)) ?? body, headers);
}

type CallDetails = Pick<Context, "caller" | "requestId" | "address" | "limit" | "recheck">;

async function contextOf(app: App, route: Route, event: H3Event, call: CallDetails): Promise<Context> {
  const { req } = event;
  const incoming = incomingOf(event);
  const named = decoded(event.context.params);
  const params = route.params ? validate(route.params, named, "params") : named;
  const query = route.query ? validate(route.query, Object.fromEntries(event.url.searchParams), "query") : {};
  const body = route.body ? validate(route.body, await readBody(app, route, req, incoming), "body") : undefined;
  return Object.assign(new ContextBase(req), {
    app,
    ...call,
    params,
    query,
    body,
    headers: req.headers,
    method: req.method,
    url: event.url,
    incoming,
    commit: ((work) => app.write(work)) as Context["commit"],
    earlier: async () => null,
    identify: () => {},
  });
}

/**
 * Created on first use, because most requests need no signal. The accessor is on a prototype: one in each context would
 * create a hidden class of 3 KB each, which only a full collection frees.
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
  await requireDiskSpace(app, request, incoming);
  if (route.form) return (await import("./form.ts")).readForm({ request, incoming }, route.form.maxFileBytes);
  const body = await readJson(
    { request, incoming },
    { maxBytes: route.maxBodyBytes ?? DEFAULT_BODY_BYTES, oversized: route.oversized },
  );
  // `null` is a body that is not an object.
  if (body !== undefined) return body;
  // `{}` replaces a missing body, so that the error names the missing fields; without required fields it names the
  // body.
  if (route.body && isBodyRequired(route) && v.is(route.body, {}))
    throw new HttpError(422, "parameter_missing", "body: is required; send a JSON object.", {
      details: { body: ["is required"] },
    });
  return {};
}

/** Large bodies end up in the database, which must not grow into the disk reserve. Throws StorageFull. */
async function requireDiskSpace(app: App, request: Request, incoming: Context["incoming"]): Promise<void> {
  const length = request.headers.get("content-length");
  // A chunked body does not announce its size.
  const isLarge = length === null ? incoming?.headers["transfer-encoding"] !== undefined : Number(length) > SMALL_BODY;
  if (isLarge && app.config.database_url === undefined) await diskOf(app).ensure(Number(length ?? 0));
}

function decoded(params: Record<string, string> = {}): Record<string, string> {
  try {
    const plain = Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)] as const);
    // The database truncates text at NUL, so no resource has such a name.
    if (plain.every(([, value]) => !value.includes("\0"))) return Object.fromEntries(plain);
  } catch {
    // Declared below.
  }
  throw nothingHere();
}

/** The status of a plain value: the first 2xx that the row declares. */
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
    // Without a length, Node would send an empty body in chunked encoding.
    if (reply.status !== 204) headers["content-length"] ??= "0";
    return new FastResponse(null, { status: reply.status, headers });
  }
  headers["content-type"] ??= "application/json; charset=utf-8";
  const text = reply.body instanceof JsonText ? reply.body.text : JSON.stringify(reply.body);
  return new FastResponse(text, { status: reply.status, headers });
}

/**
 * The only place where errors become responses. An error that is not an HttpError is logged in full and reported
 * without detail.
 */
function render(app: App, thrown: unknown, requestId: string, event: H3Event | null, row?: Row): Response {
  const error = toHttpError(thrown);
  if (error.status >= 500) {
    app.log[isRefusal(thrown) ? "debug" : "error"](
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
  const own = row?.route.showError?.(error);
  if (own) return renderReply(own, requestId, row?.always);
  const { headers, ...extra } = error.extra;
  const body = { error: error.message, code: error.code, ...extra, request_id: requestId };
  return renderReply(new Reply(error.status, body, headers), requestId, row?.always);
}

/** A limit that clients reach at will, not a fault; the response says when to retry. */
const isRefusal = (thrown: unknown) =>
  thrown instanceof HttpError && (thrown.code === "busy" || thrown.code === "segment_not_ready");

const isUnavailable = (thrown: unknown) => isUnreachable(thrown) || thrown instanceof DatabaseBusy;

function toHttpError(thrown: unknown): HttpError {
  // h3 could not parse the URL (an invalid percent-encoding, for example): no resource has such a URL.
  if (thrown instanceof HTTPError && thrown.status === 400) return nothingHere();
  if (thrown instanceof HttpError) return thrown;
  if (thrown instanceof TooComplex) return tooComplex(thrown.message);
  if (thrown instanceof InvalidKey) return new HttpError(422, "validation_failed", thrown.message);
  if (thrown instanceof StorageFull)
    return new HttpError(507, "storage_full", "Storage is full; nothing was changed. Free some space and try again.");
  if (thrown instanceof StorageUnavailable)
    return new HttpError(503, "storage_unavailable", "Storage is not responding; try again.", {
      headers: { "retry-after": "5" },
    });
  if (isUnavailable(thrown)) {
    const done = isInDoubt(thrown)
      ? "it is not known whether the change was made; check before you retry"
      : "try again";
    return new HttpError(503, "database_unavailable", `The database is not responding; ${done}.`, {
      headers: { "retry-after": "5" },
    });
  }
  return new HttpError(
    500,
    "internal_server_error",
    "Internal server error; the log has details under this request_id.",
  );
}
