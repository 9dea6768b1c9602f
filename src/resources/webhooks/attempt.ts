import type { App } from "../../app.ts";
import { httpClientOf } from "../../outbound/app-http-client.ts";
import { BlockedDestination, OutboundFailure } from "../../outbound/http-client.ts";
import { post } from "../../outbound/post.ts";
import type { Claimed } from "./claims.ts";
import { signatureHeaders } from "./sign.ts";

export const ATTEMPT_MS = 15_000;
const SNIPPET_BYTES = 1024;
const MAX_RETRY_AFTER_MS = 24 * 3_600_000;
const JITTER = 0.1;

/** What an attempt came to, in words of the row. */
export type Outcome = {
  claimed: Claimed;
  status: "delivered" | "failed" | "pending";
  /** Of a pending one; else null. */
  nextAttemptAt: number | null;
  at: number;
  responseStatus: number | null;
  responseBody: string | null;
  durationMs: number | null;
  error: { code: string; message: string } | null;
  /** 410: the endpoint is switched off. */
  gone: boolean;
};

/** Signs and sends. Null when `stop` cut it off: that says nothing of the receiver. */
export async function attempt(app: App, claimed: Claimed, stop: AbortSignal): Promise<Outcome | null> {
  const from = performance.now();
  const nothing = { responseStatus: null, responseBody: null };
  const fault = (code: string, message: string, again: boolean) =>
    ended(
      app,
      claimed,
      { ...nothing, durationMs: Math.round(performance.now() - from), error: { code, message } },
      again,
    );
  const { secrets, body, eventId: id } = claimed;
  if (secrets === null)
    return fault("secret_unreadable", "The server's signing secret has changed; rotate the secret.", true);
  try {
    const answer = await post(await httpClientOf(app), claimed.url, {
      headers: {
        "content-type": "application/json",
        "user-agent": "vodbox-webhooks",
        "Svc-Event": claimed.event,
        ...signatureHeaders({ id, body, secrets, now: app.clock.now() }),
      },
      body,
      timeoutMs: ATTEMPT_MS,
      maxAnswerBytes: SNIPPET_BYTES,
      signal: stop,
      pool: `webhook ${claimed.endpointId}`,
    });
    const { status, snippet, durationMs } = answer;
    const told = { responseStatus: status, responseBody: snippet, durationMs };
    if (status >= 200 && status < 300) return ended(app, claimed, { ...told, error: null }, false);
    const error = { code: "http_status", message: `The receiver answered ${status}.` };
    return ended(app, claimed, { ...told, error }, isTransient(status), answer.retryAfter);
  } catch (error) {
    if (stop.aborted) return null;
    if (error instanceof BlockedDestination) return fault("blocked_destination", error.message, false);
    if (error instanceof OutboundFailure) return fault(error.code, error.message, true);
    app.log.error({ err: error, delivery: claimed.id }, "a delivery failed for a reason of our own");
    return fault("internal", "The server could not make the attempt.", true);
  }
}

const isTransient = (status: number) => status === 408 || status === 429 || status >= 500;

type Told = Pick<Outcome, "responseStatus" | "responseBody" | "durationMs" | "error">;

function ended(app: App, claimed: Claimed, told: Told, again: boolean, retryAfter: string | null = null): Outcome {
  const now = app.clock.now();
  const base = { claimed, at: now, ...told, gone: told.responseStatus === 410 };
  if (told.error === null) return { ...base, status: "delivered", nextAttemptAt: null };
  const waitSeconds = again ? app.config.webhook_retry_seconds[claimed.tries] : undefined;
  if (waitSeconds === undefined) return { ...base, status: "failed", nextAttemptAt: null };
  const waitMs = waitSeconds * 1000 * (1 - JITTER + Math.random() * 2 * JITTER);
  const askedMs = retryAfter === null ? 0 : Math.min(MAX_RETRY_AFTER_MS, retryAfterMs(retryAfter, now));
  return { ...base, status: "pending", nextAttemptAt: Math.ceil(now + Math.max(waitMs, askedMs)) };
}

/** RFC 9110, 10.2.3: seconds, or a date. What is neither asks for nothing. */
function retryAfterMs(value: string, now: number): number {
  if (/^\s*\d{1,9}\s*$/.test(value)) return Number(value) * 1000;
  return Math.max(0, (Date.parse(value) || now) - now);
}
