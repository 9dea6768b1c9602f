/** A turn that was given; `wanted` aborts when somebody newer asks to have it instead. */
export type Lock = { readonly wanted: AbortSignal; end(): void };

/** `shared` ones hold a name together; a `newest` one asks those before it to give way. */
export type LockOptions = { shared?: boolean | undefined; newest?: boolean | undefined };

/** Waits for its turn at `name`, in the order of asking, among several processes. Every turn must be ended. */
export type AcquireLock = (name: string, options?: LockOptions) => Promise<Lock>;

/** `work` in its turn at `name`; at once where there is one process alone. */
export async function withLock<T>(
  take: AcquireLock | undefined,
  name: string,
  { options, work }: { options?: LockOptions; work: (wanted: AbortSignal | undefined) => Promise<T> },
): Promise<T> {
  if (take === undefined) return work(undefined);
  const turn = await take(name, options);
  try {
    return await work(turn.wanted);
  } finally {
    turn.end();
  }
}

type LockWaiter<Holder> = { holder: Holder; id: number; shared: boolean; isHeld: boolean };
export type LockRequest = LockOptions & { id: number; name: string };

/** Who has which turn: kept by one process for several. A holder that is gone holds nothing. */
export class LockManager<Holder> {
  readonly #queues = new Map<string, LockWaiter<Holder>[]>();
  readonly #tell: { given(holder: Holder, id: number): void; wanted(holder: Holder, id: number): void };

  constructor(tell: { given(holder: Holder, id: number): void; wanted(holder: Holder, id: number): void }) {
    this.#tell = tell;
  }

  ask(holder: Holder, { id, name, shared = false, newest = false }: LockRequest): void {
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    if (newest) for (const earlier of queue) this.#tell.wanted(earlier.holder, earlier.id);
    queue.push({ holder, id, shared, isHeld: false });
    this.#give(queue);
  }

  end(holder: Holder, { id, name }: { id: number; name: string }): void {
    this.#remove(name, (asked) => asked.holder === holder && asked.id === id);
  }

  gone(holder: Holder): void {
    for (const name of [...this.#queues.keys()]) this.#remove(name, (asked) => asked.holder === holder);
  }

  #remove(name: string, isTheirs: (asked: LockWaiter<Holder>) => boolean): void {
    const left = this.#queues.get(name)?.filter((asked) => !isTheirs(asked)) ?? [];
    if (left.length === 0) {
      this.#queues.delete(name);
      return;
    }
    this.#queues.set(name, left);
    this.#give(left);
  }

  /** The first of the queue, and with a shared one all shared ones up to the next that is not. */
  #give(queue: LockWaiter<Holder>[]): void {
    for (const [index, asked] of queue.entries()) {
      if (index > 0 && !(asked.shared && queue[0]?.shared)) return;
      if (asked.isHeld) continue;
      asked.isHeld = true;
      this.#tell.given(asked.holder, asked.id);
    }
  }
}
