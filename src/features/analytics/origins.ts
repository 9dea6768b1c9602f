import { sql } from "drizzle-orm";
import { pacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { Range } from "./range.ts";
import { OTHER_REFERRERS } from "./referrer-limit.ts";
import { extent, type Scope } from "./summary.ts";

/** A day at a time: it has at most 100 referrers, and a row for each hour of them. */
const PIECE_HOURS = 24;
/** All others are in one entry. */
const MAX_SHOWN = 50;

type Sums = { plays: number; watched_ms: number };

/** Plays and watch time of a range by country, where one is known, and by referrer. */
export async function originsOf(db: Db, scope: Scope, range: Range) {
  const { from, until } = await extent(db, scope, range);
  const pace = pacer();
  const kinds = { country: new Map<string, Sums>(), referrer: new Map<string, Sums>() };
  for (let piece = from; piece < until; piece += PIECE_HOURS) {
    await pace();
    const rows = await db.all<Sums & { kind: keyof typeof kinds; value: string }>(sql`
      SELECT kind, value, sum(plays) AS plays, sum(watched_ms) AS watched_ms FROM analytics_origins
      WHERE tenant_id = ${scope.tenantId} AND asset_id = ${scope.assetId}
        AND hour >= ${piece} AND hour < ${Math.min(until, piece + PIECE_HOURS)} GROUP BY 1, 2`);
    for (const { kind, value, plays, watched_ms } of rows) add(kinds[kind], value, { plays, watched_ms });
  }
  const countries = [...kinds.country].map(([country, sums]) => ({ country: country || null, ...shown(sums) }));
  const referrers = [...limited(kinds.referrer)].map(([host, sums]) => ({ referrer: host || null, ...shown(sums) }));
  return {
    // Without the setting all of them are unknown.
    ...(countries.some(({ country }) => country !== null) && { countries: countries.sort(byPlays) }),
    referrers: referrers.sort(byPlays),
  };
}

function add(to: Map<string, Sums>, value: string, { plays, watched_ms }: Sums): void {
  const sums = to.get(value) ?? { plays: 0, watched_ms: 0 };
  to.set(value, { plays: sums.plays + plays, watched_ms: sums.watched_ms + watched_ms });
}

/** Those with the most plays, and one entry for all others. */
function limited(sums: ReadonlyMap<string, Sums>): Map<string, Sums> {
  const most = new Map<string, Sums>();
  const sorted = [...sums].sort(([, a], [, b]) => b.plays - a.plays || b.watched_ms - a.watched_ms);
  for (const [value, one] of sorted) add(most, most.size < MAX_SHOWN || value === "" ? value : OTHER_REFERRERS, one);
  return most;
}

const shown = ({ plays, watched_ms }: Sums) => ({ play_count: plays, watch_time_seconds: watched_ms / 1000 });

type Shown = ReturnType<typeof shown>;
const byPlays = (a: Shown, b: Shown) => b.play_count - a.play_count || b.watch_time_seconds - a.watch_time_seconds;
