import { networkOf } from "../../lib/network.ts";

export type HandshakeLimits = {
  /** First handshakes of all addresses, which may be forged, in a second. More are not answered. */
  inductionsPerSecond: number;
  /** Handshakes with a valid cookie from one address in a minute. */
  handshakesPerAddress: number;
  /** Those in each second when the ones of the minute are used up, by whichever caller at that address. More are not answered. */
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
  #second = { until: 0, count: 0, counts: new Map<string, number>() };
  #minute = { until: 0, counts: new Map<string, number>() };

  constructor(limits: HandshakeLimits) {
    this.#limits = limits;
  }

  /** Whether an induction may be answered. */
  allowsInduction(now: number): boolean {
    if (now >= this.#inductions.until) this.#inductions = { until: now + SECOND_MS, count: 0 };
    return ++this.#inductions.count <= this.#limits.inductionsPerSecond;
  }

  /** Whether a handshake may begin a connection, from an address that has returned its cookie. */
  allowsConclusion(address: string, now: number): boolean {
    if (now >= this.#minute.until) this.#minute = { until: now + MINUTE_MS, counts: new Map() };
    if (now >= this.#second.until) this.#second = { until: now + SECOND_MS, count: 0, counts: new Map() };
    const network = networkOf(address);
    const ofMinute = counted(this.#minute.counts, network);
    const ofSecond = counted(this.#second.counts, network);
    if (ofMinute === null || ofSecond === null) return false;
    const { handshakesPerAddress, moreHandshakesPerSecond, handshakesPerSecond } = this.#limits;
    if (ofMinute > handshakesPerAddress && ofSecond > moreHandshakesPerSecond) return false;
    return ++this.#second.count <= handshakesPerSecond || ofSecond === 1;
  }
}

/** Counts one more of a network. Null when there are too many networks. */
function counted(counts: Map<string, number>, network: string): number | null {
  const count = (counts.get(network) ?? 0) + 1;
  if (count === 1 && counts.size >= MAX_NETWORKS) return null;
  counts.set(network, count);
  return count;
}
