import { backoffMs, isDelayAcceptable, sleep, withTimeout } from "./attempts.ts";
import { errorOf, VodboxError } from "./error.ts";
import { type ClientOptions, credentialsOf, type RequestOptions } from "./options.ts";

export type PlainRequest = {
  method: string;
  /** Path and query. */
  path: string;
  headers?: Record<string, string>;
  body?: BodyInit | null;
  /** Whether a second execution has no other effect than the first one. */
  isRepeatable: boolean;
};
export type PlainResponse = { status: number; headers: Headers; text: string };

const TIMEOUT_MS = 60_000;
const MAX_RETRIES = 2;

export const baseUrlOf = ({ baseUrl = "" }: ClientOptions): string => baseUrl.replace(/\/$/, "");

/** Sends a request, and again after temporary failures. Throws VodboxError, or the reason of the caller's signal. */
export async function send(
  client: ClientOptions,
  request: PlainRequest,
  options: RequestOptions = {},
): Promise<PlainResponse> {
  const { signal, maxRetries = client.maxRetries ?? MAX_RETRIES } = options;
  const timeoutMs = options.timeoutMs ?? client.timeoutMs ?? TIMEOUT_MS;
  for (let failures = 0; ; ) {
    try {
      return await withTimeout((either) => sendOnce(client, request, { ...options, signal: either }), {
        signal,
        timeoutMs,
      });
    } catch (error) {
      if (!(error instanceof VodboxError) || failures >= maxRetries || !isWorthRetrying(error, request)) throw error;
      failures++;
      await sleep(backoffMs(failures, error), signal);
    }
  }
}

async function sendOnce(
  client: ClientOptions,
  { method, path, headers, body }: PlainRequest,
  options: RequestOptions & { signal: AbortSignal },
): Promise<PlainResponse> {
  const send = client.fetch ?? fetch;
  const response = await send(`${baseUrlOf(client)}${path}`, {
    method,
    headers: { ...(await credentialsOf(client)), ...headers, ...options.headers },
    signal: options.signal,
    // Another host must not receive the credentials.
    redirect: "error",
    ...(body != null && { body }),
    ...(body instanceof ReadableStream && { duplex: "half" }),
  });
  const text = await response.text();
  if (!response.ok) throw errorOf(response.status, (name) => response.headers.get(name), text);
  return { status: response.status, headers: response.headers, text };
}

/** 429, and 503 with Retry-After, were refused before they had an effect. */
function isWorthRetrying(error: VodboxError, { isRepeatable, body }: PlainRequest): boolean {
  if (body instanceof ReadableStream || !isDelayAcceptable(error)) return false;
  if (error.status === 429 || (error.status === 503 && error.retryAfterSeconds !== undefined)) return true;
  return isRepeatable && (error.status === 0 || error.status === 408 || error.status >= 500);
}
