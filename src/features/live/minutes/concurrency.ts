import { sql } from "drizzle-orm";
import { minuteOf, startOfMinute } from "#features/tenants/usage.ts";
import { iso, pacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";

/** Minutes of an interval. */
const SIZES = { minute: 1, hour: 60, day: 1440 } as const;
export const CONCURRENCY_INTERVALS = ["minute", "hour", "day"] as const;
export type ConcurrencyInterval = (typeof CONCURRENCY_INTERVALS)[number];

/** Rows that one query reads: about a millisecond. */
const PIECE_MINUTES = 1440;

type Channel = { id: number; tenantId: number };
/** ISO 8601. */
type Range = { from: string; to: string };
/** The days of a zone that is so many hours ahead of UTC. */
type By = { interval: ConcurrencyInterval; utcOffsetHours: number };
type Sums = { viewers: number; bytes: number; mediaMs: number };

/** Viewers at once and received media of a channel in a range; with `by` also those of each interval, without gaps. */
export async function concurrencyOf(db: Db, { id, tenantId }: Channel, range: Range, by: By | null) {
  const wanted = { from: minuteOf(Date.parse(range.from)), until: minuteOf(Date.parse(range.to) - 1) + 1 };
  const ofChannel = sql`tenant_id = ${tenantId} AND channel_id = ${id}`;
  const extent = await db.get<{ first: number | null; last: number | null }>(sql`
    SELECT min(minute) AS first, max(minute) AS last FROM live_minutes
    WHERE ${ofChannel} AND minute >= ${wanted.from} AND minute < ${wanted.until}`);
  const [size, offset] = by ? [SIZES[by.interval], by.utcOffsetHours * SIZES.hour] : [PIECE_MINUTES, 0];
  const indexOf = (minute: number) => Math.floor((minute + offset) / size);
  const series = new Map<number, Sums>();
  const peak = { viewers: 0, minute: 0 };
  let mediaMs = 0;
  const pace = pacer();
  const until = (extent?.last ?? -1) + 1;
  for (let piece = extent?.first ?? until; piece < until; piece += PIECE_MINUTES) {
    await pace();
    // `minute` is that of the row with the most viewers.
    const rows = await db.all<{ at: number; minute: number; viewers: number; bytes: number; media_ms: number }>(sql`
      SELECT (minute + ${offset}) / ${size} AS at, minute, max(viewers) AS viewers, sum(bytes) AS bytes,
        sum(media_ms) AS media_ms
      FROM live_minutes
      WHERE ${ofChannel} AND minute >= ${piece} AND minute < ${Math.min(until, piece + PIECE_MINUTES)} GROUP BY 1`);
    for (const row of rows) {
      const sums = series.get(row.at) ?? { viewers: 0, bytes: 0, mediaMs: 0 };
      series.set(row.at, sums);
      sums.viewers = Math.max(sums.viewers, row.viewers);
      sums.bytes += row.bytes;
      sums.mediaMs += row.media_ms;
      mediaMs += row.media_ms;
      if (row.viewers > peak.viewers) Object.assign(peak, { viewers: row.viewers, minute: row.minute });
    }
  }
  const concurrency = [];
  for (let index = indexOf(wanted.from); by && index * size - offset < wanted.until; index++)
    concurrency.push({ start: iso(startOfMinute(index * size - offset)), ...shown(series.get(index)) });
  return {
    peak_viewers: peak.viewers,
    peak_viewers_at: peak.viewers === 0 ? null : iso(startOfMinute(peak.minute)),
    live_seconds: mediaMs / 1000,
    ...(by && { concurrency }),
  };
}

/** Null where there was no stream, or no media of it. */
function shown(sums: Sums | undefined) {
  const { viewers, bytes, mediaMs } = sums ?? { viewers: null, bytes: 0, mediaMs: 0 };
  return {
    peak_viewers: viewers,
    bitrate: mediaMs === 0 ? null : Math.round((bytes * 8000) / mediaMs),
    live_seconds: mediaMs / 1000,
  };
}
