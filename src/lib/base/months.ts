/** Calendar months in UTC, identified by their first millisecond. */

export const monthOf = (time: number): number => {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
};

export const nextMonth = (monthStart: number): number => {
  const date = new Date(monthStart);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
};

/** `from` to `to`, split at month boundaries. Empty when `to` is not after `from`. */
export function* spansByMonth(from: number, to: number): Generator<{ monthStart: number; ms: number }> {
  for (let at = from; at < to; ) {
    const monthStart = monthOf(at);
    const end = Math.min(to, nextMonth(monthStart));
    yield { monthStart, ms: end - at };
    at = end;
  }
}
