import { networkOf } from "#lib/network";

export type HandshakeLimits = {
  /** First handshakes of all addresses, which may be forged, in a second. More are not answered. */
  inductionsPerSecond: number;
  /** Handshakes with a valid cookie from one address in a minute. */
  handshakesPerAddress: number;
  /**
   * Those in each second when the ones of the minute are used up, by whichever caller at that address, and as many by callers
   * that had none in this minute. More are not answered.
   */
  moreHandshakesPerSecond: number;
  /** Handshakes with a valid cookie of all addresses in a second, except for the first one of each address. */
  handshakesPerSecond: number;
};

const MINUTE_MS = 60_000;
const SECOND_MS = 1000;
/** Networks that are counted at once: each has proved that it receives at its address. */
const MAX_NETWORKS = 10_000;

/** Limits handshakes. Times are milliseconds of a monotonic clock. */
export class HandshakeRate {
  readonly #limits: HandshakeLimits;
  #inductions = { until: 0, count: 0 };
  #second = { until: 0, count: 0, counts: new Map<string, number>(), newCallers: new Map<string, number>() };
  /** As many callers as handshakes were allowed. */
  #minute = { until: 0, counts: new Map<string, number>(), callers: new Set<string>() };

  constructor(limits: HandshakeLimits) {
    this.#limits = limits;
  }

  /** Whether an induction may be answered. */
  allowsInduction(now: number): boolean {
    if (now >= this.#inductions.until) this.#inductions = { until: now + SECOND_MS, count: 0 };
    return ++this.#inductions.count <= this.#limits.inductionsPerSecond;
  }

  /** Whether a handshake may begin a connection, of a caller that has returned its cookie. */
  allowsConclusion({ address, port }: { address: string; port: number }, now: number): boolean {
    if (now >= this.#minute.until) this.#minute = { until: now + MINUTE_MS, counts: new Map(), callers: new Set() };
    if (now >= this.#second.until)
      this.#second = { until: now + SECOND_MS, count: 0, counts: new Map(), newCallers: new Map() };
    const network = networkOf(address);
    const ofMinute = counted(this.#minute.counts, network);
    const ofSecond = counted(this.#second.counts, network);
    if (ofMinute === null || ofSecond === null) return false;
    const { handshakesPerAddress, moreHandshakesPerSecond, handshakesPerSecond } = this.#limits;
    const caller = `${address}|${port}`;
    if (ofMinute > handshakesPerAddress && ofSecond > moreHandshakesPerSecond) {
      // Who tries again all the time must not take the places of one that has just come.
      if (this.#minute.callers.has(caller)) return false;
      const newCallers = counted(this.#second.newCallers, network);
      if (newCallers === null || newCallers > moreHandshakesPerSecond) return false;
    }
    if (++this.#second.count > handshakesPerSecond && ofSecond !== 1) return false;
    this.#minute.callers.add(caller);
    return true;
  }
}

/** Counts one more of a network. Null when there are too many networks. */
function counted(counts: Map<string, number>, network: string): number | null {
  const count = (counts.get(network) ?? 0) + 1;
  if (count === 1 && counts.size >= MAX_NETWORKS) return null;
  counts.set(network, count);
  return count;
}
