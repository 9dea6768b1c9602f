import type { Methods } from "../../../build/client/methods.ts";
import { OPERATIONS } from "../../../build/client/operations.ts";
import { List, nextCursor, type Page } from "./list.ts";
import type { ClientOptions, RequestOptions } from "./options.ts";
import { type PlainResponse, send } from "./request.ts";
import type { OperationId } from "./types.ts";

type Values = Record<string, unknown>;

/** The page size of an iteration, unless the caller sets `limit`. */
const PAGE_ITEMS = 100;
const REPEATABLE = new Set(["GET", "PUT", "DELETE"]);

type Row = readonly [method: string, path: string, flags?: string];
const flagsOf = (id: OperationId) => (OPERATIONS[id] as Row)[2] ?? "";

class ApiClient {
  readonly options: ClientOptions;
  constructor(options: ClientOptions) {
    this.options = options;
  }

  static {
    for (const id of Object.keys(OPERATIONS) as OperationId[]) {
      const isList = flagsOf(id).includes("l");
      const method = function (this: ApiClient, params?: Values, options?: RequestOptions) {
        return isList ? listOf(this.options, id, params, options) : resultOf(this.options, id, params, options);
      };
      Object.defineProperty(ApiClient.prototype, id, { value: method, writable: true, configurable: true });
    }
  }
}

/** A client with one method for each operation of the OpenAPI document, by its operation id. */
export const Api = ApiClient as new (options: ClientOptions) => Methods & { readonly options: ClientOptions };

const resultOf = async (client: ClientOptions, id: OperationId, params?: Values, options?: RequestOptions) =>
  bodyOf(await call(client, id, params, options));

function listOf(client: ClientOptions, id: OperationId, params?: Values, options?: RequestOptions): List<unknown> {
  const load = async (more: Values): Promise<Page<unknown>> => {
    const response = await call(client, id, { ...params, ...more }, options);
    return { items: bodyOf(response) as unknown[], cursor: nextCursor(response.headers.get("link")) };
  };
  return new List(
    async () => (await load({})).items,
    ({ cursor, limit = params?.limit ?? PAGE_ITEMS } = {}) => load({ limit, ...(cursor !== undefined && { cursor }) }),
  );
}

function bodyOf({ status, headers, text }: PlainResponse): unknown {
  if (status === 204 || text === "") return undefined;
  return /^application\/(.+\+)?json\b/.test(headers.get("content-type") ?? "") ? JSON.parse(text) : text;
}

function call(client: ClientOptions, id: OperationId, params: Values = {}, options: RequestOptions = {}) {
  const [method, template, flags = ""] = OPERATIONS[id] as Row;
  const { body, ...others } = params;
  const { path, query, headers } = placed(template, others);
  const sent = body === undefined ? null : encoded(body, flags);
  if (sent?.type !== undefined) headers["Content-Type"] = sent.type;
  const takesKey = flags.includes("i") || options.idempotencyKey !== undefined;
  if (takesKey) headers["Idempotency-Key"] = options.idempotencyKey ?? crypto.randomUUID();
  const isRepeatable = takesKey || REPEATABLE.has(method);
  return send(client, { method, path: path + query, headers, body: sent?.content ?? null, isRepeatable }, options);
}

/** Parameters by their names: of the path; headers, which start with `X-`; and all others of the query. */
function placed(template: string, params: Values) {
  const headers: Record<string, string> = {};
  const query = new URLSearchParams();
  const rest = { ...params };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name];
    delete rest[name];
    if (value === undefined || value === null || value === "") throw new TypeError(`The parameter ${name} is missing.`);
    // These would change the path, and so the operation.
    if (value === "." || value === "..") throw new TypeError(`The parameter ${name} is not valid.`);
    return encodeURIComponent(String(value));
  });
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("X-")) headers[name] = String(value);
    else query.set(name, String(value));
  }
  const search = String(query);
  return { path, query: search && `?${search}`, headers };
}

/** A body with its type; FormData has its own, with a boundary. */
function encoded(body: unknown, flags: string): { content: BodyInit; type?: string } {
  if (body instanceof FormData) return { content: body };
  if (body instanceof Blob) return { content: body, type: body.type || (flags.includes("c") ? "text/csv" : BYTES) };
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body) || body instanceof ReadableStream)
    return { content: body as BodyInit, type: BYTES };
  if (typeof body === "string" && flags.includes("c")) return { content: body, type: "text/csv" };
  if (flags.includes("f") || (flags.includes("c") && typeof body === "object"))
    return { content: formOf(body as Values) };
  return { content: JSON.stringify(body), type: "application/json" };
}
const BYTES = "application/octet-stream";

function formOf(fields: Values): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    if (value instanceof Blob) form.append(name, value);
    // The server requires a file, with a name.
    else if (name === "file") form.append(name, new Blob([String(value)]), "file");
    else form.append(name, String(value));
  }
  return form;
}
