import { sql } from "drizzle-orm";
import { iso, pacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { Buckets } from "./buckets.ts";
import { startOfHour } from "./deltas.ts";
import type { Range } from "./range.ts";

/** The subject of the sums (subject.ts): an asset, a live channel, or all of the tenant with 0. */
export type Scope = { tenantId: number; assetId: number };

type Totals = { plays: number; completions: number; watched_ms: number; errors: number };
/** Long ranges are read in parts, so that no single query blocks for a whole year. */
export const PIECE_HOURS = 7 * 24;

export async function summaryOf(db: Db, scope: Scope, range: Range, buckets: Buckets | null) {
  const hours = await extent(db, scope, range);
  const pace = pacer();
  const totals = await totalsOf(db, scope, hours);
  const series = buckets && { timeseries: await timeseries(db, scope, hours, { range, by: buckets, pace }) };
  return {
    from: range.from,
    to: range.to,
    play_count: totals.plays,
    unique_viewers: await viewersOf(db, scope, hours, pace),
    watch_time_seconds: totals.watched_ms / 1000,
    completion_rate: totals.plays === 0 ? 0 : totals.completions / totals.plays,
    average_watch_seconds: totals.plays === 0 ? 0 : totals.watched_ms / 1000 / totals.plays,
    error_count: totals.errors,
    ...series,
  };
}

/** Which hours of the range have data: a range from the year 0 costs no more than one from the first view. */
export async function extent(db: Db, { tenantId, assetId }: Scope, { fromHour, untilHour }: Range): Promise<Hours> {
  const span = await db.get<{ first: number | null; last: number | null }>(sql`
    SELECT min(hour) AS first, max(hour) AS last FROM analytics_hours
    WHERE tenant_id = ${tenantId} AND asset_id = ${assetId} AND hour >= ${fromHour} AND hour < ${untilHour}`);
  return { from: span?.first ?? fromHour, until: span?.last == null ? fromHour : span.last + 1 };
}
type Hours = { from: number; until: number };
type Pace = () => Promise<void>;
type Series = { range: Range; by: Buckets; pace: Pace };

async function totalsOf(db: Db, { tenantId, assetId }: Scope, { from, until }: Hours): Promise<Totals> {
  const totals = await db.get<Totals>(sql`
    SELECT coalesce(sum(plays), 0) AS plays, coalesce(sum(completions), 0) AS completions,
      coalesce(sum(watched_ms), 0) AS watched_ms, coalesce(sum(errors), 0) AS errors
    FROM analytics_hours
    WHERE tenant_id = ${tenantId} AND asset_id = ${assetId} AND hour >= ${from} AND hour < ${until}`);
  return totals as Totals;
}

/** Viewers whose last play before one in the range was before the range: each viewer's first play in it. */
async function viewersOf(db: Db, { tenantId, assetId }: Scope, { from, until }: Hours, pace: Pace): Promise<number> {
  let viewers = 0;
  for (let piece = from; piece < until; piece += PIECE_HOURS) {
    await pace();
    const row = await db.get<{ viewers: number }>(sql`
      SELECT coalesce(sum(viewers), 0) AS viewers FROM analytics_returns
      WHERE tenant_id = ${tenantId} AND asset_id = ${assetId}
        AND hour >= ${piece} AND hour < ${Math.min(until, piece + PIECE_HOURS)} AND last_hour < ${from}`);
    viewers += row?.viewers ?? 0;
  }
  return viewers;
}

/**
 * One bucket per hour, or per day, that the range overlaps; the first and last contain only what is in the range.
 */
async function timeseries(db: Db, { tenantId, assetId }: Scope, { from, until }: Hours, { range, by, pace }: Series) {
  const buckets = new Map<number, { plays: number; viewers: number; watchedMs: number }>();
  for (const index of by.indexesOf(range)) buckets.set(index, { plays: 0, viewers: 0, watchedMs: 0 });
  // Both in key order: grouping by anything but the hour would need a sort.
  for (let piece = from; piece < until; piece += PIECE_HOURS) {
    const inPiece = sql`tenant_id = ${tenantId} AND asset_id = ${assetId}
      AND hour >= ${piece} AND hour < ${Math.min(until, piece + PIECE_HOURS)}`;
    await pace();
    const hours = await db.all<{ hour: number; plays: number; watched_ms: number }>(sql`
      SELECT hour, plays, watched_ms FROM analytics_hours WHERE ${inPiece}`);
    for (const { hour, plays, watched_ms } of hours) {
      const bucket = buckets.get(by.indexOf(hour));
      if (!bucket) continue;
      bucket.plays += plays;
      bucket.watchedMs += watched_ms;
    }
    await pace();
    const seen = await db.all<{ hour: number; viewers: number }>(sql`
      SELECT hour, sum(viewers) AS viewers FROM analytics_returns
      WHERE ${inPiece} AND last_hour < max(hour - (hour + ${by.offset}) % ${by.size}, ${from}) GROUP BY tenant_id, asset_id, hour`);
    for (const { hour, viewers } of seen) {
      const bucket = buckets.get(by.indexOf(hour));
      if (bucket) bucket.viewers += viewers;
    }
  }
  return [...buckets].map(([bucket, { plays, viewers, watchedMs }]) => ({
    start: iso(startOfHour(by.firstHourOf(bucket))),
    play_count: plays,
    unique_viewers: viewers,
    watch_time_seconds: watchedMs / 1000,
  }));
}

const STEPS = 100;

/** How many of the sessions played in the range reached each hundredth of the video. */
export async function retentionOf(db: Db, asset: { id: number; durationSeconds: number }, range: Range) {
  const { from, until } = { from: range.fromHour, until: range.untilHour };
  const rows = await db.all<{ reached: number; sessions: number }>(sql`
    SELECT reached, sum(sessions) AS sessions FROM analytics_reach
    WHERE asset_id = ${asset.id} AND hour >= ${from} AND hour < ${until} GROUP BY reached`);
  const curve = [];
  let viewers = rows.reduce((sum, { sessions }) => sum + sessions, 0);
  const ending = new Map(rows.map((row) => [row.reached, row.sessions]));
  for (let step = 0; step < STEPS; step++) {
    curve.push({ position_seconds: (asset.durationSeconds * step) / STEPS, viewers });
    viewers -= ending.get(step) ?? 0;
  }
  return curve;
}
