import { networkOf } from "#lib/network";

export type PendingLimits = {
  /** Connections without an accepted publish at once. One more closes the oldest. */
  pendingConnections: number;
};

/** One connection until its publish is accepted. */
export type Pending = {
  /** It has got further: it is as new as one that has just been opened. To be called a few times only. */
  advance(): void;
  /** Its publish is accepted, or it has ended. May be called again. */
  release(): void;
};

/** `advancedAt`: by the monotonic clock; 0 before the first progress. */
type Entry = { network: string; advancedAt: number; close: () => void };

/** A connection that has made progress within this time is closed only when all of its network have. */
const FRESH_MS = 1000;

/**
 * The budget of connections whose publisher is not known yet. It is separate from the one of publishers, so whatever strangers
 * open, publishers that are authenticated stay, and a new one still has a place: the oldest connection is closed for it, of the
 * network that has the most. So a flood from one address closes its own connections. The time since the last progress counts: a
 * publisher takes one round trip for each step, so it outlasts connections that make no progress, however far they have got.
 */
export class PendingConnections {
  readonly #limits: PendingLimits;
  /** In the order of their last progress. */
  readonly #entries = new Set<Entry>();
  readonly #perNetwork = new Map<string, number>();

  constructor(limits: PendingLimits) {
    this.#limits = limits;
  }

  /** `close` is called when another connection needs the place. */
  add(address: string, close: () => void): Pending {
    const entry: Entry = { network: networkOf(address), advancedAt: 0, close };
    // Counted first: with its own, a network may be the one that has the most.
    this.#perNetwork.set(entry.network, this.#of(entry.network) + 1);
    while (this.#entries.size >= this.#limits.pendingConnections) this.#closeOldest();
    this.#entries.add(entry);
    return {
      advance: () => {
        entry.advancedAt = performance.now();
        if (this.#entries.delete(entry)) this.#entries.add(entry);
      },
      release: () => this.#remove(entry),
    };
  }

  get size(): number {
    return this.#entries.size;
  }

  #of(network: string): number {
    return this.#perNetwork.get(network) ?? 0;
  }

  #closeOldest(): void {
    let found: Entry | null = null;
    const freshFrom = performance.now() - FRESH_MS;
    const isFresh = ({ advancedAt }: Entry) => advancedAt > 0 && advancedAt > freshFrom;
    for (const entry of this.#entries) {
      const more: number = found === null ? 1 : this.#of(entry.network) - this.#of(found.network);
      if (more > 0 || (more === 0 && found !== null && isFresh(found) && !isFresh(entry))) found = entry;
    }
    if (found === null) return;
    this.#remove(found);
    found.close();
  }

  #remove(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    const rest = this.#of(entry.network) - 1;
    if (rest === 0) this.#perNetwork.delete(entry.network);
    else this.#perNetwork.set(entry.network, rest);
  }
}
