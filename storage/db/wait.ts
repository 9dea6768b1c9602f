import { setTimeout as delay } from "node:timers/promises";

/** How long anything may wait for a lock that another process holds. */
export const LOCK_WAIT_MS = 30_000;

/** Waits before try number `attempt` (from 0): 2 ms, doubling to 200 ms, with jitter so that two waiters part. */
export const backoff = (attempt: number) => delay(Math.min(200, 2 * 2 ** attempt) * (0.5 + Math.random() / 2));
