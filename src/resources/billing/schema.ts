import * as v from "valibot";
import type { OrderRow } from "../../../storage/db/schema.ts";
import { Id, NullableTime, QueryId, Time } from "../../http/schemas.ts";
import { iso } from "../../lib/clock.ts";
import { PlanName } from "../tenants/schema.ts";

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;
/** A month as `2026-11`; its first millisecond. */
const Month = v.pipe(
  v.string(),
  v.regex(MONTH, "must be a month such as 2026-11"),
  // What is no month at all is told once.
  v.check((month) => !MONTH.test(month) || month >= "1970-01", "must be a month such as 2026-11"),
  v.description("A month of UTC, such as 2026-11; the present one unless told"),
  v.transform((month) => Date.parse(`${month}-01T00:00:00Z`)),
);
export const MonthQuery = { month: v.optional(Month), tenant_id: v.optional(QueryId) };

const Minor = v.pipe(v.number(), v.integer(), v.description("Whole minor units of the currency"));
const LineItem = v.object({
  meter: v.picklist(["storage_bytes", "egress_bytes", "transcoding_minutes"]),
  unit: v.pipe(
    v.picklist(["gb_month", "gb", "minute"]),
    v.description(
      "A GB is 10^9 bytes; a gb_month is one held for the whole month; minutes are rounded up, once a month",
    ),
  ),
  quantity: v.pipe(v.number(), v.description("Of the unit; exact to nine places")),
  included_quantity: v.number(),
  billable_quantity: v.number(),
  unit_price_minor: v.pipe(
    v.number(),
    v.description("Minor units for one unit: a decimal number of at most six places, so it may be 2.5"),
  ),
  amount_minor: v.pipe(Minor, v.description("billable_quantity × unit_price_minor, rounded once, a half up")),
});
export const Estimate = v.pipe(
  v.object({
    tenant_id: v.number(),
    plan_name: PlanName,
    currency: v.string(),
    period_start: Time,
    period_end: Time,
    estimated: v.literal(true),
    line_items: v.array(LineItem),
    total_minor: Minor,
  }),
  v.title("BillingEstimate"),
);
export const UsageSummary = v.pipe(
  v.object({
    tenant_id: v.number(),
    tenant: v.pipe(v.string(), v.description("Its slug")),
    plan_name: PlanName,
    period_start: Time,
    period_end: Time,
    storage_bytes: v.pipe(v.number(), v.description("Held now")),
    egress_bytes: v.pipe(v.number(), v.description("Sent in the period")),
    transcoding_minutes: v.pipe(v.number(), v.description("Of source, in the period")),
    estimate: Estimate,
  }),
  v.title("UsageSummary"),
);

export const Checkout = v.object({ plan_name: PlanName, tenant_id: v.optional(Id) });
const OrderStatus = v.picklist(["creating", "pending", "paid", "expired"]);
export const Order = v.pipe(
  v.object({
    order_id: v.string(),
    status: OrderStatus,
    checkout_url: v.pipe(v.nullable(v.string()), v.description("Where to pay; null when it can't be paid any more")),
    provider: v.picklist(["stripe", "paypal", "simulated"]),
    expires_at: Time,
    tenant_id: v.number(),
    plan_name: PlanName,
    amount_minor: Minor,
    currency: v.string(),
    paid_at: NullableTime,
    created_at: Time,
    updated_at: Time,
  }),
  v.title("BillingOrder"),
);

/** An order is not touched when its time is over: that is seen when it is shown. */
export function toOrder(row: OrderRow, now: number): v.InferInput<typeof Order> {
  const isOver = row.status !== "paid" && row.expiresAt <= now;
  const status = isOver ? "expired" : row.status;
  return {
    order_id: row.orderId,
    status,
    checkout_url: status === "pending" ? row.checkoutUrl : null,
    provider: row.provider,
    expires_at: iso(row.expiresAt),
    tenant_id: row.tenantId,
    plan_name: row.planName,
    amount_minor: row.amountMinor,
    currency: row.currency,
    paid_at: row.paidAt === null ? null : iso(row.paidAt),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  };
}

export const Received = v.object({
  received: v.literal(true),
  order_id: v.pipe(v.nullable(v.string()), v.description("Of the order that it is about, if it is one of ours")),
});
