/** A granted lock; `contested` aborts when a newer request asks for it. */
export type Lock = { readonly contested: AbortSignal; end(): void };

/** `shared` locks are held together; a `newest` one asks earlier holders to release. */
export type LockOptions = { shared?: boolean | undefined; newest?: boolean | undefined };

/** Acquires a named lock, first come, first served, among several processes. Every lock must be released. */
export type AcquireLock = (name: string, options?: LockOptions) => Promise<Lock>;

/** Runs `work` under lock `name`; immediately when there is a single process. */
export async function withLock<T>(
  take: AcquireLock | undefined,
  name: string,
  { options, work }: { options?: LockOptions; work: (contested: AbortSignal | undefined) => Promise<T> },
): Promise<T> {
  if (take === undefined) return work(undefined);
  const lock = await take(name, options);
  try {
    return await work(lock.contested);
  } finally {
    lock.end();
  }
}

type LockWaiter<Holder> = { holder: Holder; id: number; shared: boolean; hasPublisherElsewhere: boolean };
export type LockRequest = LockOptions & { id: number; name: string };

/** The locks of several processes, kept by one process. A process that exits releases its locks. */
export class LockManager<Holder> {
  readonly #queues = new Map<string, LockWaiter<Holder>[]>();
  readonly #notify: { granted(holder: Holder, id: number): void; contested(holder: Holder, id: number): void };

  constructor(notify: { granted(holder: Holder, id: number): void; contested(holder: Holder, id: number): void }) {
    this.#notify = notify;
  }

  ask(holder: Holder, { id, name, shared = false, newest = false }: LockRequest): void {
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    if (newest) for (const earlier of queue) this.#notify.contested(earlier.holder, earlier.id);
    queue.push({ holder, id, shared, hasPublisherElsewhere: false });
    this.#grant(queue);
  }

  end(holder: Holder, { id, name }: { id: number; name: string }): void {
    this.#remove(name, (waiter) => waiter.holder === holder && waiter.id === id);
  }

  gone(holder: Holder): void {
    for (const name of [...this.#queues.keys()]) this.#remove(name, (waiter) => waiter.holder === holder);
  }

  #remove(name: string, isTheirs: (waiter: LockWaiter<Holder>) => boolean): void {
    const left = this.#queues.get(name)?.filter((waiter) => !isTheirs(waiter)) ?? [];
    if (left.length === 0) {
      this.#queues.delete(name);
      return;
    }
    this.#queues.set(name, left);
    this.#grant(left);
  }

  /** The first request in the queue, and with a shared one all shared ones up to the next exclusive one. */
  #grant(queue: LockWaiter<Holder>[]): void {
    for (const [index, waiter] of queue.entries()) {
      if (index > 0 && !(waiter.shared && queue[0]?.shared)) return;
      if (waiter.hasPublisherElsewhere) continue;
      waiter.hasPublisherElsewhere = true;
      this.#notify.granted(waiter.holder, waiter.id);
    }
  }
}
