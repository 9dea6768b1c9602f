import type * as v from "valibot";
import type { App } from "#app.ts";
import { iso, nextMonth } from "#lib/base";
import { dividedHalfUp, scaled, unscaled } from "#platform/config/decimal.ts";
import { PRICE_PLACES } from "#platform/config/prices.ts";
import type { Db } from "#storage/db/open.ts";
import type { TenantRow } from "#storage/db/schema.ts";
import { pricesOf } from "../tenants/quota.ts";
import { type MonthUsage, storedBytesOf, usageOf, wholeMinutes } from "../tenants/usage.ts";
import type { Estimate, UsageSummary } from "./schema.ts";

/** A gigabyte is 10^9 bytes, so nine places represent single bytes. */
const GB_PLACES = 9;

type Item = v.InferInput<typeof Estimate>["line_items"][number];
type Line = Pick<Item, "meter" | "unit"> & {
  quantity: bigint;
  prices: { included: number; unit_price_minor: number };
};

/** Quantities are exact to the displayed digit; each line is rounded once, half up, to the nearest minor unit. */
function lineItem({ meter, unit, quantity, prices }: Line): Item {
  const included = exact(prices.included, GB_PLACES);
  const billable = quantity > included ? quantity - included : 0n;
  const price = exact(prices.unit_price_minor, PRICE_PLACES);
  return {
    meter,
    unit,
    quantity: unscaled(quantity, GB_PLACES),
    included_quantity: prices.included,
    billable_quantity: unscaled(billable, GB_PLACES),
    unit_price_minor: prices.unit_price_minor,
    amount_minor: Number(dividedHalfUp(billable * price, 10n ** BigInt(GB_PLACES + PRICE_PLACES))),
  };
}

function exact(value: number, places: number): bigint {
  const found = scaled(value, places);
  if (found === null) throw new Error(`${value} is not a decimal with ${places} places`);
  return found;
}

/**
 * The cost of the month's use at the current prices and plan. The plan's own price is charged by checkout and not
 * included.
 */
export function estimateOf(app: App, tenant: TenantRow, monthStart: number, used: MonthUsage) {
  const { currency, plans } = pricesOf(app);
  const { storage_gb_month, egress_gb, transcoding_minute, live_minute } = plans[tenant.planName];
  const monthEnd = nextMonth(monthStart);
  const lines: Line[] = [
    {
      meter: "storage_bytes",
      unit: "gb_month",
      // Bytes stored on average over the whole month.
      quantity: dividedHalfUp(used.storageByteMs, BigInt(monthEnd - monthStart)),
      prices: storage_gb_month,
    },
    { meter: "egress_bytes", unit: "gb", quantity: BigInt(used.egressBytes), prices: egress_gb },
    { meter: "transcoding_minutes", ...minutesOf(used.transcodingMs), prices: transcoding_minute },
  ];
  if (live_minute) lines.push({ meter: "live_minutes", ...minutesOf(used.liveMs), prices: live_minute });
  const items = lines.map(lineItem);
  return {
    tenant_id: tenant.id,
    plan_name: tenant.planName,
    currency,
    period_start: iso(monthStart),
    period_end: iso(monthEnd),
    estimated: true,
    line_items: items,
    total_minor: items.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
  } satisfies v.InferInput<typeof Estimate>;
}

const minutesOf = (ms: number) => ({
  unit: "minute" as const,
  quantity: BigInt(wholeMinutes(ms)) * 10n ** BigInt(GB_PLACES),
});

/** A tenant's month: current storage; delivery, transcoding and live streams in the month; and their cost. */
export async function summaryOf(db: Db, app: App, tenant: TenantRow, monthStart: number) {
  const used = await usageOf(db, tenant, monthStart, app.clock.now());
  const estimate = estimateOf(app, tenant, monthStart, used);
  return {
    tenant_id: tenant.id,
    tenant: tenant.slug,
    plan_name: tenant.planName,
    period_start: estimate.period_start,
    period_end: estimate.period_end,
    storage_bytes: storedBytesOf(tenant),
    egress_bytes: used.egressBytes,
    transcoding_minutes: wholeMinutes(used.transcodingMs),
    live_minutes: wholeMinutes(used.liveMs),
    estimate,
  } satisfies v.InferInput<typeof UsageSummary>;
}
