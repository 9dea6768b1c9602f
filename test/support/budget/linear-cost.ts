import type { Cost } from "./probed-server.ts";

/** For twice the size. */
const MAX_GROWTH = 3;
/** A collection or compilation exceeds a limit once; what is not linear does each time. */
const ROUNDS = 4;
const MEBIBYTE = 2 ** 20;

export type Budget = {
  /** What a plain request of this size costs in the same run: allowed in any case, and as noise. */
  plainMs: number;
  /** The longest time without a timer, as a multiple of the plain request's cost. */
  maxOfPlain: number;
  /** Memory in addition to what was resident: garbage that is not collected yet, and a share of the bytes. */
  maxMemory: number;
};

/**
 * Why a request is over its budget, or null: its cost is not linear in its size, it keeps the event loop too long, takes too much
 * memory, or ends with an error of the server. `cost` is called with shares of its full size.
 */
export async function overBudget(cost: (share: number) => Promise<Cost>, budget: Budget): Promise<string | null> {
  const { plainMs, maxOfPlain, maxMemory } = budget;
  let found: string | null = null;
  for (let round = 0; round < ROUNDS; round++) {
    const whole = await cost(1);
    // 503: a service that is not configured, or a full queue.
    if (whole.status >= 500 && whole.status !== 503) return `status ${whole.status}`;
    const isShort = whole.longestMs <= maxOfPlain * plainMs && whole.grown <= maxMemory;
    if (isShort && whole.cpuMs <= 2 * plainMs) return null;
    const half = await cost(1 / 2);
    if (isShort && whole.cpuMs <= MAX_GROWTH * half.cpuMs + plainMs) return null;
    const times = [whole.cpuMs, half.cpuMs, plainMs, whole.longestMs].map((ms) => ms.toFixed(1));
    found = `${times[0]} ms (half of it ${times[1]}, plain ${times[2]}), without a timer ${times[3]} ms, ${Math.round(whole.grown / MEBIBYTE)} MiB, status ${whole.status}`;
  }
  return found;
}
