import * as v from "valibot";
import { iso } from "#lib/base";
import { ORDER_STATUSES, PAYMENT_KINDS } from "#model/enums.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { toRecord } from "#platform/http/records.ts";
import { NullableTime, Time } from "#platform/http/schemas.ts";
import { describedAs } from "#protocol/fields.ts";
import {
  CreatedAt,
  ExpiresAt,
  StatusField,
  TenantIdField,
  TenantIdFromClient,
  UpdatedAt,
} from "#protocol/record-fields.ts";
import type { OrderRow } from "#storage/db/schema.ts";
import { PlanName } from "../tenants/schema.ts";

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;
/** A month as `2026-11`, converted to its first millisecond. */
const Month = v.pipe(
  v.string(),
  v.regex(MONTH, "must be a month such as 2026-11"),
  // An invalid month is reported once.
  v.check((month) => !MONTH.test(month) || month >= "1970-01", "must be a month such as 2026-11"),
  v.description("Month in UTC, such as 2026-11; default: the current month"),
  v.transform((month) => Date.parse(`${month}-01T00:00:00Z`)),
);
export const MonthQuery = { month: v.optional(Month), tenant_id: v.optional(TenantIdInQuery) };

const Minor = v.pipe(v.number(), v.integer(), v.description("Integer, in minor units of the currency"));
const LineItem = v.object({
  meter: v.pipe(
    v.picklist(["storage_bytes", "egress_bytes", "transcoding_minutes", "live_minutes"]),
    v.description("`live_minutes` is listed where the plan has a price for it"),
  ),
  unit: v.pipe(
    v.picklist(["gb_month", "gb", "minute"]),
    v.description(
      "1 GB is 10^9 bytes; 1 gb_month is 1 GB stored for a whole month; minutes are rounded up once per month",
    ),
  ),
  quantity: v.pipe(v.number(), v.description("Quantity in the unit, with up to nine decimal places")),
  included_quantity: v.pipe(v.number(), v.description("Quantity that the plan includes")),
  billable_quantity: v.pipe(v.number(), v.description("Quantity that is charged")),
  unit_price_minor: v.pipe(
    v.number(),
    v.description("Price of one unit in minor units; a decimal with at most six places, such as 2.5"),
  ),
  amount_minor: v.pipe(Minor, v.description("billable_quantity × unit_price_minor, rounded half up")),
});
const PeriodStart = v.pipe(Time, v.description("Start of the month"));
const PeriodEnd = v.pipe(Time, v.description("End of the month"));
const CurrencyField = v.pipe(v.string(), v.description("Currency code as in ISO 4217"));
export const Estimate = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    plan_name: PlanName,
    currency: CurrencyField,
    period_start: PeriodStart,
    period_end: PeriodEnd,
    estimated: v.pipe(v.literal(true), v.description("Whether the month is not over")),
    line_items: v.pipe(v.array(LineItem), v.description("The cost by meter")),
    total_minor: Minor,
  }),
  v.title("BillingEstimate"),
);
export const UsageSummary = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    tenant: v.pipe(v.string(), v.description("Its slug")),
    plan_name: PlanName,
    period_start: PeriodStart,
    period_end: PeriodEnd,
    storage_bytes: v.pipe(v.number(), v.description("Held now")),
    egress_bytes: v.pipe(v.number(), v.description("Bytes delivered in the period")),
    transcoding_minutes: v.pipe(v.number(), v.description("Minutes of source transcoded in the period")),
    live_minutes: v.pipe(v.number(), v.description("Minutes of live streams received in the period")),
    estimate: v.pipe(Estimate, v.description("The estimated cost")),
  }),
  v.title("UsageSummary"),
);

export const Checkout = v.object({ plan_name: PlanName, tenant_id: v.optional(TenantIdFromClient) });
const OrderStatus = v.picklist(ORDER_STATUSES);
export const Order = v.pipe(
  v.object({
    order_id: v.pipe(v.string(), v.description("Id of the order, unique across providers")),
    status: describedAs(StatusField, OrderStatus),
    checkout_url: v.pipe(
      v.nullable(v.string()),
      v.description("URL of the payment page; null when the order can no longer be paid"),
    ),
    provider: v.pipe(v.picklist(PAYMENT_KINDS), v.description("Payment provider")),
    expires_at: ExpiresAt,
    tenant_id: TenantIdField,
    plan_name: PlanName,
    amount_minor: Minor,
    currency: CurrencyField,
    paid_at: v.pipe(NullableTime, v.description("Time of the payment; null before")),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  }),
  v.title("BillingOrder"),
);

/** An expired order's row does not change; its status is derived when it is read. */
export function toOrder(row: OrderRow, now: number): v.InferInput<typeof Order> {
  const isOver = row.status !== "paid" && row.expiresAt <= now;
  const status = isOver ? "expired" : row.status;
  return toRecord(Order, row, {
    status,
    checkout_url: status === "pending" ? row.checkoutUrl : null,
    paid_at: row.paidAt === null ? null : iso(row.paidAt),
  });
}

export const Received = v.object({
  received: v.pipe(v.literal(true), v.description("Whether the notification was accepted")),
  order_id: v.pipe(v.nullable(v.string()), v.description("Id of the order, if known")),
});
