import { networkOf } from "#lib/network";
import type { Log, LogLevel } from "./types.ts";

const MINUTE_MS = 60_000;
/** Networks with lines of their own in a minute. Connections of more share one line. */
const MAX_NETWORKS = 100;
const OTHERS = "others";

type Fields = Record<string, string | number>;

/**
 * The log of connections whose publish was not accepted: strangers decide how many there are, so each address gets one line in
 * a minute, the first. The line after that, in a later minute, has the number of those without one (`not_logged`). Times are
 * milliseconds of a monotonic clock.
 */
export class StrangerLog {
  readonly #log: Log;
  readonly #now: () => number;
  #until = 0;
  /** Lines that were left out, by network: in this minute, and in the ones before. */
  #current = new Map<string, number>();
  #earlier = new Map<string, number>();

  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  write(level: LogLevel, message: string, fields: Fields & { address: string }): void {
    const now = this.#now();
    if (now >= this.#until) {
      this.#until = now + MINUTE_MS;
      this.#earlier = this.#current;
      this.#current = new Map();
    }
    const own = networkOf(fields.address);
    const isCounted = this.#current.has(own) || this.#current.size < MAX_NETWORKS;
    const network = isCounted ? own : OTHERS;
    const count = this.#current.get(network);
    if (count !== undefined) return void this.#current.set(network, count + 1);
    this.#current.set(network, 0);
    const omitted = this.#earlier.get(network) ?? 0;
    this.#log(level, message, omitted > 0 ? { ...fields, not_logged: omitted } : fields);
  }
}
