import { networkOf } from "#lib/network";
import { MinuteLog } from "./minute-log.ts";
import type { Log, LogLevel } from "./types.ts";

/** Networks with lines of their own in a minute. Connections of more share one line. */
const MAX_NETWORKS = 100;

/**
 * The log of connections whose publish was not accepted: strangers decide how many there are, so each address gets one line in
 * a minute. Times are milliseconds of a monotonic clock.
 */
export class StrangerLog {
  readonly #log: MinuteLog;

  constructor(log: Log, now?: () => number) {
    this.#log = new MinuteLog(log, { maxKeys: MAX_NETWORKS, now });
  }

  write(level: LogLevel, message: string, fields: Record<string, string | number> & { address: string }): void {
    this.#log.write(networkOf(fields.address), level, message, fields);
  }
}
