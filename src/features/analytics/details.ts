import { sql } from "drizzle-orm";
import { pacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { Buckets } from "./buckets.ts";
import { DEVICES, type Device } from "./device.ts";
import type { Range } from "./range.ts";
import { percentile } from "./startup.ts";
import { extent, type Scope } from "./summary.ts";

const COLUMNS = ["plays", "completions", "watched_ms", "errors", "stalls", "stalled_ms"] as const;
type Sums = Record<(typeof COLUMNS)[number], number>;
type Startups = Map<number, number>;

const noSums = (): Sums => ({ plays: 0, completions: 0, watched_ms: 0, errors: 0, stalls: 0, stalled_ms: 0 });

function add(to: Sums, row: Sums): void {
  for (const column of COLUMNS) to[column] += row[column];
}

/** A day at a time: an hour has a row for each device, and about fifty for startup times. */
const PIECE_HOURS = 24;

/**
 * Startup times, rebuffering and devices of a range, and those of its buckets in the order of `timeseries` of the summary.
 * Errors and completions of buckets include those without a device class, of earlier versions.
 */
export async function detailsOf(db: Db, scope: Scope, range: Range, by: Buckets | null) {
  const { from, until } = await extent(db, scope, range);
  const pace = pacer();
  const devices = new Map<Device, Sums>();
  const startups: Startups = new Map();
  const series = by && seriesOf(range, by);
  // SQLite adds up the hours of a bucket: a row costs more to return than to read.
  const index = by ? sql`(hour + ${by.offset}) / ${by.size}` : sql`0`;
  for (let piece = from; piece < until; piece += PIECE_HOURS) {
    const inPiece = sql`tenant_id = ${scope.tenantId} AND asset_id = ${scope.assetId}
      AND hour >= ${piece} AND hour < ${Math.min(until, piece + PIECE_HOURS)}`;
    await pace();
    const rows = await db.all<Sums & { at: number; device: Device }>(sql`
      SELECT ${index} AS at, device, sum(plays) AS plays, sum(completions) AS completions,
        sum(watched_ms) AS watched_ms, sum(errors) AS errors, sum(stalls) AS stalls, sum(stalled_ms) AS stalled_ms
      FROM analytics_devices WHERE ${inPiece} GROUP BY 1, 2`);
    for (const row of rows) {
      const sums = devices.get(row.device) ?? noSums();
      devices.set(row.device, sums);
      add(sums, row);
      const bucket = series?.get(row.at);
      if (bucket) add(bucket.byDevice, row);
    }
    await pace();
    const started = await db.all<{ at: number; bucket: number; sessions: number }>(sql`
      SELECT ${index} AS at, bucket, sum(sessions) AS sessions FROM analytics_startups WHERE ${inPiece} GROUP BY 1, 2`);
    for (const { at, bucket, sessions } of started) {
      startups.set(bucket, (startups.get(bucket) ?? 0) + sessions);
      const inBucket = series?.get(at)?.startups;
      inBucket?.set(bucket, (inBucket.get(bucket) ?? 0) + sessions);
    }
    if (!series) continue;
    await pace();
    const hours = await db.all<{ at: number; plays: number; completions: number; errors: number }>(sql`
      SELECT ${index} AS at, sum(plays) AS plays, sum(completions) AS completions, sum(errors) AS errors
      FROM analytics_hours WHERE ${inPiece} GROUP BY 1`);
    for (const { at, plays, completions, errors } of hours) {
      const bucket = series.get(at);
      if (!bucket) continue;
      bucket.plays += plays;
      bucket.completions += completions;
      bucket.errors += errors;
    }
  }
  const all = noSums();
  for (const sums of devices.values()) add(all, sums);
  return {
    startup: {
      session_count: startups.values().reduce((sum, sessions) => sum + sessions, 0),
      p50_ms: percentile(startups, 0.5),
      p75_ms: percentile(startups, 0.75),
      p95_ms: percentile(startups, 0.95),
    },
    rebuffering: { count: all.stalls, seconds: all.stalled_ms / 1000, ratio: rebufferRatio(all) },
    devices: DEVICES.flatMap((device) => {
      const sums = devices.get(device);
      return sums ? [{ device, ...deviceSummary(sums) }] : [];
    }),
    ...(series && { timeseries: [...series.values()].map(bucketSummary) }),
  };
}

const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);
const rebufferRatio = ({ stalled_ms, watched_ms }: Sums) => share(stalled_ms, stalled_ms + watched_ms);

const deviceSummary = (sums: Sums) => ({
  play_count: sums.plays,
  watch_time_seconds: sums.watched_ms / 1000,
  completion_rate: share(sums.completions, sums.plays),
  rebuffer_ratio: rebufferRatio(sums),
  error_count: sums.errors,
});

type Bucket = { plays: number; completions: number; errors: number; byDevice: Sums; startups: Startups };

/** The sums of each bucket of a range, in order. */
function seriesOf(range: Range, by: Buckets): Map<number, Bucket> {
  const series = new Map<number, Bucket>();
  for (const index of by.indexesOf(range))
    series.set(index, { plays: 0, completions: 0, errors: 0, byDevice: noSums(), startups: new Map() });
  return series;
}

const bucketSummary = ({ completions, plays, errors, startups, byDevice }: Bucket) => ({
  completion_rate: share(completions, plays),
  error_count: errors,
  startup_p50_ms: percentile(startups, 0.5),
  rebuffer_ratio: rebufferRatio(byDevice),
});
