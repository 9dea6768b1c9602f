import type { MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";

/** Times in seconds since the epoch. */
export type Timeframe = [from: number, to: number];

const UNIT_SECONDS = { minutes: 60, hours: 3600, days: 86_400 } as const;
const MAX_SECONDS = 400 * 86_400;

/** The parameters of a query, of which some are arrays: `filters[]=…`. Throws 400 for an unknown one, and for one that is repeated. */
export function parametersOf(
  { context }: Pick<MuxCall, "context">,
  names: { arrays: readonly string[]; single: readonly string[] },
): { list(name: string): string[]; one(name: string): string | null } {
  const { searchParams } = context.url;
  for (const name of new Set(searchParams.keys())) {
    const isArray = name.endsWith("[]") && names.arrays.includes(name.slice(0, -2));
    if (!isArray && !names.single.includes(name))
      invalidParameter(name.slice(0, 50), "is not a parameter of this request");
    if (!isArray && searchParams.getAll(name).length > 1) invalidParameter(name, "must be given once");
  }
  return { list: (name) => searchParams.getAll(`${name}[]`), one: (name) => searchParams.get(name) };
}

/** `timeframe[]`: two times, or a duration before now such as `7:days`. Throws 400. */
export function timeframeOf(given: readonly string[], now: number, byDefault: Timeframe): Timeframe {
  const [first, second, third] = given;
  if (first === undefined) return byDefault;
  if (second === undefined) {
    const [, count, unit] = /^(\d{1,6}):(minutes|hours|days)$/.exec(first) ?? [];
    if (unit === undefined) return refuse();
    const length = Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
    return within([Math.floor(now / 1000) - length, Math.floor(now / 1000)]);
  }
  if (third !== undefined || !/^\d{1,11}$/.test(first) || !/^\d{1,11}$/.test(second)) return refuse();
  return within([Number(first), Number(second)]);
}

const refuse = () =>
  invalidParameter("timeframe", "must be two times in seconds, or a duration such as 24:hours or 7:days");

function within(timeframe: Timeframe): Timeframe {
  const [from, to] = timeframe;
  if (from >= to) invalidParameter("timeframe", "must begin before it ends");
  if (to - from > MAX_SECONDS) notSupported("timeframe of more than 400 days");
  return timeframe;
}

/** As the analytics of ours take it. */
export const rangeQuery = ([from, to]: Timeframe) => ({
  from: new Date(from * 1000).toISOString(),
  to: new Date(to * 1000).toISOString(),
});

/** A page of what is in memory. Throws 400. */
export function pageOf(limit: string | null, page: string | null, byDefault: number): { limit: number; page: number } {
  const whole = (name: string, text: string | null, usual: number, most: number) => {
    if (text === null) return usual;
    const value = /^\d{1,6}$/.test(text) ? Number(text) : 0;
    return value >= 1 && value <= most ? value : invalidParameter(name, `must be a whole number from 1 to ${most}`);
  };
  return { limit: whole("limit", limit, byDefault, 1000), page: whole("page", page, 1, 100_000) };
}
