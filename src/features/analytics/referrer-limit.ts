import { sql } from "drizzle-orm";
import type { Db } from "#storage/db/open.ts";

/** Referrers of a video, or of a tenant, that have sums of their own on a day. */
export const MAX_REFERRERS = 100;
/** All others together. No host has this name. */
export const OTHER_REFERRERS = "*";

export type DayReferrer = readonly [tenantId: number, assetId: number, day: number, referrer: string];

/** Those of `asked` that may not have sums of their own; the others are recorded as referrers of their day. */
export async function refusedReferrers(tx: Db, asked: readonly DayReferrer[]): Promise<Set<string>> {
  const refused = new Set<string>();
  if (asked.length === 0) return refused;
  const unknown = await tx.all<{ n: number }>(sql`
    SELECT key AS n FROM json_each(${JSON.stringify(asked)}) WHERE NOT EXISTS (
      SELECT 1 FROM analytics_referrers
      WHERE tenant_id = value->>0 AND asset_id = value->>1 AND day = value->>2 AND referrer = value->>3)`);
  if (unknown.length === 0) return refused;
  const fresh = unknown.map(({ n }) => asked[n] as DayReferrer);
  const days = new Map(fresh.map(([...row]) => [row.slice(0, 3).join(), row.slice(0, 3)]));
  const counts = await tx.all<{ n: number; referrers: number }>(sql`
    SELECT key AS n, (SELECT count(*) FROM analytics_referrers
      WHERE tenant_id = value->>0 AND asset_id = value->>1 AND day = value->>2) AS referrers
    FROM json_each(${JSON.stringify([...days.values()])})`);
  const names = [...days.keys()];
  const left = new Map(counts.map(({ n, referrers }) => [names[n] as string, MAX_REFERRERS - referrers]));
  const admitted = fresh.filter((row) => {
    const day = row.slice(0, 3).join();
    const free = left.get(day) ?? 0;
    left.set(day, free - 1);
    if (free <= 0) refused.add(row.join());
    return free > 0;
  });
  if (admitted.length > 0)
    await tx.run(sql`
      INSERT INTO analytics_referrers (tenant_id, asset_id, day, referrer)
      SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(${JSON.stringify(admitted)}) WHERE true
      ON CONFLICT DO NOTHING`);
  return refused;
}
