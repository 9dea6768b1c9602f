import type { App } from "#app.ts";
import { BlockedDestination, OutboundFailure, post } from "#lib/network";
import { activeTraceparent, inSpan, TRACEPARENT } from "#lib/tracing";
import { httpClientOf } from "#platform/outbound/app-http-client.ts";
import { bodyOf, type Claimed } from "./claims.ts";
import { muxBody } from "./mux-format.ts";
import { signatureHeaders } from "./sign.ts";

export const ATTEMPT_MS = 15_000;
const SNIPPET_BYTES = 1024;
const MAX_RETRY_AFTER_MS = 24 * 3_600_000;
const JITTER = 0.1;

/** The result of an attempt, as columns of the row. */
export type Outcome = {
  claimed: Claimed;
  status: "delivered" | "failed" | "pending";
  /** For a pending delivery; else null. */
  nextAttemptAt: number | null;
  at: number;
  responseStatus: number | null;
  responseBody: string | null;
  durationMs: number | null;
  error: { code: string; message: string } | null;
  /** 410: the endpoint is disabled. */
  gone: boolean;
};

/** The headers of every attempt, besides those of `signatureHeaders`. */
export const unsignedHeaders = (event: string) => ({
  "content-type": "application/json",
  "user-agent": "vodbox-webhooks",
  "Svc-Event": event,
});

/** Signs and sends. Null when `stop` aborted it: that is not a failure of the receiver. */
export function attempt(app: App, claimed: Claimed, stop: AbortSignal): Promise<Outcome | null> {
  const { tracer } = app;
  if (!tracer) return send(app, claimed, stop);
  const { traceparent: parent, event, endpointId, tenantId, id, tries } = claimed;
  const attributes = {
    "http.request.method": "POST",
    "vodbox.event.type": event,
    "vodbox.webhook.endpoint_id": endpointId,
    "vodbox.webhook.delivery_id": id,
    "vodbox.webhook.tries": tries,
    "vodbox.tenant.id": tenantId,
  };
  return inSpan(tracer, "webhook", { kind: "client", attributes, parent, isRemote: true }, async (span) => {
    const outcome = await send(app, claimed, stop);
    if (outcome?.responseStatus != null) span.set({ "http.response.status_code": outcome.responseStatus });
    if (outcome?.error) span.fail(outcome.error.code);
    return outcome;
  });
}

async function send(app: App, claimed: Claimed, stop: AbortSignal): Promise<Outcome | null> {
  const from = performance.now();
  const nothing = { responseStatus: null, responseBody: null };
  const fault = (code: string, message: string, again: boolean) =>
    ended(
      app,
      claimed,
      { ...nothing, durationMs: Math.round(performance.now() - from), error: { code, message } },
      again,
    );
  const { secrets, eventId: id, format } = claimed;
  const traceparent = activeTraceparent();
  if (secrets === null)
    return fault("secret_unreadable", "The server's signing secret has changed; rotate the secret.", true);
  try {
    // Our own form has the same bytes at every attempt.
    const body = format === "mux" ? await muxBody(app, claimed) : bodyOf(claimed);
    const answer = await post(await httpClientOf(app), claimed.url, {
      headers: {
        ...unsignedHeaders(claimed.event),
        ...signatureHeaders({ id, body, secrets, format, now: app.clock.now() }),
        ...(traceparent !== null && { [TRACEPARENT]: traceparent }),
      },
      body,
      timeoutMs: ATTEMPT_MS,
      maxAnswerBytes: SNIPPET_BYTES,
      signal: stop,
      pool: `webhook ${claimed.endpointId}`,
    });
    const { status, snippet, durationMs } = answer;
    const response = { responseStatus: status, responseBody: snippet, durationMs };
    if (status >= 200 && status < 300) return ended(app, claimed, { ...response, error: null }, false);
    const error = { code: "http_status", message: `The receiver responded with status ${status}.` };
    return ended(app, claimed, { ...response, error }, isTransient(status), answer.retryAfter);
  } catch (error) {
    if (stop.aborted) return null;
    if (error instanceof BlockedDestination) return fault("blocked_destination", error.message, false);
    if (error instanceof OutboundFailure) return fault(error.code, error.message, true);
    app.log.error({ err: error, delivery: claimed.id }, "a delivery failed because of an internal error");
    return fault("internal", "The server could not make the attempt.", true);
  }
}

const isTransient = (status: number) => status === 408 || status === 429 || status >= 500;

type AttemptResponse = Pick<Outcome, "responseStatus" | "responseBody" | "durationMs" | "error">;

function ended(
  app: App,
  claimed: Claimed,
  response: AttemptResponse,
  again: boolean,
  retryAfter: string | null = null,
): Outcome {
  const now = app.clock.now();
  const base = { claimed, at: now, ...response, gone: response.responseStatus === 410 };
  if (response.error === null) return { ...base, status: "delivered", nextAttemptAt: null };
  const waitSeconds = again ? app.config.webhook_retry_seconds[claimed.tries] : undefined;
  if (waitSeconds === undefined) return { ...base, status: "failed", nextAttemptAt: null };
  const waitMs = waitSeconds * 1000 * (1 - JITTER + Math.random() * 2 * JITTER);
  const askedMs = retryAfter === null ? 0 : Math.min(MAX_RETRY_AFTER_MS, retryAfterMs(retryAfter, now));
  return { ...base, status: "pending", nextAttemptAt: Math.ceil(now + Math.max(waitMs, askedMs)) };
}

/** RFC 9110, 10.2.3: seconds, or a date. Other values are ignored. */
function retryAfterMs(value: string, now: number): number {
  if (/^\s*\d{1,9}\s*$/.test(value)) return Number(value) * 1000;
  return Math.max(0, (Date.parse(value) || now) - now);
}
