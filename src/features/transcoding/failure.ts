import type * as v from "valibot";
import type { App } from "#app.ts";
import { metricsOf } from "#platform/http/metrics.ts";
import type { Failure } from "#protocol/worker.ts";
import type { Fault } from "./lifecycle/attempts.ts";

type Reported = v.InferOutput<typeof Failure>;

/** A failure as reported by a worker. */
export const faultOf = (failure: Reported): Fault => ({
  code: failure.code,
  message: failure.message,
  retryable: failure.retryable,
  logTail: failure.log_tail ?? null,
  outcome: "failed",
});

/** A worker's report about external services, for the metrics. */
export function countFault(app: App, { code }: Reported): void {
  if (code === "caption_failed") metricsOf(app).services.add("transcription");
}
