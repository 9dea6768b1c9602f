import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { type AuditedRoute, audited, describeCall } from "#platform/http/audit.ts";
import { readJson } from "#platform/http/body.ts";
import type { Caller, Scope, TenantCaller } from "#platform/http/caller.ts";
import { authenticate, dispatch } from "#platform/http/dispatch.ts";
import { type Context, Reply, type Route } from "#platform/http/route.ts";
import { validate } from "#platform/http/validate.ts";
import { invalidParameter } from "./errors.ts";
import { fields } from "./fields.ts";

type Schema = v.GenericSchema<unknown, unknown>;
const MAX_BODY_BYTES = 1 << 20;

/** A request in Mux's form, of a caller that is known. */
export type MuxCall = {
  app: App;
  caller: TenantCaller;
  context: Context;
  /** The named parts of the path. */
  params: Record<string, string>;
  /** Throws what is wrong with the query. */
  query<S extends Schema>(schema: S): v.InferOutput<S>;
  /** Reads the body once. Throws what is wrong with it. */
  body<S extends Schema>(schema: S): Promise<v.InferOutput<S>>;
  /**
   * Calls the API of vodbox with the caller's key. Throws its errors, with the names that `renamed` has for our fields. `null`: the
   * response has no body.
   */
  native<T = unknown>(method: string, path: string, body?: unknown, renamed?: Renamed): Promise<T>;
};

/** Our name of a field -> Mux's name of it. */
export type Renamed = Readonly<Record<string, string>>;

/** A row of the table of Mux's API. */
export type Endpoint = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `/video/v1/assets/:id` */
  path: string;
  /** What the activity of the tenant calls it: for changes, as our own operation, where there is one. */
  operation?: string;
  /** Any one of these. */
  scopes: readonly Scope[];
  /** The status of the response; the default is 200. */
  status?: 200 | 201 | 204;
  /** The handler reads the query. Without it, every parameter is refused. */
  hasQuery?: true;
  /** A request other than GET and DELETE that has no body. The handler of every other one reads it. */
  hasNoBody?: true;
  /** What `data` of the response is; a `Reply` is the whole response. */
  handle(call: MuxCall): unknown;
};

export const endpoint = (row: Endpoint): Endpoint => row;

/** Finds the endpoint of a path. Throws 404. */
function match(endpoints: readonly Endpoint[], method: string, path: string) {
  const parts = path.split("/");
  for (const row of endpoints) {
    if (row.method !== method) continue;
    const names = row.path.split("/");
    if (names.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const isSame = names.every((name, index) => {
      const part = parts[index] as string;
      if (!name.startsWith(":")) return name === part;
      params[name.slice(1)] = part;
      return part !== "";
    });
    if (isSame) return { row, params };
  }
  return notFound("endpoint: vodbox does not have this part of Mux's API");
}

/** The key in the password of `Authorization: Basic` (RFC 7617), or as a bearer token. The user name is ignored. */
function keyIn(headers: Headers): string | null {
  const [, scheme = "", value = ""] = /^(Bearer|Basic) +(\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
  if (/^bearer$/i.test(scheme)) return value;
  const [, password] = /:(.*)/s.exec(Buffer.from(value, "base64").toString("utf8")) ?? [];
  // Headers cannot contain other characters.
  return password !== undefined && /^[\x21-\x7e]+$/.test(password) ? password : null;
}

/** Answers a request. Throws the errors of the API of vodbox. */
export async function answer(endpoints: readonly Endpoint[], context: Context, path: string): Promise<Reply> {
  const { app, method, url, request, incoming } = context;
  const { row, params } = match(endpoints, method === "HEAD" ? "GET" : method, path);
  const key = keyIn(context.headers);
  if (key === null)
    throw new HttpError(401, "unauthorized", "Send the API key as the password of Basic authentication.");
  const headers = new Headers({ "x-api-key": key });
  const caller = await authenticate(app, { ...rules(row), method: row.method } as Route, {
    headers,
    query: new URLSearchParams(),
    method,
    address: () => context.address,
  });
  let sent: Promise<unknown> | undefined;
  const call: MuxCall = {
    app,
    caller: tenantCaller(caller),
    context,
    params,
    query(schema) {
      for (const name of new Set(url.searchParams.keys()))
        if (url.searchParams.getAll(name).length > 1) invalidParameter(name.slice(0, 50), "must be given once");
      return validate(schema, Object.fromEntries(url.searchParams), "query");
    },
    async body(schema) {
      sent ??= readJson({ request, incoming }, { maxBytes: MAX_BODY_BYTES });
      const body = (await sent) ?? {};
      describeCall({ body });
      return validate(schema, body, "body");
    },
    async native<T>(way: string, target: string, body?: unknown, renamed: Renamed = {}): Promise<T> {
      const own = new Headers(headers);
      if (body !== undefined && !(body instanceof FormData)) own.set("content-type", "application/json");
      const text = body instanceof FormData ? body : JSON.stringify(body);
      const init = { method: way, headers: own, ...(body !== undefined && { body: text as string }) };
      const response = await dispatch(app, new Request(new URL(target, app.baseUrl()), init), context.address);
      const received = await response.text();
      if (response.ok) return (received === "" ? null : JSON.parse(received)) as T;
      throw errorOf(response, received, renamed);
    },
  };
  if (!row.hasQuery) call.query(fields({}));
  if (row.hasNoBody || method === "DELETE") await call.body(fields({}));
  const own: Context = Object.assign(Object.create(context), { caller, params });
  const result = await audited(auditedRow(row), own, context.address, () => row.handle(call));
  if (result instanceof Reply) return result;
  const { status = 200 } = row;
  return status === 204 ? new Reply(204, undefined) : new Reply(status, { data: result });
}

/** Its target has our name for the resource. */
const auditedRow = ({ method, path, operation }: Endpoint): AuditedRoute => ({
  method,
  credential: "key",
  path: `/mux${path}`,
  target: path
    .replace(/^\/[a-z]+\/v1\//, "/api/v1/")
    .replace("/live-streams", "/channels")
    .replace("/uploads", "/direct-uploads")
    .replaceAll("-", "_"),
  ...(operation !== undefined && { operationId: operation }),
});

const rules = ({ path, scopes }: Endpoint) => ({ path, credential: "key", scopes });

function tenantCaller(caller: Caller): TenantCaller {
  if (caller.kind !== "key") throw new HttpError(401, "unauthorized", "Send an API key of a tenant.");
  return caller;
}

/** An error response of our own API as the error that it was. */
function errorOf(response: Response, text: string, renamed: Renamed): HttpError {
  const { error, code, details, required_scopes } = JSON.parse(text);
  const wait = response.headers.get("retry-after");
  const named = Object.entries(details ?? {}).map(([field, messages]) => [renamed[field] ?? field, messages]);
  return new HttpError(response.status, code, String(error), {
    ...(details && { details: Object.fromEntries(named) }),
    ...(required_scopes && { required_scopes }),
    ...(wait !== null && { headers: { "retry-after": wait } }),
  });
}
