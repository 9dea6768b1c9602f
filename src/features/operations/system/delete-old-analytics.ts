import { and, asc, gt, isNotNull, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { hourOf } from "#features/analytics/deltas.ts";
import { dayOf } from "#features/analytics/origin-deltas.ts";
import { minuteOf } from "#features/tenants/usage.ts";
import { backgroundPacer } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import { pagesOf } from "#storage/db/pages.ts";
import { tenants } from "#storage/db/schema.ts";
import { auditedSteps, type Deleted } from "./retention-audit.ts";

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
const DAY_MINUTES = 1440;
const TENANTS_AT_ONCE = 100;
/** About 5 ms of the event loop. */
const ROWS_AT_ONCE = 1000;
/** Each has up to a hundred rows for how far its sessions came, and one for each hour that viewers returned from. */
const HOURS_AT_ONCE = 50;

type Steps = ReturnType<typeof auditedSteps>;
type Keeping = { id: number; days: number };

/**
 * Deletes what players reported, and the sums of it, past the retention of its tenant. `prune-views` deletes the same rows
 * of all tenants after the retention of the server, and keeps the sums.
 */
export async function deleteOldAnalytics(app: App): Promise<void> {
  const now = app.clock.now();
  const steps = auditedSteps(app, "delete-old-analytics", "analytics_rows");
  let shortest = Number.POSITIVE_INFINITY;
  const pages = pagesOf({ from: 0, limit: TENANTS_AT_ONCE, keyOf: ({ id }: Keeping) => id }, (after) =>
    app.db
      .select({ id: tenants.id, days: sql<number>`${tenants.deleteAnalyticsAfterDays}` })
      .from(tenants)
      .where(and(gt(tenants.id, after), isNotNull(tenants.deleteAnalyticsAfterDays)))
      .orderBy(asc(tenants.id))
      .limit(TENANTS_AT_ONCE)
      .all(),
  );
  for await (const page of pages) {
    for (const { id, days } of page) {
      shortest = Math.min(shortest, days);
      await deleteHours(app, steps, id, hourOf(now) - days * DAY_HOURS);
      await deleteLiveMinutes(app, steps, id, minuteOf(now) - days * DAY_MINUTES);
    }
  }
  if (shortest === Number.POSITIVE_INFINITY) return;
  for (const table of RAW_TABLES) await deleteRaw(app, steps, table, { now, shortest });
  if (steps.total() > 0) app.log.info({ rows: steps.total() }, "deleted analytics past their retention");
}

/**
 * The sums of a tenant before an hour: each hour of an asset, of the tenant (`asset_id` 0) and of a live channel (below 0), with
 * all of its parts. An index has the hours of each of these.
 */
async function deleteHours(app: App, { step }: Steps, tenantId: number, untilHour: number): Promise<void> {
  const pace = backgroundPacer();
  for (const scope of [sql`asset_id > 0`, sql`asset_id = 0`, sql`asset_id < 0`]) {
    while (!app.stopping.aborted) {
      const hours = await app.db.all<{ asset_id: number; hour: number }>(sql`
        SELECT asset_id, hour FROM analytics_hours WHERE tenant_id = ${tenantId} AND ${scope} AND hour < ${untilHour}
        ORDER BY hour, asset_id LIMIT ${HOURS_AT_ONCE}`);
      if (hours.length === 0) break;
      await step(async (tx) => {
        for (const { asset_id, hour } of hours) {
          const same = sql`asset_id = ${asset_id} AND hour = ${hour}`;
          // Those of asset 0 do not exist.
          await tx.run(sql`DELETE FROM analytics_reach WHERE ${same}`);
          await tx.run(sql`DELETE FROM analytics_returns WHERE tenant_id = ${tenantId} AND ${same}`);
          await tx.run(sql`DELETE FROM analytics_devices WHERE tenant_id = ${tenantId} AND ${same}`);
          await tx.run(sql`DELETE FROM analytics_origins WHERE tenant_id = ${tenantId} AND ${same}`);
          await tx.run(sql`
            DELETE FROM analytics_referrers
            WHERE tenant_id = ${tenantId} AND asset_id = ${asset_id} AND day <= ${dayOf(hour)} AND day < ${dayOf(untilHour)}`);
          await tx.run(sql`DELETE FROM analytics_startups WHERE tenant_id = ${tenantId} AND ${same}`);
          await tx.run(sql`DELETE FROM analytics_hours WHERE tenant_id = ${tenantId} AND ${same}`);
        }
        return new Map([[tenantId, hours.length]]);
      });
      await pace();
    }
  }
}

/** How many watched the channels of a tenant, before a minute. */
async function deleteLiveMinutes(app: App, { step }: Steps, tenantId: number, untilMinute: number): Promise<void> {
  const pace = backgroundPacer();
  for (let isMore = true; isMore && !app.stopping.aborted; await pace()) {
    const old = await app.db.all<{ channel_id: number; minute: number }>(sql`
      SELECT channel_id, minute FROM live_minutes WHERE tenant_id = ${tenantId} AND minute < ${untilMinute}
      LIMIT ${ROWS_AT_ONCE}`);
    isMore = old.length > 0;
    const rows = JSON.stringify(old.map(({ channel_id, minute }) => [channel_id, minute]));
    if (isMore)
      await step(async (tx) =>
        countByTenant(
          tx,
          sql`
        DELETE FROM live_minutes WHERE tenant_id = ${tenantId} AND (channel_id, minute) IN (
          SELECT value->>0, value->>1 FROM json_each(${rows})) RETURNING tenant_id`,
        ),
      );
  }
}

/** Tables of single reports. `age` is an SQL expression of a row's age in whole hours. */
const RAW_TABLES = [
  { name: sql`playback_events`, age: (now: number) => sql`(${now} - received_at) / ${HOUR_MS}` },
  { name: sql`playback_sessions`, age: (now: number) => sql`(${now} - received_at) / ${HOUR_MS}` },
  { name: sql`analytics_viewers`, age: (now: number) => sql`${hourOf(now)} - hour - 1` },
];

/**
 * One pass for all tenants in the order of arrival, which is the order of ids, up to the first row that every tenant keeps:
 * an index on tenant and time would cost each beacon more than this costs the task.
 */
async function deleteRaw(
  app: App,
  { step }: Steps,
  { name, age }: (typeof RAW_TABLES)[number],
  { now, shortest }: { now: number; shortest: number },
): Promise<void> {
  const pace = backgroundPacer();
  const hours = age(now);
  for (let after = 0; !app.stopping.aborted; ) {
    const [end] = await app.db.all<{ id: number; hours: number }>(sql`
      SELECT id, ${hours} AS hours FROM (SELECT * FROM ${name} WHERE id > ${after} ORDER BY id LIMIT ${ROWS_AT_ONCE})
      ORDER BY id DESC LIMIT 1`);
    if (!end) return;
    const old = await app.db.all<{ id: number }>(sql`
      SELECT report.id FROM (SELECT id, tenant_id, ${hours} AS hours FROM ${name} WHERE id > ${after} AND id <= ${end.id}) AS report
      CROSS JOIN tenants ON tenants.id = report.tenant_id
      WHERE report.hours >= tenants.delete_analytics_after_days * ${DAY_HOURS}`);
    if (old.length > 0) {
      const ids = JSON.stringify(old.map(({ id }) => id));
      await step(async (tx) =>
        countByTenant(
          tx,
          sql`
        DELETE FROM ${name} WHERE id IN (SELECT value FROM json_each(${ids})) RETURNING tenant_id`,
        ),
      );
    }
    // Reports arrive up to a day late.
    if (end.hours < (shortest - 1) * DAY_HOURS) return;
    after = end.id;
    await pace();
  }
}

async function countByTenant(tx: Db, deletion: ReturnType<typeof sql>): Promise<Deleted> {
  const counts = new Map<number, number>();
  for (const { tenant_id } of await tx.all<{ tenant_id: number }>(deletion))
    counts.set(tenant_id, (counts.get(tenant_id) ?? 0) + 1);
  return counts;
}
