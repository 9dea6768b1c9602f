import type { Log, LogLevel } from "./types.ts";

const MINUTE_MS = 60_000;
/** The key that lines share when there are too many keys. */
const OTHERS = "others";

type Fields = Record<string, string | number>;

export type MinuteLogOptions = {
  /** Keys with lines of their own in a minute. */
  maxKeys: number;
  /** Milliseconds of a monotonic clock. */
  now?: (() => number) | undefined;
};

/**
 * A log whose lines others cause, as many as they like: each key gets one line in a minute, the first. The line after that, in
 * a later minute, has the number of those without one (`not_logged`).
 */
export class MinuteLog {
  readonly #log: Log;
  readonly #maxKeys: number;
  readonly #now: () => number;
  #until = 0;
  /** Lines that were left out, by key: in this minute, and in the ones before. */
  #current = new Map<string, number>();
  #earlier = new Map<string, number>();

  constructor(log: Log, { maxKeys, now = () => performance.now() }: MinuteLogOptions) {
    this.#log = log;
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  write(own: string, level: LogLevel, message: string, fields: Fields): void {
    const now = this.#now();
    if (now >= this.#until) {
      this.#until = now + MINUTE_MS;
      this.#earlier = this.#current;
      this.#current = new Map();
    }
    const isCounted = this.#current.has(own) || this.#current.size < this.#maxKeys;
    const key = isCounted ? own : OTHERS;
    const count = this.#current.get(key);
    if (count !== undefined) return void this.#current.set(key, count + 1);
    this.#current.set(key, 0);
    const omitted = this.#earlier.get(key) ?? 0;
    this.#log(level, message, omitted > 0 ? { ...fields, not_logged: omitted } : fields);
  }
}
