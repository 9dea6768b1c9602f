import type { IncomingMessage } from "node:http";
import { setTimeout } from "#lib/base";
import { type HttpClient, OutboundFailure } from "./http-client.ts";

export type PostOptions = {
  headers: Record<string, string>;
  body: string | Uint8Array;
  /** Timeout of the whole exchange: name resolution, connection, request, response header. */
  timeoutMs: number;
  /** Maximum length of the response body that is kept. */
  maxAnswerBytes: number;
  signal?: AbortSignal;
  /** As in OutboundRequest. */
  pool?: string;
};
export type PostResult = { status: number; retryAfter: string | null; snippet: string; durationMs: number };

/** After the status, the body is optional: at most this long and this much is read before the connection is closed. */
const BODY_MS = 2000;
const BODY_BYTES = 64 * 1024;

/**
 * POSTs with the safe HTTP client. Throws BlockedDestination or OutboundFailure; a response with any status is a
 * result.
 */
export async function post(
  door: HttpClient,
  url: string,
  { headers, body, timeoutMs, maxAnswerBytes, signal, pool }: PostOptions,
): Promise<PostResult> {
  const from = performance.now();
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), timeoutMs);
  const stop = () => limit.abort();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    if (signal?.aborted) throw new OutboundFailure("timeout", "Aborted before it was sent.");
    const answer = await door.send(url, { method: "POST", headers, body, signal: limit.signal, pool });
    const durationMs = Math.round(performance.now() - from);
    const snippet = await beginningOf(answer, maxAnswerBytes);
    const retryAfter = answer.headers["retry-after"] ?? null;
    return { status: answer.statusCode ?? 0, retryAfter, snippet, durationMs };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** A short body is read to its end, so that the connection can be reused; a long, slow or truncated one is cut. */
async function beginningOf(answer: IncomingMessage, maxBytes: number): Promise<string> {
  const timer = setTimeout(() => answer.destroy(), BODY_MS);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      if (bytes < maxBytes) chunks.push(chunk.subarray(0, maxBytes - bytes));
      bytes += chunk.length;
      if (bytes > BODY_BYTES) break;
    }
  } catch {
    // The status has been received.
  } finally {
    clearTimeout(timer);
    answer.on("error", () => {}).destroy();
  }
  // Databases do not accept NUL in text.
  return Buffer.concat(chunks).toString("utf8").replaceAll("\0", "\ufffd");
}
