import type { IncomingMessage } from "node:http";
import * as v from "valibot";
import type { Db } from "../../storage/db/open.ts";
import type { App } from "../app.ts";
import type { HttpError } from "../lib/errors.ts";
import type { ExpensiveName } from "../limits/expensive.ts";
import type { Caller, Scope } from "./caller.ts";
import type { Cors } from "./cors.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS";
/**
 * `key`: API key or admin token. `worker`: worker or admin token. `gateway`: the live gateway's token. `signed`: the
 * address itself is the credential.
 */
export type Credential = "key" | "worker" | "admin" | "gateway" | "none" | "signed";
export type LimitName = "uploads" | "billing" | "translate" | "sync" | "live" | "device_tokens" | "beacon" | "pictures";
type Schema = v.GenericSchema<unknown, unknown>;

export type Context<Params = unknown, Query = unknown, Body = unknown> = {
  app: App;
  caller: Caller;
  params: Params;
  query: Query;
  /** The parsed JSON; with `raw` routes undefined, they read the request themselves. */
  body: Body;
  headers: Headers;
  method: string;
  /** Path and query as they came. */
  url: URL;
  requestId: string;
  /** The client's, as far as trusted proxies tell; `local` where there is no socket. */
  address: string;
  /** Node's own request where there is a socket behind it: the fast way to a large body. */
  incoming: IncomingMessage | undefined;
  request: Request;
  /** Aborts when the client closes the connection before it has the whole answer. */
  readonly signal: AbortSignal;
  /**
   * `app.write` for a change whose result is the answer: with an Idempotency-Key the answer is stored in the same
   * transaction, so that a repeat after a crash finds it.
   */
  commit<T>(work: (tx: Db) => Promise<T>): Promise<T | Reply>;
  /** Counts the request where only some of a route's cost much; throws 429. */
  limit(name: LimitName): Promise<void>;
};

/** An answer that is more than 200 and JSON. */
export class Reply {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Record<string, string>;
  constructor(status: number, body: unknown, headers: Record<string, string> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/**
 * One row of the table that everything is read off: matching, credentials, scopes, limits, validation, OpenAPI, the
 * isolation matrix and the docs.
 */
export type Route = {
  method: Method;
  /** Another method that does the same. */
  alias?: Method;
  /** `/api/v1/assets/:id`; `**:name` at the end takes the rest. */
  path: string;
  credential: Credential;
  /** Any one of these will do. None: any valid key. */
  scopes: readonly Scope[];
  limit?: LimitName;
  /**
   * Waits in the fair queue of this name after its body was read, and before the handler runs. A `raw` route reads its
   * body in the handler, and calls `admit` there.
   */
  expensive?: ExpensiveName;
  /** Needs X-SVC-JOB-LEASE-TOKEN too. */
  lease?: boolean;
  /** X-SVC-BATCH-TOKEN will do in place of a key. */
  batchToken?: boolean;
  /** Of 1 to 255 bytes; the handler asks for them. */
  requiredHeaders?: readonly string[];
  /** POST that creates: Idempotency-Key is honoured; the named fields are secrets and are kept out of the record. */
  idempotent?: {
    secretFields?: readonly string[];
    /** Puts back into a repeated answer what can be derived anew and was not kept. */
    restore?(context: Context, body: unknown): Promise<unknown>;
  };
  summary: string;
  tag: string;
  params?: Schema;
  query?: Schema;
  body?: Schema;
  /** The body is a form instead of JSON: text fields, and `file`, of at most so many bytes. */
  form?: { maxFileBytes: number };
  /** The body is bytes, read by the handler. */
  raw?: boolean;
  /** Media type -> schema of such a body, to tell in the document. */
  rawBody?: Record<string, Schema>;
  /** Largest JSON body in bytes; 1 MiB unless told. */
  maxBodyBytes?: number;
  /** What is told of a larger one, instead of 413. */
  oversized?: () => HttpError;
  /** Status -> schema of the answer (null: no body). The first 2xx is the default status. */
  responses: Record<number, Schema | null>;
  /** Media types of the first 2xx beside JSON. */
  produces?: readonly string[];
  /** Status -> codes that this route can answer with beside the common ones. */
  errors?: Record<number, readonly string[]>;
  /** Pages of other origins may use it: preflights are answered, and its answers, refusals too, may be read. */
  cors?: Cors;
  /** Sent with every answer, refusals too. */
  headers?: Record<string, string>;
  /** Whether a call is written to the audit log; unless told, what the admin token changes is. */
  audited?: boolean;
  /** Kept out of OpenAPI: pages, media, health. */
  hidden?: boolean;
  handle(context: Context): unknown;
};

type Out<S, Missing = Record<string, never>> = S extends Schema ? v.InferOutput<S> : Missing;
type Spec<P, Q, B> = Omit<Route, "credential" | "scopes" | "params" | "query" | "body" | "handle"> & {
  credential?: Credential;
  scope?: Scope | readonly Scope[];
  params?: P;
  query?: Q;
  body?: B;
  handle(context: Context<Out<P>, Out<Q>, Out<B, undefined>>): unknown;
};

/** Whether a request must have a body. A PATCH without one changes nothing, so it is always required there. */
export const isBodyRequired = ({ body, method }: Route): boolean =>
  body !== undefined && (method === "PATCH" || !v.is(body, {}));

/** Checks the row's types and fills in what most rows share. */
export function route<P = undefined, Q = undefined, B = undefined>(spec: Spec<P, Q, B>): Route {
  const { scope, credential = "key", ...rest } = spec;
  return { ...rest, credential, scopes: scope === undefined ? [] : [scope].flat() } as unknown as Route;
}
