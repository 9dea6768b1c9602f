import { availableParallelism } from "node:os";
import { type App, forApp } from "../app.ts";
import { clientClosed, HttpError } from "../lib/errors.ts";
import { FairQueue, type FairQueueLimits, type Owner, type Permit, QueueExceeded } from "./fair-queue.ts";

const processors = availableParallelism();
const usual = { concurrency: 4, perOwner: 2, waitingPerOwner: 16, maxWaitMs: 30_000 } satisfies FairQueueLimits;

/**
 * Operations that cost the server much more than a request usually does, and how many of them run at once. The limits
 * hold in each process of a server. Every kind has a queue of its own, and one tenant cannot take all places of a kind
 * that has more than one.
 */
export const EXPENSIVE = {
  preview: usual,
  commit: usual,
  sync: usual,
  /** Waits for another service most of the time. */
  translate: { ...usual, concurrency: 16, perOwner: 4 },
  /** As long as the client takes it. */
  export: { ...usual, concurrency: 16, perOwner: 4 },
  import: { ...usual, concurrency: 2, perOwner: 1, maxWaitMs: 120_000 },
  /** Batches of playback events take about a millisecond each; one at a time, so that a burst does not delay other requests. */
  beacons: { concurrency: 1, perOwner: 1, waitingPerOwner: 1000, maxWaitMs: 15_000 },
  /** One run of ffmpeg each, of at most ten seconds. */
  pictures: {
    concurrency: Math.max(1, Math.floor(processors / 2)),
    perOwner: Math.max(1, Math.floor(processors / 2) - 1),
    waitingPerOwner: 64,
    maxWaitMs: 15_000,
  },
} satisfies Record<string, FairQueueLimits>;
export type ExpensiveName = keyof typeof EXPENSIVE;

export const RETRY_HEADERS = { "retry-after": "2" };

const queues = forApp(
  () =>
    Object.fromEntries(Object.entries(EXPENSIVE).map(([name, limits]) => [name, new FairQueue(limits)])) as Record<
      ExpensiveName,
      FairQueue
    >,
);

/** The queue itself, for an operation that is not a route of its own. */
export const queueOf = (app: App, name: ExpensiveName): FairQueue => queues(app)[name];

/**
 * A place for one expensive operation of `owner`; it must be released. 429 `rate_limited` when too many of the owner's
 * operations of this kind wait already, 503 `busy` when this one has waited too long; both with Retry-After. 499
 * when `signal` aborts first.
 */
export async function admit(app: App, name: ExpensiveName, owner: Owner, signal?: AbortSignal): Promise<Permit> {
  try {
    return await queueOf(app, name).acquire(owner, signal);
  } catch (error) {
    if (signal?.aborted) throw clientClosed();
    if (!(error instanceof QueueExceeded)) throw error;
    const headers = RETRY_HEADERS;
    if (error.reason === "full")
      throw new HttpError(
        429,
        "rate_limited",
        `Too many operations of this kind are waiting (${name}); wait until some are done, then try again.`,
        { headers },
      );
    throw new HttpError(503, "busy", `The server is busy with other operations (${name}); try again.`, { headers });
  }
}
