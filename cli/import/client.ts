import { setTimeout, sleep, UserError } from "#lib/base";
import { describeConnectionError, isCertificateError } from "#lib/network";
import { ItemError } from "./item-error.ts";
import { record } from "./json.ts";

/** A JSON response of an API. A page of a thousand videos has about 3 MB. */
const MAX_JSON_BYTES = 32 * 2 ** 20;
const SILENCE_MS = 60_000;
const MAX_REDIRECTS = 5;
const ATTEMPTS = 6;
const FIRST_WAIT_MS = 250;
/** A provider that asks for a longer wait, at once or in all, is reported instead. */
const MAX_WAIT_MS = 15 * 60_000;
/** The least pause before a request that a limit has refused is repeated, whatever the provider says. */
const LEAST_WAIT_MS = 100;

/** The provider refused a request. */
export class ProviderRefused extends ItemError {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Temporary = { message: string; afterMs: number | null };
class TemporaryError extends Error {
  readonly afterMs: number | null;
  constructor({ message, afterMs }: Temporary) {
    super(message);
    this.afterMs = afterMs;
  }
}

export type Opened = {
  response: Response /** Chunks; throws when none arrives for a minute. */;
  body: AsyncGenerator<Uint8Array>;
};
export type RequestOptions = {
  method?: string;
  /** Sent as JSON, or as a form. */
  body?: unknown;
  form?: Record<string, string>;
  headers?: Record<string, string>;
  /** For URLs of media: credentials are sent to the origin of the API alone. */
  withCredentials?: boolean;
};
export type ProviderClient = {
  /** The JSON response of a path of the API. Throws ProviderRefused. */
  json(path: string, options?: RequestOptions): Promise<unknown>;
  /** The same of a path that may be missing or forbidden: an empty object then. */
  optional(path: string, options?: RequestOptions): Promise<Record<string, unknown>>;
  /** A small file at a URL, or a path of the API. Throws ItemError. */
  bytes(url: string, maxBytes: number, options?: RequestOptions): Promise<Uint8Array>;
  /** A response without its body, after redirects. Throws ProviderRefused, or UserError for a faulty connection. */
  open(url: string, options?: RequestOptions): Promise<Opened>;
  /** Runs `work` until it succeeds; errors of connections and servers are temporary. */
  retry<T>(work: () => Promise<T>): Promise<T>;
};

export type ClientOptions = {
  title: string;
  /** URL below which the API is. */
  base: string;
  /** Credentials, which no other origin gets. */
  credentials(): Record<string, string> | Promise<Record<string, string>>;
  /** Headers that are no secrets. */
  headers?: Record<string, string>;
};

/** A client of a provider's API and media, which trusts neither. */
export function providerClient({ title, base, credentials, headers: common = {} }: ClientOptions): ProviderClient {
  const origin = new URL(base).origin;
  // A limit of requests concerns all of them.
  let pausedUntil = 0;

  async function open(address: string, options: RequestOptions = {}): Promise<Opened> {
    let url = parsed(address, `${base}/`);
    const { method = "GET" } = options;
    let { withCredentials = false } = options;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const isOwn = withCredentials && url.origin === origin;
      const own = isOwn ? await credentials() : {};
      const content = contentOf(options);
      const aborted = new AbortController();
      const timer = setTimeout(() => aborted.abort(), SILENCE_MS);
      const response = await fetch(url, {
        method,
        headers: { "user-agent": "vodbox", ...common, ...content.headers, ...options.headers, ...own },
        ...(method !== "GET" && content.body !== undefined && { body: content.body }),
        redirect: "manual",
        signal: aborted.signal,
      })
        .catch((error: Error) => {
          if (isCertificateError(error)) throw new UserError(describeConnectionError(url.origin, error));
          throw temporary(error, title);
        })
        .finally(() => clearTimeout(timer));
      const location = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null;
      if (location === null) return { response, body: chunks(response, aborted, title) };
      await response.body?.cancel();
      const next = parsed(location, url.href);
      if (url.protocol === "https:" && next.protocol !== "https:")
        throw new ItemError(`${title} redirects from https to http`);
      // RFC 9110, 15.4: what follows other statuses than 307 and 308 is a GET. A changed request is sent nowhere else.
      if (method !== "GET" && method !== "HEAD") throw new ItemError(`${title} redirects a ${method} request`);
      withCredentials &&= next.origin === origin;
      url = next;
    }
    throw new ItemError(`${title} redirects more than ${MAX_REDIRECTS} times`);
  }

  async function retry<T>(work: () => Promise<T>): Promise<T> {
    // A limit of requests is no attempt: with a large library it is reached all the time.
    let waitedMs = 0;
    for (let attempt = 1; ; ) {
      const pauseMs = pausedUntil - Date.now();
      if (pauseMs > 0) await sleep(pauseMs);
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof TemporaryError)) throw error;
        if (error.afterMs !== null) {
          const afterMs = Math.max(LEAST_WAIT_MS, error.afterMs);
          waitedMs += afterMs;
          if (waitedMs > MAX_WAIT_MS) throw new ItemError(`${error.message}, and asks for a longer wait`);
          pausedUntil = Math.max(pausedUntil, Date.now() + afterMs);
          continue;
        }
        if (attempt === ATTEMPTS) throw new ItemError(error.message);
        // With jitter, so that requests that failed together are not repeated together.
        await sleep(FIRST_WAIT_MS * 2 ** (attempt - 1) * (0.5 + Math.random()));
        attempt++;
      }
    }
  }

  async function whole(address: string, maxBytes: number, options: RequestOptions): Promise<[Response, Buffer]> {
    const { response, body } = await open(address, options);
    requireStatus(response, title, body);
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new ItemError(`${title} answered with more than ${maxBytes} bytes`);
      parts.push(chunk);
    }
    return [response, Buffer.concat(parts)];
  }

  const json = (path: string, options: RequestOptions = {}) =>
    retry(async () => {
      const headers = { accept: "application/json", ...options.headers };
      const [, bytes] = await whole(base + path, MAX_JSON_BYTES, { ...options, headers, withCredentials: true });
      try {
        return bytes.length === 0 ? null : (JSON.parse(bytes.toString("utf8")) as unknown);
      } catch {
        throw new ItemError(`${title} did not answer with JSON`);
      }
    });

  return {
    open: async (address, options) => {
      const opened = await open(address, options);
      requireStatus(opened.response, title, opened.body);
      return opened;
    },
    retry,
    bytes: (address, maxBytes, options = {}) =>
      retry(async () => {
        const [response, bytes] = await whole(address, maxBytes, options);
        if (isPage(response)) throw new ItemError(`${title} answered with a web page in place of the file`);
        return bytes;
      }),
    json,
    optional: (path, options) =>
      json(path, options).then(record, (error) => {
        if (error instanceof ProviderRefused && [403, 404].includes(error.status)) return {};
        throw error;
      }),
  };
}

/** Whether a response is a page for people, such as one to sign in. */
export const isPage = (response: Response): boolean =>
  /^text\/html\b/i.test(response.headers.get("content-type") ?? "");

/** Throws ItemError for anything but http and https. */
function parsed(address: string, base: string): URL {
  const url = URL.canParse(address, base) ? new URL(address, base) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw new ItemError("The provider names a URL that is not http or https");
  // fetch refuses them.
  if (url.username !== "" || url.password !== "") throw new ItemError("The provider names a URL with a password");
  return url;
}

function contentOf({ body, form }: RequestOptions): { headers: Record<string, string>; body?: string } {
  if (form)
    return {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(form).toString(),
    };
  return body === undefined
    ? { headers: {} }
    : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

async function* chunks(response: Response, aborted: AbortController, title: string): AsyncGenerator<Uint8Array> {
  if (!response.body) return;
  const timer = setTimeout(() => aborted.abort(), SILENCE_MS);
  try {
    for await (const chunk of response.body) {
      timer.refresh();
      yield chunk;
    }
  } catch (error) {
    throw temporary(error as Error, title);
  } finally {
    clearTimeout(timer);
  }
}

function temporary(error: Error, title: string): TemporaryError {
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
  const reason = error.name === "AbortError" ? "not in time" : typeof code === "string" ? code : "connection lost";
  return new TemporaryError({ message: `${title} is not responding (${reason})`, afterMs: null });
}

export const isTemporary = (error: unknown): boolean => error instanceof TemporaryError;

/** Throws TemporaryError, or ProviderRefused, unless the response is 2xx. */
function requireStatus(response: Response, title: string, body: AsyncGenerator<Uint8Array>): void {
  const { status, headers } = response;
  if (status >= 200 && status < 300) return;
  // Its text may repeat what was sent.
  void response.body?.cancel().catch(() => {});
  void body.return(undefined).catch(() => {});
  const message = `${title} answered with status ${status}`;
  if (status === 408 || status === 425 || status === 429 || status >= 500)
    throw new TemporaryError({ message, afterMs: waitOf(headers) });
  throw new ProviderRefused(status, message);
}

/** Vimeo names the time at which its limit ends in a header of its own. */
function waitOf(headers: Headers): number | null {
  const reset = headers.get("x-ratelimit-reset");
  const isDate = reset !== null && /^\d{4}-/.test(reset);
  return retryAfterMs(headers.get("retry-after") ?? (isDate ? reset : null), Date.now());
}

/** Milliseconds of a Retry-After header, which is a number of seconds or a date (RFC 9110, 10.2.3); null without one. */
export function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\s*\d{1,15}\s*$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
