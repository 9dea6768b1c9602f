import type { SecretName } from "../config/secrets.ts";
import type { LockRequest } from "../lib/lock-manager.ts";
import type { MetricFamily } from "../lib/prometheus.ts";

/** In the environment of the processes that a keeper starts. */
export const SLOT_VARIABLE = "VODBOX_PROCESS_SLOT";

/** What one process tells the others, so that who waits there wakes. */
export type Broadcast =
  | { signal: "job.queued" | "delivery.due" }
  | { signal: "webhook.changed"; id: number }
  | { signal: "secret.rotated"; name: SecretName };

/** What one process counted. */
export type MetricsReport = { slot: number; families: MetricFamily[] };

/** From the keeper, over the channel that a process was started with. */
export type ToWorker =
  | { welcome: { slot: number; isFirst: boolean; localProof: string } }
  | { given: number }
  | { wanted: number }
  | { hint: Broadcast }
  | { ping: true }
  /** Asks for its figures; the answer repeats the number. */
  | { figures: number }
  /** To a question of that number. */
  | { answer: number; value?: unknown };

/** To the keeper. */
export type ToSupervisor =
  | { join: true }
  | { ready: { address: string; localAddress: string } }
  | { ask: LockRequest }
  | { end: { id: number; name: string } }
  | { hint: Broadcast }
  | { figures: number; families: MetricFamily[] }
  | { gather: number }
  | { pong: true }
  | { post: string; value: unknown; id: number }
  | { posted: string; id: number };
