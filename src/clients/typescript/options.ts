type Text = string | (() => string | Promise<string>);

export type ClientOptions = {
  /** Origin of the server, such as `https://video.example.com`. In a page the default is the page's own. */
  baseUrl?: string;
  /** API key of a tenant, or a function that returns one for each request. */
  apiKey?: Text;
  /** Operator's token; not for browsers. */
  adminToken?: Text;
  /** Token of workers. */
  workerToken?: Text;
  /** Headers of every request. */
  headers?: Record<string, string> | (() => Record<string, string>);
  /** Replaces the global `fetch`, except for the bytes of uploads in browsers, which XMLHttpRequest sends. */
  fetch?: typeof fetch;
  /** Milliseconds that one attempt may take; default 60,000. */
  timeoutMs?: number;
  /** Attempts after the first one; default 2. */
  maxRetries?: number;
};

export type RequestOptions = {
  /** Aborts the request and its retries with the reason of the signal. */
  signal?: AbortSignal;
  timeoutMs?: number;
  maxRetries?: number;
  /** Default, for operations that support it: a random key, so that a retry creates nothing twice. */
  idempotencyKey?: string;
  headers?: Record<string, string>;
};

/** The headers that authenticate a client. */
export async function credentialsOf(options: ClientOptions): Promise<Record<string, string>> {
  const { apiKey, adminToken, workerToken, headers } = options;
  const named = { "X-API-Key": apiKey, "X-SVC-ADMIN-TOKEN": adminToken, "X-SVC-WORKER-TOKEN": workerToken };
  const result: Record<string, string> = { ...(typeof headers === "function" ? headers() : headers) };
  for (const [name, value] of Object.entries(named))
    if (value !== undefined) result[name] = typeof value === "function" ? await value() : value;
  return result;
}
