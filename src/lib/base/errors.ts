/** Optional parts of an error response besides `error` and `code`. */
export type ErrorExtra = {
  /** field -> messages */
  details?: Record<string, string[]>;
  required_scopes?: string[];
  /** Response headers, such as Allow or Retry-After. */
  headers?: Record<string, string>;
};

/**
 * The only error that handlers throw deliberately. Any other becomes a 500 without detail. Clients match on `code`;
 * `message` is a sentence for people.
 */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly extra: ErrorExtra;
  constructor(status: number, code: string, message: string, extra: ErrorExtra = {}) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.code = code;
    this.extra = extra;
  }
}

/** A resource of another tenant and one that never existed are answered alike. */
export function notFound(what = "resource"): never {
  throw new HttpError(404, "not_found", `No such ${what}.`);
}

/** 422 for a value that is present and of the right type but not valid. */
export function invalid(field: string, message: string, code = "validation_failed"): never {
  throw new HttpError(422, code, `${field}: ${message}`, { details: { [field]: [message] } });
}

/**
 * A fault that the operator or user can correct: the CLI prints `message` and exits with `exitCode` (1 failed, 2 wrong
 * usage). The message says what happened and what to do.
 */
export class UserError extends Error {
  readonly exitCode: 1 | 2;
  /** The code of the API's error response that caused it, for programs that read the CLI's JSON. */
  readonly code: string | undefined;
  constructor(message: string, exitCode: 1 | 2 = 1, code?: string) {
    super(message);
    this.name = "UserError";
    this.exitCode = exitCode;
    this.code = code;
  }
}

/** For a request whose client has disconnected and reads no response. nginx logs such requests with the same status. */
export const clientClosed = (): HttpError =>
  new HttpError(499, "client_closed_request", "The client closed the connection.");

/**
 * The error, or the cause of a failed statement: its own message has the statement and the parameters, such as hashes of
 * tokens, but not the reason.
 */
export function withoutStatement(error: Error): Error {
  return error.name === "DrizzleQueryError" || error.message?.startsWith("Failed query:")
    ? ((error.cause as Error) ?? new Error("A query failed"))
    : error;
}
