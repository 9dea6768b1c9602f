import { and, asc, eq, gt, sql } from "drizzle-orm";
import { tenants } from "../../storage/db/schema.ts";
import type { App } from "../app.ts";
import { emit } from "../events/emit.ts";
import { iso } from "../lib/clock.ts";

const HOUR_MS = 3_600_000;
const METRIC = "play_count";
/** Days whose same hour is looked at, and how many of them there must be. */
const DAYS = 14;
const MIN_DAYS = 5;
/** Deviations, and times more or fewer. Both: a steady stream strays by little, and small numbers by much. */
const MIN_DEVIATIONS = 3;
const MIN_FACTOR = 2;
/** Where neither the hour nor the usual has so many plays nothing is an anomaly. */
const MIN_PLAYS = 20;
const PAGE = 100;

/** Holds the plays of the hour that ended, tenant by tenant, against the same hour of the days before. */
export async function detectAnomalies(app: App): Promise<void> {
  const hour = Math.floor(app.clock.now() / HOUR_MS) - 1;
  for (let after = 0; ; ) {
    const page = await app.db
      .select({ id: tenants.id })
      .from(tenants)
      .where(and(eq(tenants.status, "active"), gt(tenants.id, after)))
      .orderBy(asc(tenants.id))
      .limit(PAGE)
      .all();
    const ids = page.map(({ id }) => id);
    for (const [tenantId, plays] of await playsOf(app, ids, hour)) await detectAnomaly(app, { tenantId, hour, plays });
    if (page.length < PAGE) return;
    after = ids.at(-1) as number;
  }
}

type Plays = { observed: number; earlier: number[] };

/** The hour's plays and those of the same hour on earlier days, an hour without any as 0, from the tenant's first view on. */
async function playsOf(app: App, tenantIds: number[], hour: number): Promise<Map<number, Plays>> {
  const rows = await app.db.all<{ tenant_id: number; day: number; plays: number }>(sql`
    SELECT tenant.value AS tenant_id, day.value AS day, coalesce((
      SELECT plays FROM analytics_hours
      WHERE tenant_id = tenant.value AND asset_id = 0 AND hour = ${hour} - 24 * day.value
    ), 0) AS plays
    FROM json_each(${JSON.stringify(tenantIds)}) tenant CROSS JOIN json_each(${JSON.stringify([...Array(DAYS + 1).keys()])}) day
    WHERE ${hour} - 24 * day.value >= (SELECT min(hour) FROM analytics_hours WHERE tenant_id = tenant.value AND asset_id = 0)`);
  const found = new Map<number, Plays>();
  for (const { tenant_id, day, plays } of rows) {
    const of = found.get(tenant_id) ?? { observed: 0, earlier: [] };
    found.set(tenant_id, of);
    if (day === 0) of.observed = plays;
    else of.earlier.push(plays);
  }
  return found;
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
  // Independent viewers alone make a count stray by its root: a baseline that never moved is luck.
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
      // Nothing is infinitely many times more.
      ratio: baseline === 0 ? null : observed / baseline,
    };
    await emit(tx, { tenantId, type: "tenant.traffic.anomaly", data, now: app.clock.now() });
  });
}
