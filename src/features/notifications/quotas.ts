import { type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { monthOf } from "#lib/base";
import { pricesOf } from "../tenants/quota.ts";
import { MINUTE_MS } from "../tenants/usage.ts";
import { notify } from "./notify.ts";

/** The highest that is reached is notified, once a month and plan. */
const THRESHOLDS = [100, 80] as const;
const AT_ONCE = 100;

type Reached = { id: number; resource: "storage" | "minutes"; percent: number; occurrence: string };

/**
 * Notifies tenants that use 80 % or 100 % of their plan's storage or transcoding minutes. Read from the counters that the
 * transactions of all changes write, so that nothing is missed after a crash.
 */
export async function notifyOfQuotas(app: App): Promise<void> {
  const due: Reached[] = [];
  const month = monthOf(app.clock.now());
  for (const [plan, { quotas }] of Object.entries(pricesOf(app).plans)) {
    if (quotas.storage_bytes) {
      const used = sql`(SELECT tenants.storage_bytes + tenants.database_bytes)`;
      due.push(...(await reached(app, { plan, resource: "storage", used, quota: quotas.storage_bytes, month })));
    }
    if (quotas.transcoding_minutes) {
      const used = sql`coalesce((SELECT transcoding_ms FROM usage_months
        WHERE tenant_id = tenants.id AND month_start = ${month}), 0)`;
      const quota = quotas.transcoding_minutes * MINUTE_MS;
      due.push(...(await reached(app, { plan, resource: "minutes", used, quota, month })));
    }
  }
  if (due.length === 0) return;
  await app.write(async (tx) => {
    for (const { id: tenantId, resource, percent, occurrence } of due)
      await notify(tx, app, { tenantId, kind: "quota", occurrence, data: { resource, percent } });
  });
}

type Measured = { plan: string; resource: "storage" | "minutes"; used: SQL; quota: number; month: number };

/** Tenants that have not been notified of what they use. After 100 % no one is notified of 80 %. */
async function reached(app: App, { plan, resource, used, quota, month }: Measured): Promise<Reached[]> {
  const found: Reached[] = [];
  // Another plan of the same month has its own thresholds.
  const occurrenceOf = (percent: number) =>
    `${resource} ${percent} ${plan} ${new Date(month).toISOString().slice(0, 7)}`;
  for (const [index, percent] of THRESHOLDS.entries()) {
    const known = JSON.stringify(THRESHOLDS.slice(0, index + 1).map(occurrenceOf));
    const rows = await app.db.all<{ id: number }>(sql`
      SELECT id FROM tenants WHERE plan_name = ${plan} AND delete_requested_at IS NULL AND ${used} >= ${(quota * percent) / 100}
        AND NOT EXISTS (SELECT 1 FROM notifications WHERE tenant_id = tenants.id AND kind = 'quota'
          AND occurrence IN (SELECT value FROM json_each(${known})))
      LIMIT ${AT_ONCE}`);
    const isNew = ({ id }: { id: number }) => !found.some((one) => one.id === id);
    found.push(...rows.filter(isNew).map(({ id }) => ({ id, resource, percent, occurrence: occurrenceOf(percent) })));
  }
  return found;
}
