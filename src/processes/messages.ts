import type { SecretName } from "../config/secrets.ts";
import type { Family } from "../lib/prometheus.ts";
import type { Ask } from "../lib/turns.ts";

/** In the environment of the processes that a keeper starts. */
export const SLOT_VARIABLE = "VODBOX_PROCESS_SLOT";

/** What one process tells the others, so that who waits there wakes. */
export type Hint =
  | { signal: "job.queued" | "delivery.due" }
  | { signal: "webhook.changed"; id: number }
  | { signal: "secret.rotated"; name: SecretName };

/** What one process counted. */
export type Figures = { slot: number; families: Family[] };

/** From the keeper, over the channel that a process was started with. */
export type ToProcess =
  | { welcome: { slot: number; isFirst: boolean; localProof: string } }
  | { given: number }
  | { wanted: number }
  | { hint: Hint }
  | { ping: true }
  /** Asks for its figures; the answer repeats the number. */
  | { figures: number }
  /** To a question of that number. */
  | { answer: number; value?: unknown };

/** To the keeper. */
export type ToKeeper =
  | { join: true }
  | { ready: { address: string; localAddress: string } }
  | { ask: Ask }
  | { end: { id: number; name: string } }
  | { hint: Hint }
  | { figures: number; families: Family[] }
  | { gather: number }
  | { pong: true }
  | { post: string; value: unknown; id: number }
  | { posted: string; id: number };
