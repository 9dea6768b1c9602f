import { setTimeout } from "#lib/base";
/** The owner of an operation: a tenant's id, or a name for work that belongs to no tenant. */
export type Owner = number | string;

export type FairQueueLimits = {
  /** Operations that run at once. */
  concurrency: number;
  /** Operations of one owner that run at once. */
  perOwner: number;
  /** Operations of one owner that may be queued. */
  waitingPerOwner: number;
  /** Longest wait, in milliseconds. */
  maxWaitMs: number;
};

/** The owner has reached its queue limit, or this operation its longest wait. */
export class QueueExceeded extends Error {
  readonly reason: "full" | "timeout";
  constructor(reason: QueueExceeded["reason"]) {
    super(reason === "full" ? "Too many operations are waiting." : "The operation waited too long.");
    this.name = "QueueExceeded";
    this.reason = reason;
  }
}

/** A running operation. `release` may be called more than once. */
export type Permit = { release(): void };

type Waiting = { begin(): void };

/**
 * Limits how many operations run at once and shares the slots among owners: a free slot goes to the waiting owner with
 * the fewest running operations, and among equals to the one that was served longest ago. However many operations one
 * owner queues, another owner's next operation waits for at most one running operation to end.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits;
  readonly #running = new Map<Owner, number>();
  /** An owner without waiting operations has no entry. */
  readonly #waiting = new Map<Owner, Set<Waiting>>();
  /** A counter value of when owners were last served, for those with running or waiting operations. */
  readonly #served = new Map<Owner, number>();
  #total = 0;
  #count = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#total;
  }

  get waiting(): number {
    let sum = 0;
    for (const each of this.#waiting.values()) sum += each.size;
    return sum;
  }

  /** Runs `work` when the queue admits it. Throws QueueExceeded, the reason of `signal`, and errors of `work`. */
  async run<T>(owner: Owner, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const permit = await this.acquire(owner, signal);
    try {
      return await work();
    } finally {
      permit.release();
    }
  }

  /** Acquires a slot for one operation; every permit must be released. Throws QueueExceeded, the reason of `signal`. */
  async acquire(owner: Owner, signal?: AbortSignal): Promise<Permit> {
    signal?.throwIfAborted();
    if (!this.#canQueue(owner)) await this.#wait(owner, signal);
    else this.#start(owner);
    let isReleased = false;
    return {
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#end(owner);
      },
    };
  }

  #canQueue(owner: Owner): boolean {
    return this.#total < this.#limits.concurrency && (this.#running.get(owner) ?? 0) < this.#limits.perOwner;
  }

  #start(owner: Owner): void {
    this.#total++;
    this.#served.set(owner, ++this.#count);
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
  }

  #end(owner: Owner): void {
    this.#total--;
    const left = (this.#running.get(owner) ?? 1) - 1;
    if (left > 0) this.#running.set(owner, left);
    else this.#running.delete(owner);
    this.#fill();
    this.#forget(owner);
  }

  #forget(owner: Owner): void {
    if (!this.#running.has(owner) && !this.#waiting.has(owner)) this.#served.delete(owner);
  }

  /** The slot is counted before it is granted, so that a newcomer cannot take it in between. */
  #wait(owner: Owner, signal: AbortSignal | undefined): Promise<void> {
    const queue = this.#waiting.get(owner) ?? new Set();
    if (queue.size >= this.#limits.waitingPerOwner) throw new QueueExceeded("full");
    this.#waiting.set(owner, queue);
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        queue.delete(waiting);
        if (queue.size === 0 && this.#waiting.get(owner) === queue) this.#waiting.delete(owner);
        this.#forget(owner);
      };
      const waiting: Waiting = {
        begin: () => {
          leave();
          resolve();
        },
      };
      const onAbort = () => {
        leave();
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        leave();
        reject(new QueueExceeded("timeout"));
      }, this.#limits.maxWaitMs);
      signal?.addEventListener("abort", onAbort, { once: true });
      queue.add(waiting);
    });
  }

  #fill(): void {
    while (this.#total < this.#limits.concurrency) {
      const owners = [...this.#waiting.keys()].map((each) => ({
        owner: each,
        running: this.#running.get(each) ?? 0,
        served: this.#served.get(each) ?? 0,
      }));
      const { owner } = nextOwner(owners, this.#limits.perOwner) ?? {};
      const queue = owner === undefined ? undefined : this.#waiting.get(owner);
      const [first] = queue ?? [];
      if (owner === undefined || !queue || !first) return;
      this.#start(owner);
      first.begin();
    }
  }
}

/**
 * The owner whose operation starts next: of those below `perOwner` the one with the fewest running, and among equals
 * the one that was served longest ago (`served`: any increasing number). Undefined when there is none.
 */
export function nextOwner<T extends { running: number; served: number }>(
  owners: Iterable<T>,
  perOwner: number,
): T | undefined {
  let best: T | undefined;
  for (const each of owners) {
    if (each.running >= perOwner) continue;
    if (!best || each.running < best.running || (each.running === best.running && each.served < best.served))
      best = each;
  }
  return best;
}
