import { type SQL, sql } from "drizzle-orm";
import { pacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import type { Range } from "./range.ts";
import { extent, PIECE_HOURS } from "./summary.ts";

type Sums = { id: number; plays: number; watched_ms: number };
type TopAsset = Sums & { external_id: string; title: string };
type TopChannel = Sums & { channel: string; name: string };

/** The tenant's assets with the most plays in the range; deleted ones are not listed. */
export async function topAssets(db: Db, tenantId: number, range: Range, most: number) {
  const top = await topOf<TopAsset>(
    db,
    tenantId,
    range,
    (hours) => sql`
    SELECT id, external_id, title, plays, watched_ms FROM (
      SELECT asset_id, sum(plays) AS plays, sum(watched_ms) AS watched_ms FROM analytics_hours
      WHERE tenant_id = ${tenantId} AND asset_id > 0 AND ${hours} GROUP BY asset_id
    ) JOIN assets ON assets.id = asset_id AND assets.tenant_id = ${tenantId}`,
  );
  return top.slice(0, most).map(({ id, external_id, title, ...sums }) => ({
    asset_id: id,
    external_id,
    title,
    ...shown(sums),
  }));
}

/** The same of its live channels, whose ids are negative there. */
export async function topChannels(db: Db, tenantId: number, range: Range, most: number) {
  const top = await topOf<TopChannel>(
    db,
    tenantId,
    range,
    (hours) => sql`
    SELECT id, channel, name, plays, watched_ms FROM (
      SELECT asset_id, sum(plays) AS plays, sum(watched_ms) AS watched_ms FROM analytics_hours
      WHERE tenant_id = ${tenantId} AND asset_id < 0 AND ${hours} GROUP BY asset_id
    ) JOIN live_channels ON live_channels.id = -asset_id AND live_channels.tenant_id = ${tenantId}`,
  );
  return top.slice(0, most).map(({ id, channel, name, ...sums }) => ({
    channel_id: id,
    channel,
    name,
    ...shown(sums),
  }));
}

const shown = ({ plays, watched_ms }: Pick<Sums, "plays" | "watched_ms">) => ({
  play_count: plays,
  watch_time_seconds: watched_ms / 1000,
});

/** Sums of a range by their id, those with the most plays first. `query` selects the rows of some hours. */
async function topOf<Row extends Sums>(
  db: Db,
  tenantId: number,
  range: Range,
  query: (hours: SQL) => SQL,
): Promise<Row[]> {
  const { from, until } = await extent(db, { tenantId, assetId: 0 }, range);
  const top = new Map<number, Row>();
  const pace = pacer();
  for (let piece = from; piece < until; piece += PIECE_HOURS) {
    await pace();
    const hours = sql`hour >= ${piece} AND hour < ${Math.min(until, piece + PIECE_HOURS)}`;
    for (const row of await db.all<Row>(query(hours))) {
      const known = top.get(row.id);
      if (!known) top.set(row.id, { ...row });
      else {
        known.plays += row.plays;
        known.watched_ms += row.watched_ms;
      }
    }
  }
  return [...top.values()].sort((a, b) => b.plays - a.plays || b.watched_ms - a.watched_ms || a.id - b.id);
}
