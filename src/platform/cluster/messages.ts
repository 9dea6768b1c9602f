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
  | { type: "welcome"; slot: number; isFirst: boolean; localProof: string }
  /** The process holds the lock that it has requested with this id. */
  | { type: "granted"; id: number }
  /** Another process waits for it. */
  | { type: "contested"; id: number }
  | { type: "broadcast"; broadcast: Broadcast }
  | { type: "ping" }
  /** What a peer has published. */
  | { type: "published"; topic: string; value: unknown; from: number }
  /** A request for the counters; the answer repeats the number. */
  | { type: "figures"; number: number }
  /** The answer to the request with this id. */
  | { type: "answer"; id: number; value?: unknown };

/** Where a process listens. `setupUrl`: for the first one of an empty server, the address that sets it up. `publishUrls`: of live streams. */
export type Listening = { address: string; localAddress: string; setupUrl: string | null; publishUrls: string[] };

/** Messages to the supervisor. */
export type ToSupervisor =
  | { type: "join" }
  | { type: "ready"; where: Listening }
  | { type: "lock"; request: LockRequest }
  | { type: "unlock"; id: number; name: string }
  | { type: "broadcast"; broadcast: Broadcast }
  /** Answers a request with the same number. */
  | { type: "figures"; number: number; families: MetricFamily[] }
  /** Requests the counters of all processes. */
  | { type: "gather"; id: number }
  | { type: "pong" }
  /** For the peers that have subscribed, or for one process. */
  | { type: "publish"; topic: string; value: unknown; to: number | null }
  /** Keeps a value until this process exits. */
  | { type: "post"; name: string; value: unknown; id: number }
  /** Requests a value that a process has posted. */
  | { type: "posted"; name: string; id: number };
