import type { ErrorBody } from "#build/client/methods.ts";
import { OPERATIONS } from "#build/client/operations.ts";
import type { OperationId, Params, Result } from "#clients/typescript/types.ts";
import type { Call, CallOptions } from "./client.ts";

type PathNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never;
type PathValues<Path extends string> = Path extends `${string}{${string}}${infer Rest}`
  ? [value: string | number | undefined, ...PathValues<Rest>]
  : [];

/** A test takes what it sends from tables: any text for one of some texts, constant lists, and bytes without a type. */
type Sent<T> = T extends string
  ? string
  : T extends Blob
    ? T | Uint8Array
    : T extends FormData | ArrayBuffer | Uint8Array | ReadableStream
      ? T
      : T extends readonly (infer Element)[]
        ? readonly Sent<Element>[]
        : T extends object
          ? { [Key in keyof T]: Sent<T[Key]> }
          : T;
type None = Record<string, never>;
/** The body that an operation accepts. */
export type BodyOf<Id extends OperationId> = Sent<Params<Id> extends { body?: infer Body } ? Body : never>;
type QueryOf<Id extends OperationId> = Omit<Params<Id>, "body" | PathNames<(typeof OPERATIONS)[Id][1]> | `X-${string}`>;
type Query<Id extends OperationId> = [keyof QueryOf<Id>] extends [never]
  ? []
  : Record<never, never> extends QueryOf<Id>
    ? [query?: Sent<QueryOf<Id>>]
    : [query: Sent<QueryOf<Id>>];
type Inputs<Id extends OperationId> =
  Params<Id> extends { body: unknown }
    ? [body: BodyOf<Id>, ...Query<Id>]
    : (typeof OPERATIONS)[Id][0] extends "GET" | "DELETE"
      ? Query<Id>
      : [body?: [BodyOf<Id>] extends [undefined] ? None : BodyOf<Id>, ...Query<Id>];

interface Items<Element> extends Array<Element> {
  0: Element;
  1: Element;
  2: Element;
  3: Element;
}
/**
 * A test states what is there: elements of a list, optional fields and values that may be null are not checked before they
 * are read, because the test fails without them. A field that the API does not have does not compile.
 */
type Read<T> = T extends readonly (infer Element)[]
  ? Items<Read<NonNullable<Element>>>
  : T extends object
    ? { [Key in keyof T]-?: Read<NonNullable<T[Key]>> }
    : T;

/** What an operation returns when it succeeds. */
export type BodyFrom<Id extends OperationId> =
  Result<Id> extends undefined ? undefined : Read<Exclude<Result<Id>, null | undefined>>;
export type TypedAnswer<Id extends OperationId> = {
  status: number;
  /** The JSON of the response, with the type of a success. */
  body: BodyFrom<Id>;
  /** The JSON of a response to a request that failed. */
  error: Read<ErrorBody>;
  headers: Headers;
  text: string;
};

/**
 * A method for each operation of the API, by its operation id, as in the TypeScript client. Its arguments are the values of
 * the path, the body of the request (where there is one), and the query. Text is sent as it is to a caller's content type.
 */
export type TypedClient = {
  [Id in OperationId]: (
    ...input: [...PathValues<(typeof OPERATIONS)[Id][1]>, ...Inputs<Id>]
  ) => Promise<TypedAnswer<Id>>;
};
/** The same methods for inputs that the API may refuse. */
type UncheckedClient = { [Id in OperationId]: (...input: unknown[]) => Promise<TypedAnswer<Id>> };

/** An API key, or other credentials and headers of each request. */
export type Caller = string | Omit<CallOptions, "body" | "raw">;

/** Clients of a server for one caller each: `as(key).getAsset(id)`. They send what `call` sends. */
export const typedClient =
  (call: Call) =>
  (caller: Caller = {}): TypedClient & { unchecked: UncheckedClient } =>
    new Client(call, typeof caller === "string" ? { key: caller } : caller) as never;

export type As = ReturnType<typeof typedClient>;

class Client {
  readonly call: Call;
  readonly options: CallOptions;
  constructor(call: Call, options: CallOptions) {
    this.call = call;
    this.options = options;
  }

  get unchecked() {
    return this;
  }

  static {
    for (const [id, [method, template, flags = ""]] of Object.entries<readonly [string, string, string?]>(OPERATIONS)) {
      const takesBody = flags.includes("b") || (method !== "GET" && method !== "DELETE");
      const value = async function (this: Client, ...input: unknown[]) {
        const path = template.replace(/\{\w+\}/g, (name) => segmentOf(name, input.shift()));
        const body = takesBody ? input.shift() : undefined;
        const isRaw = !isJson(body) || (typeof body === "string" && this.options.headers?.["content-type"]);
        const options = { ...this.options, ...(isRaw ? { raw: body as CallOptions["raw"] } : { body }) };
        const answer = await this.call(method, path + searchOf(input.shift()), options);
        return { ...answer, error: answer.status < 400 ? undefined : answer.body };
      };
      Object.defineProperty(Client.prototype, id, { value });
    }
  }
}

function segmentOf(name: string, value: unknown): string {
  if (value === undefined) throw new TypeError(`No value for ${name}`);
  return encodeURIComponent(String(value));
}

const isJson = (body: unknown): boolean =>
  !(
    body instanceof FormData ||
    body instanceof Blob ||
    body instanceof ReadableStream ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body)
  );

/** Values that are undefined are not sent. */
function searchOf(query: unknown): string {
  const values: [string, string][] = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, `${value}`]],
  );
  return values.length > 0 ? `?${new URLSearchParams(values)}` : "";
}
