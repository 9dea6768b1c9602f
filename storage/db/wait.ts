import { sleep } from "#lib/base";

/** How long a lock that another process holds may be waited for. */
export const LOCK_WAIT_MS = 30_000;

/**
 * Waits before attempt number `attempt` (from 0): 2 ms, doubling to 200 ms, with jitter so that two waiters do not stay
 * in step.
 */
export const backoff = (attempt: number) => sleep(Math.min(200, 2 * 2 ** attempt) * (0.5 + Math.random() / 2));
