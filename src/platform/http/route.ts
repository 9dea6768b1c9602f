import type { IncomingMessage } from "node:http";
import * as v from "valibot";
import type { App } from "#app.ts";
import type { HttpError } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { ExpensiveName } from "../limits/expensive.ts";
import type { Caller, Scope } from "./caller.ts";
import type { Cors } from "./cors.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS";
/**
 * `key`: API key or admin token. `worker`: worker or admin token. `gateway`: the live gateway's token. `metrics`:
 * metrics or admin token. `session`: a session cookie alone, which `key`, `admin` and `metrics` accept too. `signed`: the
 * URL itself is the credential.
 */
export type Credential = "key" | "worker" | "admin" | "gateway" | "metrics" | "session" | "none" | "signed";
export type LimitName = "uploads" | "billing" | "translate" | "sync" | "live" | "device_tokens" | "beacon" | "pictures";
type Schema = v.GenericSchema<unknown, unknown>;

export type Context<Params = unknown, Query = unknown, Body = unknown> = {
  app: App;
  caller: Caller;
  params: Params;
  query: Query;
  /** The parsed JSON; undefined with `raw` routes, which read the request themselves. */
  body: Body;
  headers: Headers;
  method: string;
  /** Path and query as received. */
  url: URL;
  requestId: string;
  /** The client's address, as far as trusted proxies report it; `local` without a socket. */
  address: string;
  /** Node's request where there is a socket; the fast way to read a large body. */
  incoming: IncomingMessage | undefined;
  request: Request;
  /** Aborts when the client closes the connection before the response is complete. */
  readonly signal: AbortSignal;
  /**
   * `app.write` for a change whose result is the response: with an Idempotency-Key the response is stored in the same
   * transaction, so that a retry after a crash returns it.
   */
  commit<T>(work: (tx: Db) => Promise<T>): Promise<T | Reply>;
  /**
   * The stored response of an earlier request with the same Idempotency-Key, for a handler that waited: null when there is
   * none.
   */
  earlier(): Promise<Reply | null>;
  /** For a raw route with `idempotent`, before `commit`: what a repeat must have in common with this request. */
  identify(body: unknown): void;
  /** Authenticates the caller again, for a response that lasts. Throws 401 or 403 when it has lost access. */
  recheck(): Promise<void>;
  /** Counts the request against a limit, where only some requests of a route are expensive; throws 429. */
  limit(name: LimitName): Promise<void>;
};

/** The body of a `Reply` that is JSON already. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A response with headers or a status other than 200, or one that is not JSON. */
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
 * One row of the route table, from which matching, authentication, scopes, limits, validation, OpenAPI, the isolation
 * tests and the docs are derived.
 */
export type Route = {
  method: Method;
  /** Another method with the same handler. */
  alias?: Method;
  /** `/api/v1/assets/:id`; `**:name` at the end matches the rest. */
  path: string;
  credential: Credential;
  /** Any one of these suffices. None: any valid key. */
  scopes: readonly Scope[];
  limit?: LimitName;
  /**
   * Waits in the fair queue of this name after the body was read and before the handler runs. A `raw` route reads its
   * body in the handler, and calls `admit` there.
   */
  expensive?: ExpensiveName;
  /** Sets the cookie of a session: refused for pages of other origins, and the body must be declared as JSON. */
  beginsSession?: boolean;
  /** Sessions of users with the role admin, and the admin token, only: others 403 `forbidden_role`. */
  forAdmins?: boolean;
  /** A change of the caller's own account, which every role allows. */
  ownAccount?: boolean;
  /** A POST that changes nothing. */
  reads?: boolean;
  /** Also requires X-SVC-JOB-LEASE-TOKEN. */
  lease?: boolean;
  /** X-SVC-BATCH-TOKEN is accepted instead of a key. */
  batchToken?: boolean;
  /** 1 to 255 bytes; the handler compares them. */
  requiredHeaders?: readonly string[];
  /**
   * A creating POST: Idempotency-Key is supported. The named fields are secrets and are not stored with the response.
   */
  idempotent?: {
    secretFields?: readonly string[];
    /** Fields of the body that people choose: a plain hash of the request would allow to guess them. */
    secretInputs?: readonly string[];
    /** Restores fields of a replayed response that can be derived and were not stored. */
    restore?(context: Context, body: unknown): Promise<unknown>;
  };
  /** The operation's name in the OpenAPI document and in generated clients. Required unless the route is hidden. */
  operationId?: string;
  summary: string;
  tag: string;
  params?: Schema;
  query?: Schema;
  body?: Schema;
  /** The body is a form: text fields, and `file` of at most this many bytes. */
  form?: { maxFileBytes: number };
  /** The body is bytes, read by the handler. */
  raw?: boolean;
  /** Media type -> schema of such a body, for the OpenAPI document. */
  rawBody?: Record<string, Schema>;
  /** Largest JSON body in bytes; the default is 1 MiB. */
  maxBodyBytes?: number;
  /** The error for a larger body, instead of 413. */
  oversized?: () => HttpError;
  /** Status -> schema of the response (null: no body). The first 2xx is the default status. */
  responses: Record<number, Schema | null>;
  /** Media types of the first 2xx other than JSON. */
  produces?: readonly string[];
  /** Status -> error codes of this route in addition to the common ones. */
  errors?: Record<number, readonly string[]>;
  /**
   * Pages of other origins may use the route: preflights are answered, and responses, errors included, are readable.
   */
  cors?: Cors;
  /** How errors are shown to clients of another API than ours; requests with another method, too. Undefined: as ours. */
  showError?: (error: HttpError) => Reply | undefined;
  /** Headers of every response, errors included. */
  headers?: Record<string, string>;
  /** Requests that the server sends later, for the OpenAPI document: `url` is a runtime expression of OpenAPI. */
  sends?: { name: string; url: string; summary: string; body: Schema };
  /** Whether calls are written to the audit log; by default, changes by people, keys and the admin token are. */
  audited?: boolean;
  /** Omitted from OpenAPI: pages, media, health. */
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

/** Whether a request must have a body. A PATCH without one would change nothing, so there it is always required. */
export const isBodyRequired = ({ body, method }: Route): boolean =>
  body !== undefined && (method === "PATCH" || !v.is(body, {}));

/** Checks the row's types and fills in common defaults. */
export function route<P = undefined, Q = undefined, B = undefined>(spec: Spec<P, Q, B>): Route {
  const { scope, credential = "key", ...rest } = spec;
  return { ...rest, credential, scopes: scope === undefined ? [] : [scope].flat() } as unknown as Route;
}
