import type { Db } from "#storage/db/open.ts";
import { Buckets } from "./buckets.ts";
import { detailsOf } from "./details.ts";
import { originsOf } from "./origins.ts";
import type { Interval, Range } from "./range.ts";
import { type Scope, summaryOf } from "./summary.ts";

type Selection = {
  interval?: Interval | undefined;
  utc_offset_hours?: number | undefined;
  details?: boolean | undefined;
};

/** The summary, with the details that were requested. */
export async function analyticsOf(db: Db, scope: Scope, range: Range, selection: Selection) {
  const { interval, utc_offset_hours = 0, details } = selection;
  const buckets = interval ? new Buckets(interval, utc_offset_hours) : null;
  const summary = await summaryOf(db, scope, range, buckets);
  if (!details) return summary;
  const { timeseries, ...totals } = await detailsOf(db, scope, range, buckets);
  const origins = await originsOf(db, scope, range);
  const series = summary.timeseries?.map((bucket, index) => ({ ...bucket, ...timeseries?.[index] }));
  return { ...summary, ...totals, ...origins, ...(series && { timeseries: series }) };
}
