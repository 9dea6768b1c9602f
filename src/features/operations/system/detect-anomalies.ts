import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { emit } from "#platform/events/emit.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { tenants } from "#storage/db/schema.ts";

const HOUR_MS = 3_600_000;
const METRIC = "play_count";
/** Days whose same hour is compared, and how many of them are required. */
const DAYS = 14;
const MIN_DAYS = 5;
/**
 * Standard deviations, and ratio. Both must be exceeded: a steady count has small deviations, and small counts large
 * ratios.
 */
const MIN_DEVIATIONS = 3;
const MIN_FACTOR = 2;
/** Below this number of plays, in the hour and on average, nothing is an anomaly. */
const MIN_PLAYS = 20;
const PAGE = 100;

/** Compares the plays of the hour that ended with the same hour of earlier days, for each tenant. */
export async function detectAnomalies(app: App): Promise<void> {
  const hour = Math.floor(app.clock.now() / HOUR_MS) - 1;
  const pages = pagesOf({ from: 0, limit: PAGE, keyOf: (row: { id: number }) => row.id }, (after) =>
    app.db
      .select({ id: tenants.id })
      .from(tenants)
      .where(and(eq(tenants.status, "active"), gt(tenants.id, after)))
      .orderBy(asc(tenants.id))
      .limit(PAGE)
      .all(),
  );
  for await (const page of pages) {
    const ids = page.map(({ id }) => id);
    for (const [tenantId, plays] of await playsOf(app, ids, hour)) await detectAnomaly(app, { tenantId, hour, plays });
  }
}

type Plays = { observed: number; earlier: number[] };

/**
 * The hour's plays, and those of the same hour on earlier days since the tenant's first view, with 0 for an hour
 * without any.
 */
async function playsOf(app: App, tenantIds: number[], hour: number): Promise<Map<number, Plays>> {
  const rows = await app.db.all<{ tenant_id: number; day: number; plays: number }>(sql`
    SELECT tenant.value AS tenant_id, day.value AS day, coalesce((
      SELECT plays FROM analytics_hours
      WHERE tenant_id = tenant.value AND asset_id = 0 AND hour = ${hour} - 24 * day.value
    ), 0) AS plays
    FROM json_each(${JSON.stringify(tenantIds)}) tenant CROSS JOIN json_each(${JSON.stringify([...Array(DAYS + 1).keys()])}) day
    WHERE ${hour} - 24 * day.value >= (SELECT min(hour) FROM analytics_hours WHERE tenant_id = tenant.value AND asset_id = 0)`);
  const byTenant = new Map<number, Plays>();
  for (const { tenant_id, day, plays } of rows) {
    const of = byTenant.get(tenant_id) ?? { observed: 0, earlier: [] };
    byTenant.set(tenant_id, of);
    if (day === 0) of.observed = plays;
    else of.earlier.push(plays);
  }
  return byTenant;
}

async function detectAnomaly(
  app: App,
  { tenantId, hour, plays }: { tenantId: number; hour: number; plays: Plays },
): Promise<void> {
  const { observed, earlier } = plays;
  if (earlier.length < MIN_DAYS) return;
  const baseline = earlier.reduce((sum, one) => sum + one, 0) / earlier.length;
  if (Math.max(observed, baseline) < MIN_PLAYS) return;
  const variance = earlier.reduce((sum, one) => sum + (one - baseline) ** 2, 0) / (earlier.length - 1);
  // Independent viewers alone vary a count by its square root: a baseline without variation is coincidence.
  const deviation = Math.sqrt(Math.max(variance, baseline, 1));
  const isFar = Math.abs(observed - baseline) >= MIN_DEVIATIONS * deviation;
  const isManyTimes = observed >= baseline * MIN_FACTOR || observed <= baseline / MIN_FACTOR;
  if (!isFar || !isManyTimes) return;
  const windowStart = hour * HOUR_MS;
  await app.write(async (tx) => {
    const fresh = await tx.all(sql`
      INSERT INTO traffic_anomalies (tenant_id, metric, window_start, baseline, observed)
      VALUES (${tenantId}, ${METRIC}, ${windowStart}, ${baseline}, ${observed})
      ON CONFLICT DO NOTHING RETURNING tenant_id`);
    if (fresh.length === 0) return;
    const data = {
      tenant_id: tenantId,
      metric: METRIC,
      window_start: iso(windowStart),
      window_end: iso(windowStart + HOUR_MS),
      baseline,
      observed,
      // Avoids an infinite ratio.
      ratio: baseline === 0 ? null : observed / baseline,
    };
    await emit(tx, app, "tenant.traffic.anomaly", { tenantId, data });
  });
}
