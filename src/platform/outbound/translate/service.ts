import { abortAfter, sleep } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { retryAfterMs, serviceUrl } from "../service-url.ts";
import { TranslationFailed, type Translator } from "./translator.ts";

const ATTEMPTS = 4;
const BACKOFF_MS = 500;
/** Far more than the response to a batch in any language. */
const ANSWER_BYTES = 4 << 20;

export type ServiceRequest = {
  method?: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  /** Without retries, for requests that have a fallback. */
  attempts?: number;
};
/** JSON of a 2xx response. */
export type SendRequest = (path: string, request: ServiceRequest) => Promise<unknown>;

/** A translation service as its file exports it; `configured.ts` lists all. */
export type TranslationService = {
  /** The URL of the only public service, which is used with a key when no URL is set. */
  publicUrl?(key: string): string;
  open(ask: SendRequest, config: Config): Translator;
};

/**
 * A service at a URL that the operator chose, so private addresses are allowed. 429, 5xx and network errors are
 * retried, as late as Retry-After says; other responses are final, including redirects, which would receive the key.
 */
export function serviceAt(base: string, timeoutMs: number): SendRequest {
  return async (path, { attempts = ATTEMPTS, signal, ...request }) => {
    const url = serviceUrl(base, path);
    for (let attempt = 1; ; attempt++) {
      const outcome = await once(url, { ...request, signal }, timeoutMs);
      if ("json" in outcome) return outcome.json;
      signal.throwIfAborted();
      // A Retry-After beyond our timeout means no retry.
      const isLate = (outcome.retryAfterMs ?? 0) > timeoutMs;
      if (!outcome.retry || isLate || attempt >= attempts)
        throw new TranslationFailed(`The translation service ${outcome.fault}.`);
      const backoff = BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
      await sleep(outcome.retryAfterMs ?? backoff, undefined, { signal });
    }
  };
}

type Outcome = { json: unknown } | { fault: string; retry: boolean; retryAfterMs?: number | null };

async function once(url: URL, request: ServiceRequest, timeoutMs: number): Promise<Outcome> {
  const signal = AbortSignal.any([request.signal, abortAfter(timeoutMs)]);
  try {
    const { method = "POST", headers = {}, body } = request;
    const answer = await fetch(url, {
      method,
      headers,
      signal,
      redirect: "manual",
      ...(body !== undefined && { body }),
    });
    if (answer.ok) return await jsonOf(answer);
    await answer.body?.cancel();
    return {
      fault: `responded with status ${answer.status}`,
      retry: answer.status === 429 || answer.status >= 500,
      retryAfterMs: retryAfterMs(answer.headers.get("retry-after")),
    };
  } catch (error) {
    if (signal.aborted) return { fault: `did not respond within ${timeoutMs / 1000} s`, retry: true };
    const cause = (error as Error).cause as { code?: string } | undefined;
    return { fault: `could not be reached (${cause?.code ?? (error as Error).name})`, retry: true };
  }
}

async function jsonOf(answer: Response): Promise<Outcome> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of answer.body ?? []) {
    total += chunk.length;
    // Leaving the loop closes the connection.
    if (total > ANSWER_BYTES) return { fault: "sent a response that is too large", retry: false };
    chunks.push(chunk);
  }
  try {
    return { json: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks))) };
  } catch {
    return { fault: "sent a response that is not JSON", retry: false };
  }
}
