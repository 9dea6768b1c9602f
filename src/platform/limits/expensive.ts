import { availableParallelism } from "node:os";
import { type App, forApp } from "#app.ts";
import { clientClosed, HttpError } from "#lib/base";
import { FairQueue, type FairQueueLimits, type Owner, type Permit, QueueExceeded } from "./fair-queue.ts";

const processors = availableParallelism();
const usual = { concurrency: 4, perOwner: 2, waitingPerOwner: 16, maxWaitMs: 30_000 } satisfies FairQueueLimits;

/** At least two slots, and one more than a single owner can occupy. */
const shares = (slots: number) => ({ concurrency: Math.max(2, slots), perOwner: Math.max(1, slots - 1) });

/**
 * Operations that cost far more than a typical request, and how many of them run at once in each process of a server.
 * Every kind has its own queue, and one tenant cannot occupy all slots of a kind that has more than one.
 */
export const EXPENSIVE = {
  preview: usual,
  commit: usual,
  sync: usual,
  /** Mostly waits for another service. */
  translate: { ...usual, concurrency: 16, perOwner: 4 },
  /** Takes as long as the client reads. */
  export: { ...usual, concurrency: 16, perOwner: 4 },
  import: { ...usual, concurrency: 2, perOwner: 1, maxWaitMs: 120_000 },
  /**
   * Batches of playback events take about a millisecond each; one at a time, so that a burst does not delay other
   * requests.
   */
  beacons: { concurrency: 1, perOwner: 1, waitingPerOwner: 1000, maxWaitMs: 15_000 },
  /** Still images: one short run of ffmpeg each. */
  pictures: { ...usual, ...shares(Math.floor(processors / 2)), waitingPerOwner: 64, maxWaitMs: 15_000 },
  /** Runs of ffmpeg of up to ten seconds, which yield to still images. */
  animations: { ...usual, ...shares(Math.floor(processors / 2)), maxWaitMs: 60_000 },
  /** Up to a thousand changes, in small transactions. */
  bulk: { ...usual, perOwner: 1 },
  /** All manifests of an asset, of which there are at most 32 MiB, are in memory. */
  clips: usual,
  /** Pages of lists that are larger than most. Each is in memory until it is sent. */
  lists: { ...usual, concurrency: 16, waitingPerOwner: 256 },
  /** Searches of anyone in public collections: they take no place of those who sign in. */
  public_search: { ...usual, concurrency: 2, perOwner: 1, waitingPerOwner: 16 },
  /** Pages of public collections, with up to two hundred videos. */
  public_pages: { ...usual, concurrency: 8, waitingPerOwner: 64 },
  /** Reads an index to its end, in slices. */
  count: usual,
  /** Some milliseconds of the database and of comparing texts, in slices. */
  search: { ...usual, waitingPerOwner: 256 },
  /**
   * Bodies of at most 10 MiB, which are in memory until an image was decoded; decoding has its own queue. Slow senders
   * hold their places, so there are places for many tenants.
   */
  posters: { ...usual, concurrency: 32 },
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

/** The queue itself, for an operation that is not a route. */
export const queueOf = (app: App, name: ExpensiveName): FairQueue => queues(app)[name];

/**
 * Admits one expensive operation of `owner`; the permit must be released. Throws 429 `rate_limited` when too many of
 * the owner's operations of this kind are queued, 503 `busy` when this one has waited too long; both with Retry-After.
 * Throws 499 when `signal` aborts first.
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
        `Too many ${name} operations are waiting; retry when some have completed.`,
        { headers },
      );
    throw new HttpError(503, "busy", `The server is busy with other ${name} operations; try again.`, { headers });
  }
}
