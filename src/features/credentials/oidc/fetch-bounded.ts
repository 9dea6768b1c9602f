import { abortAfter } from "#lib/base";

/** Metadata, keys and tokens of providers have some kilobytes. */
const MAX_BYTES = 1 << 20;
const TIMEOUT_MS = 10_000;

/**
 * `fetch` for requests to the provider: within 10 s, without redirects, and with responses of at most 1 MiB. Throws for longer
 * ones.
 */
export async function fetchBounded(url: string, options: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, {
    redirect: "manual",
    ...options,
    signal: options.signal ?? abortAfter(TIMEOUT_MS),
  });
  if (response.body === null) return response;
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body) {
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new Error(`The response of ${new URL(url).origin} is longer than ${MAX_BYTES} bytes.`);
    parts.push(part);
  }
  const { status, statusText, headers } = response;
  return new Response(Buffer.concat(parts), { status, statusText, headers });
}
