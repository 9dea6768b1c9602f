import { createReadStream } from "node:fs";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { abortAfter, UserError } from "#lib/base";
import { describeConnectionError, isCertificateError } from "#lib/network";
import { activeTraceparent, TRACEPARENT } from "#lib/tracing";
import { RetryableError } from "./retry-policy.ts";

/** The server refused the request, with its message. */
export class RequestRefused extends UserError {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A file on this machine cannot be read, or has changed. */
export class FileFault extends UserError {}

const ANSWER_MS = 60_000;
/** Without a byte for this long the connection is considered dead. */
const SILENCE_MS = 60_000;

const isPassing = (status: number) => status === 408 || status === 425 || status === 429 || status >= 500;

function fault(status: number, text: string, headers: { retryAfter: string | null | undefined }): Error {
  let message = `The server responded with status ${status}.`;
  let code = "";
  try {
    const body = JSON.parse(text) as { error?: string; code?: string; required_scopes?: string[] };
    message = body.error ?? message;
    if (body.required_scopes) message = `The key needs the scope ${body.required_scopes.join(" or ")}.`;
    code = body.code ?? "";
  } catch {
    // An intermediary's response, or the XML of storage.
  }
  // A person must enable the feature, or free space.
  if (!isPassing(status) || code === "storage_not_configured" || code === "storage_full")
    return new RequestRefused(status, message);
  const seconds = Number(headers.retryAfter ?? Number.NaN);
  return new RetryableError(message, { answered: true, afterMs: Number.isFinite(seconds) ? seconds * 1000 : null });
}

/** The trace that the running import belongs to. */
function traceHeaders(): Record<string, string> {
  const traceparent = activeTraceparent();
  return traceparent === null ? {} : { [TRACEPARENT]: traceparent };
}

type Asking = {
  headers?: Record<string, string>;
  /** Timeout of a response; the default is a minute. */
  answerMs?: number;
};
export type Api = {
  /** `body`: a form, a Blob (with its type in the headers), or what is sent as JSON. */
  <T>(method: string, path: string, body?: unknown, asking?: Asking): Promise<T>;
  /** The records of a list, page by page. */
  pages<T>(path: string, query?: Record<string, string>): AsyncGenerator<T[]>;
  /** All records of a list, page by page. */
  all<T>(path: string): Promise<T[]>;
  /** The body of a file. */
  bytes(path: string): Promise<Buffer>;
};

/** The API of one server. Its calls throw Refused, TryAgain. */
export function api(server: string, credential: Record<string, string>): Api {
  async function ask<T>(method: string, path: string, body?: unknown, { headers, answerMs = ANSWER_MS }: Asking = {}) {
    const isForm = body instanceof FormData;
    const response = await fetch(`${server}/api/v1${path}`, {
      method,
      headers: { ...credential, ...traceHeaders(), ...(!isForm && { "content-type": "application/json" }), ...headers },
      ...(body !== undefined && { body: isForm || body instanceof Blob ? body : JSON.stringify(body) }),
      signal: abortAfter(answerMs),
    })
      .then(async (answer) => ({
        ok: answer.ok,
        status: answer.status,
        head: answer.headers,
        text: await answer.text(),
      }))
      .catch((error: Error) => {
        throw new RetryableError(describeConnectionError(server, error));
      });
    if (!response.ok) throw fault(response.status, response.text, { retryAfter: response.head.get("retry-after") });
    try {
      const value = (response.text ? JSON.parse(response.text) : undefined) as T;
      return { value, link: response.head.get("link") ?? "" };
    } catch {
      throw new UserError(`${server} does not respond like a vodbox server; check the URL.`);
    }
  }
  const call = async <T>(...asked: Parameters<typeof ask>) => (await ask<T>(...asked)).value;
  async function* pages<T>(path: string, query: Record<string, string> = {}): AsyncGenerator<T[]> {
    const first = `?${new URLSearchParams({ limit: "500", ...query })}`;
    for (let search: string | undefined = first; search !== undefined; ) {
      const page: { value: T[]; link: string } = await ask("GET", path + search);
      yield page.value;
      // The server may have another base URL than the one used here.
      const next: string | undefined = /<([^<>]{1,8192})>; {0,8}rel="next"/.exec(page.link)?.[1];
      search = next === undefined ? undefined : new URL(next, server).search;
    }
  }
  const all = async <T>(path: string) => (await Array.fromAsync(pages<T>(path))).flat();
  const bytes = async (path: string) => {
    const options = { headers: credential, signal: abortAfter(ANSWER_MS) };
    const response = await fetch(`${server}/api/v1${path}`, options).catch((error: Error) => {
      throw new RetryableError(describeConnectionError(server, error));
    });
    if (response.ok) return Buffer.from(await response.arrayBuffer());
    throw fault(response.status, await response.text(), { retryAfter: response.headers.get("retry-after") });
  };
  return Object.assign(call, { all, bytes, pages });
}

export type Sending = {
  url: string;
  headers: Record<string, string>;
  path: string;
  /** The bytes of the file from `start`. */
  start: number;
  bytes: number;
  onSent(bytes: number): void;
};

/** PUTs bytes of a file and returns their ETag; buffers no more than a socket does. Throws Refused, TryAgain. */
export function put({ url, headers, path, start, bytes, onSent }: Sending): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      request.destroy();
      source.destroy();
      reject(error);
    };
    const broken = (error: NodeJS.ErrnoException) =>
      fail(
        isCertificateError(error)
          ? new UserError(describeConnectionError(new URL(url).origin, error))
          : new RetryableError(`The connection failed (${error.code ?? error.message}).`),
      );
    const send = url.startsWith("https:") ? requestHttps : requestHttp;
    const request = send(url, { method: "PUT", headers: { ...headers, "content-length": String(bytes) } });
    const end = Math.max(start, start + bytes - 1);
    const source = createReadStream(path, { start, end, highWaterMark: 256 * 1024 });
    request.setTimeout(SILENCE_MS, () => fail(new RetryableError("The connection stalled.")));
    request.on("error", broken);
    source.on("error", (error) => fail(new FileFault(`${path} cannot be read: ${error.message}`)));
    source.on("data", (chunk) => onSent(chunk.length));
    source.pipe(request);
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk) => {
        text += chunk;
      });
      response.on("error", broken);
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        if (status >= 200 && status < 300) return resolve(String(response.headers.etag ?? ""));
        // An expired URL is requested again.
        if (status === 403) return fail(new RetryableError("Storage rejected the URL."));
        fail(fault(status, text, { retryAfter: response.headers["retry-after"] }));
      });
    });
  });
}
