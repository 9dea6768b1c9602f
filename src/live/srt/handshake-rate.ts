import { networkOf } from "../../lib/network.ts";

export type HandshakeLimits = {
  /** First handshakes of all addresses, which may be forged, in a second. More are not answered. */
  inductionsPerSecond: number;
  /** Handshakes with a valid cookie from one address in a minute. More are not answered. */
  handshakesPerAddress: number;
};

const MINUTE_MS = 60_000;
const SECOND_MS = 1000;
/** Networks that are counted at once: each has proved that it receives at its address. */
const MAX_NETWORKS = 10_000;

/** Limits handshakes. Times are milliseconds of a monotonic clock. */
export class HandshakeRate {
  readonly #limits: HandshakeLimits;
  #second = { until: 0, count: 0 };
  #minute = { until: 0, counts: new Map<string, number>() };

  constructor(limits: HandshakeLimits) {
    this.#limits = limits;
  }

  /** Whether an induction may be answered. */
  allowsInduction(now: number): boolean {
    if (now >= this.#second.until) this.#second = { until: now + SECOND_MS, count: 0 };
    return ++this.#second.count <= this.#limits.inductionsPerSecond;
  }

  /** Whether a handshake may begin a connection, from an address that has returned its cookie. */
  allowsConclusion(address: string, now: number): boolean {
    if (now >= this.#minute.until) this.#minute = { until: now + MINUTE_MS, counts: new Map() };
    const { counts } = this.#minute;
    const network = networkOf(address);
    const count = (counts.get(network) ?? 0) + 1;
    if (count === 1 && counts.size >= MAX_NETWORKS) return false;
    counts.set(network, count);
    return count <= this.#limits.handshakesPerAddress;
  }
}
