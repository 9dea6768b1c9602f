import { sleep } from "#lib/base";

const LOOK_AGAIN_MS = 1000;
const LONGEST_MS = 10_000;
/** Providers prepare files much faster than they play. */
const MAX_WAIT_MS = 15 * 60_000;

/**
 * Asks a provider again and again for a file that it prepares: `look` returns the result, null when there will be none, or
 * `waiting`. Null as well after a quarter of an hour.
 */
export async function prepared<T>(look: () => Promise<T | null | "waiting">): Promise<T | null> {
  const until = Date.now() + MAX_WAIT_MS;
  for (let wait = LOOK_AGAIN_MS; ; wait = Math.min(LONGEST_MS, wait * 1.5)) {
    const result = await look();
    if (result !== "waiting") return result;
    if (Date.now() > until) return null;
    await sleep(wait);
  }
}
