import type { LockRequest, MetricFamily } from "#lib/base";
import type { SecretName } from "../config/secrets.ts";

/** Environment variable that a supervisor sets for its cluster workers. */
export const SLOT_VARIABLE = "VODBOX_PROCESS_SLOT";

/** A broadcast from one process to its peers, to wake requests that wait there. */
export type Broadcast =
  | { signal: "job.queued" | "delivery.due" }
  | { signal: "webhook.changed"; id: number }
  | { signal: "secret.rotated"; name: SecretName };

/** The counters of one process. */
export type MetricsReport = { slot: number; families: MetricFamily[] };

/** Messages from the supervisor over the IPC channel. */
export type ToWorker =
  | { welcome: { slot: number; isFirst: boolean; localProof: string } }
  | { granted: number }
  | { contested: number }
  | { broadcast: Broadcast }
  | { ping: true }
  /** What a peer has published. */
  | { topic: string; value: unknown; from: number }
  /** A request for the counters; the answer repeats the number. */
  | { figures: number }
  /** The answer to the request with that number. */
  | { answer: number; value?: unknown };

/** Where a process listens. `setupUrl`: for the first one of an empty server, the address that sets it up. `publishUrls`: of live streams. */
export type Listening = { address: string; localAddress: string; setupUrl: string | null; publishUrls: string[] };

/** Messages to the supervisor. */
export type ToSupervisor =
  | { join: true }
  | { ready: Listening }
  | { ask: LockRequest }
  | { end: { id: number; name: string } }
  | { broadcast: Broadcast }
  | { figures: number; families: MetricFamily[] }
  | { gather: number }
  | { pong: true }
  /** For the peers that have subscribed, or for one process. */
  | { publish: string; value: unknown; to: number | null }
  | { post: string; value: unknown; id: number }
  | { posted: string; id: number };
