const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const PERIODS = ["24h", "7d", "30d", "90d", "custom"] as const;
export type Period = (typeof PERIODS)[number];
export type Interval = "hour" | "day";
const DAYS = { "24h": 1, "7d": 7, "30d": 30, "90d": 90 } as const;
/** The API's limits of `timeseries`. */
const MAX_HOURLY_MS = 31 * DAY_MS;
const MAX_MS = 366 * DAY_MS;

/** What the page shows, as in its address. Times are ISO 8601. */
export type Selection = {
  period: Period;
  /** `YYYY-MM-DD` in the viewer's zone, of a custom period. */
  firstDay: string;
  lastDay: string;
  from: string;
  to: string;
  by: Interval;
  /** Hours that the viewer's zone is ahead of UTC at the beginning of the period. */
  utcOffsetHours: number;
  /** Whether the period is short enough for hours. */
  canBeHourly: boolean;
  asset: number | null;
  tenant: number | null;
};

const isDay = (text: string | undefined): text is string =>
  text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
const idOf = (text: string | undefined) => (text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null);

/** A day as `YYYY-MM-DD` in the viewer's zone. */
function dayOf(ms: number): string {
  const date = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The period of the same length before. */
export function before({ from, to }: Pick<Selection, "from" | "to">): Pick<Selection, "from" | "to"> {
  const start = Date.parse(from);
  return { from: new Date(2 * start - Date.parse(to)).toISOString(), to: from };
}

/**
 * Reads the parameters of the page's address; what is missing or wrong has its default. Periods end now, and begin at a
 * whole hour or, by days, at midnight, as the API's buckets do.
 */
export function selectionOf(query: Record<string, string>, now: number): Selection {
  const period = PERIODS.find((one) => one === query.period) ?? "7d";
  const firstDay = isDay(query.from) ? query.from : dayOf(now - 6 * DAY_MS);
  const lastDay = isDay(query.to) && query.to >= firstDay ? query.to : period === "custom" ? firstDay : dayOf(now);
  const [first, last] =
    period === "custom"
      ? [Date.parse(`${firstDay}T00:00`), Date.parse(`${lastDay}T00:00`) + DAY_MS]
      : [now - DAYS[period] * DAY_MS, now];
  const end = Math.min(last, first + MAX_MS);
  const canBeHourly = end - first <= MAX_HOURLY_MS;
  const asked = query.by === "hour" || query.by === "day" ? query.by : null;
  const by = canBeHourly ? (asked ?? (end - first <= 2 * DAY_MS ? "hour" : "day")) : "day";
  const unit = by === "hour" ? HOUR_MS : DAY_MS;
  // The API has hours: days of a zone with half an hour begin half an hour late.
  const utcOffsetHours = Math.round(-new Date(first).getTimezoneOffset() / 60);
  const offset = utcOffsetHours * HOUR_MS;
  // "Last 7 days" are seven bars, of which the last one is not over.
  const from = period === "custom" ? first : Math.floor((first + offset) / unit) * unit + unit - offset;
  return {
    period,
    firstDay,
    lastDay,
    from: new Date(from).toISOString(),
    to: new Date(Math.max(end, from)).toISOString(),
    by,
    utcOffsetHours,
    canBeHourly,
    asset: idOf(query.asset),
    tenant: idOf(query.tenant),
  };
}
