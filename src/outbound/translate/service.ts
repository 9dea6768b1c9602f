import { setTimeout as wait } from "node:timers/promises";
import { retryAfterMs, serviceUrl } from "../service-url.ts";
import { TranslationFailed } from "./translator.ts";

const ATTEMPTS = 4;
const BACKOFF_MS = 500;
/** No answer to a batch is longer than its texts would be in any language, many times over. */
const ANSWER_BYTES = 4 << 20;

export type ServiceRequest = {
  method?: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  /** Once, for what there is another way without. */
  attempts?: number;
};
/** JSON of an answer with 2xx. */
export type SendRequest = (path: string, request: ServiceRequest) => Promise<unknown>;

/**
 * A service at an address that the operator chose, so that it may be anywhere. 429, 5xx and what the network does are
 * tried again, as late as Retry-After says; other answers are final, and redirects too, which would carry the key along.
 */
export function serviceAt(base: string, timeoutMs: number): SendRequest {
  return async (path, { attempts = ATTEMPTS, signal, ...request }) => {
    const url = serviceUrl(base, path);
    for (let attempt = 1; ; attempt++) {
      const outcome = await once(url, { ...request, signal }, timeoutMs);
      if ("json" in outcome) return outcome.json;
      signal.throwIfAborted();
      // Who is asked to come back later than we wait for an answer does not come back.
      const isLate = (outcome.retryAfterMs ?? 0) > timeoutMs;
      if (!outcome.retry || isLate || attempt >= attempts)
        throw new TranslationFailed(`The translation service ${outcome.told}.`);
      const backoff = BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
      await wait(outcome.retryAfterMs ?? backoff, undefined, { signal });
    }
  };
}

type Outcome = { json: unknown } | { told: string; retry: boolean; retryAfterMs?: number | null };

async function once(url: URL, request: ServiceRequest, timeoutMs: number): Promise<Outcome> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
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
      told: `answered ${answer.status}`,
      retry: answer.status === 429 || answer.status >= 500,
      retryAfterMs: retryAfterMs(answer.headers.get("retry-after")),
    };
  } catch (error) {
    if (signal.aborted) return { told: `did not answer in ${timeoutMs / 1000} s`, retry: true };
    const cause = (error as Error).cause as { code?: string } | undefined;
    return { told: `could not be reached (${cause?.code ?? (error as Error).name})`, retry: true };
  }
}

async function jsonOf(answer: Response): Promise<Outcome> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of answer.body ?? []) {
    total += chunk.length;
    // Leaving the loop closes the connection.
    if (total > ANSWER_BYTES) return { told: "answered far too much", retry: false };
    chunks.push(chunk);
  }
  try {
    return { json: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks))) };
  } catch {
    return { told: "answered what is no JSON", retry: false };
  }
}
