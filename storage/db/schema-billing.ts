import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { ORDER_STATUSES, PAYMENT_KINDS, PLANS } from "#model/enums.ts";
import { id, times } from "./columns.ts";

export const usageMonths = sqliteTable(
  "usage_months",
  {
    tenantId: integer("tenant_id").notNull(),
    monthStart: integer("month_start").notNull(),
    egressBytes: integer("egress_bytes").notNull().default(0),
    transcodingMs: integer("transcoding_ms").notNull().default(0),
    liveMs: integer("live_ms").notNull().default(0),
    storageByteMs: text("storage_byte_ms").notNull().default("0"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.monthStart] })],
);

export const billingOrders = sqliteTable("billing_orders", {
  id: id(),
  orderId: text("order_id").notNull(),
  tenantId: integer("tenant_id").notNull(),
  planName: text("plan_name", { enum: PLANS }).notNull(),
  amountMinor: integer("amount_minor").notNull(),
  currency: text("currency").notNull(),
  provider: text("provider", { enum: PAYMENT_KINDS }).notNull(),
  status: text("status", { enum: ORDER_STATUSES }).notNull(),
  caller: text("caller").notNull(),
  idempotencyKey: text("idempotency_key").notNull(),
  requestHash: text("request_hash").notNull(),
  returnUrl: text("return_url").notNull(),
  refusals: integer("refusals").notNull().default(0),
  providerOrderId: text("provider_order_id"),
  checkoutUrl: text("checkout_url"),
  expiresAt: integer("expires_at").notNull(),
  paidAt: integer("paid_at"),
  ...times,
});

export const billingEvents = sqliteTable(
  "billing_events",
  {
    provider: text("provider").notNull(),
    eventId: text("event_id").notNull(),
    type: text("type").notNull(),
    orderId: text("order_id"),
    receivedAt: integer("received_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.provider, table.eventId] })],
);

export type UsageMonthRow = typeof usageMonths.$inferSelect;
export type OrderRow = typeof billingOrders.$inferSelect;
