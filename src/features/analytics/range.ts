import { invalid, iso } from "#lib/base";
import { hourOf } from "./deltas.ts";

const DAY_MS = 86_400_000;
const DEFAULT_MS = 30 * DAY_MS;
const MAX_DAYS = { minute: 1, hour: 31, day: 366 } as const;

export type Interval = "hour" | "day";
/** As requested, and in whole hours: from the hour of `from` up to, but excluding, `untilHour`. */
export type Range = { from: string; to: string; fromHour: number; untilHour: number };
type RangeQuery = { from?: string | undefined; to?: string | undefined; interval?: Interval | undefined };

/** The default is the last 30 days. Throws 422. */
export function rangeOf({ from, to, interval }: RangeQuery, now: number): Range {
  const toMs = to === undefined ? now : Date.parse(to);
  const fromMs = from === undefined ? toMs - DEFAULT_MS : Date.parse(from);
  if (fromMs > toMs) invalid("from", "must not be after to");
  const range = { from: iso(fromMs), to: iso(toMs), fromHour: hourOf(fromMs), untilHour: hourOf(toMs - 1) + 1 };
  if (interval) requireShort(range, interval);
  return range;
}

/** Throws 422 for a range whose series of this interval would be too long. */
export function requireShort({ from, to }: Range, interval: keyof typeof MAX_DAYS): void {
  const days = MAX_DAYS[interval];
  if (Date.parse(to) - Date.parse(from) > days * DAY_MS)
    invalid("from", `must be at most ${days} ${days === 1 ? "day" : "days"} before to, by ${interval}s`);
}
