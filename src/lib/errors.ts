/** What an error body may carry besides `error` and `code`. */
export type ErrorExtra = {
  /** field -> messages */
  details?: Record<string, string[]>;
  required_scopes?: string[];
  /** Response headers, such as Allow or Retry-After. */
  headers?: Record<string, string>;
};

/**
 * The one error a handler may throw on purpose. Everything else is a 500 that tells the client nothing.
 * `code` is what clients match on; `message` is a sentence for people.
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

/** A foreign thing and a thing that never was answer alike. */
export function notFound(what = "resource"): never {
  throw new HttpError(404, "not_found", `No such ${what}.`);
}

/** 422 for a value that is present and of the right type but not acceptable. */
export function invalid(field: string, message: string, code = "validation_failed"): never {
  throw new HttpError(422, code, `${field}: ${message}`, { details: { [field]: [message] } });
}

/**
 * A fault that the operator or user can mend: the CLI prints `message` as it stands and exits with `exitCode`
 * (1 failed, 2 wrong usage). The message says what happened and what to do.
 */
export class UserError extends Error {
  readonly exitCode: 1 | 2;
  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.name = "UserError";
    this.exitCode = exitCode;
  }
}

/** For a request whose client left; it reads no answer. nginx logs such a request with the same status. */
export const clientClosed = (): HttpError =>
  new HttpError(499, "client_closed_request", "The client closed the connection.");
