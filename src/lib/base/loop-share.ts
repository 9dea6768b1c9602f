import { recentRequests } from "./recent-requests.ts";

/**
 * An iteration of the event loop is shared: requests that arrive begin while it has taken less than ARRIVALS_MS, and steps
 * of work that is under way are taken while it has taken less than ALL_MS. Others wait for the next iteration, in order.
 * Otherwise a hundred clients, each of whom holds the loop for no longer than it may, hold it a hundred times as long.
 */
const ARRIVALS_MS = 4;
const ALL_MS = 6;
/** The same for steps while recent requests are in progress: each of those takes several iterations. */
const STEPS_MS = 1;
/** How many of those that wait may be called in one iteration: each call costs a callback, also where time is over. */
const CALLS = 64;

/** First in, first out. The used half is dropped at once, so that a removal costs constant time. */
class Waiting {
  #calls: (() => void)[] = [];
  #next = 0;
  get length(): number {
    return this.#calls.length - this.#next;
  }
  add(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#calls.push(resolve);
    if (!isCalling) callNext();
    return promise;
  }
  callFirst(): void {
    const call = this.#calls[this.#next++];
    if (this.#next * 2 > this.#calls.length) {
      this.#calls = this.#calls.slice(this.#next);
      this.#next = 0;
    }
    call?.();
  }
}
const arrivals = new Waiting();
const steps = new Waiting();
let isCalling = false;
let hasStepped = false;

/** When the first request or step of this iteration began. */
let begunAt: number | undefined;
function heldMs(): number {
  const now = performance.now();
  if (begunAt !== undefined) return now - begunAt;
  begunAt = now;
  setImmediate(endIteration);
  return 0;
}
function endIteration(): void {
  begunAt = undefined;
  hasStepped = false;
}

const stepsMs = () => (recentRequests.some() ? STEPS_MS : ALL_MS);

/** Whatever is called runs in the microtasks after its callback, so each has a callback of its own. */
function callNext(): void {
  const count = Math.min(CALLS, arrivals.length + steps.length);
  isCalling = count > 0;
  for (let index = 0; index < count; index++) setImmediate(callOne);
  if (isCalling) setImmediate(callNext);
}

function callOne(): void {
  const held = heldMs();
  if (arrivals.length > 0 && held < ARRIVALS_MS) return arrivals.callFirst();
  // One step in any case: constant arrivals delay work, but do not stop it.
  if (steps.length === 0 || (hasStepped && held >= stepsMs())) return;
  hasStepped = true;
  steps.callFirst();
}

/** To be awaited before a request is processed. Undefined when it need not wait. */
export function arrival(): Promise<void> | undefined {
  return arrivals.length === 0 && heldMs() < ARRIVALS_MS ? undefined : arrivals.add();
}

/** To be awaited between steps of long work, none of which takes longer than a millisecond. Undefined when it need not wait. */
export function step(): Promise<void> | undefined {
  return heldMs() < stepsMs() ? undefined : steps.add();
}
