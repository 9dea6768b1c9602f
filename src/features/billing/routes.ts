import { and, desc, eq, lt } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid, monthOf } from "#lib/base";
import { ownedBy } from "#platform/http/caller.ts";
import { byId, page } from "#platform/http/paging.ts";
import { TenantIdInQuery } from "#platform/http/parameters.ts";
import { Reply, route } from "#platform/http/route.ts";
import { Paging } from "#platform/http/schemas.ts";
import { billingOrders, type TenantRow } from "#storage/db/schema.ts";
import { listTenants, requireTenant } from "../tenants/queries.ts";
import { usageOf } from "../tenants/usage.ts";
import { estimateOf, summaryOf } from "./estimate.ts";
import { receiveNotice } from "./notices.ts";
import { checkout } from "./orders.ts";
import { Checkout, Estimate, MonthQuery, Order, Received, toOrder, UsageSummary } from "./schema.ts";

const base = "/api/v1/billing";
const shared = { scope: "billing:write", limit: "billing", tag: "Billing" } as const;

/** The requested month; throws 422 for one that has not begun. */
function requestedMonth(app: App, month: number | undefined): number {
  const present = monthOf(app.clock.now());
  return month === undefined || month <= present ? (month ?? present) : invalid("month", "is in the future");
}

export const billingRoutes = [
  route({
    ...shared,
    method: "GET",
    path: "/api/v1/usage/summary",
    operationId: "getUsage",
    summary: "Get the usage and estimated cost of a month, per tenant",
    query: v.object({ ...Paging, ...MonthQuery }),
    responses: { 200: v.array(UsageSummary) },
    handle(context) {
      const { app, caller, query } = context;
      const month = requestedMonth(app, query.month);
      const batches = byId(query.cursor, (after, limit) =>
        listTenants(app, caller, { limit, after, id: query.tenant_id }),
      );
      return page(context, { batches, toWire: (row) => summaryOf(app.db, app, row, month) });
    },
  }),
  route({
    ...shared,
    method: "GET",
    path: `${base}/estimate`,
    operationId: "getBillingEstimate",
    summary: "Estimate the cost of a tenant's month",
    query: v.object(MonthQuery),
    responses: { 200: Estimate },
    errors: { 404: ["not_found"] },
    async handle({ app, caller, query }) {
      const month = requestedMonth(app, query.month);
      const tenant: TenantRow = await requireTenant(app.db, caller, query.tenant_id);
      return estimateOf(app, tenant, month, await usageOf(app.db, tenant, month, app.clock.now()));
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${base}/checkout`,
    operationId: "createOrder",
    summary: "Create an order for a plan at the payment provider",
    requiredHeaders: ["Idempotency-Key"],
    body: Checkout,
    responses: { 201: Order },
    errors: {
      404: ["not_found"],
      422: ["parameter_missing", "order_limit_reached", "idempotency_key_reused"],
      502: ["payment_provider_failed"],
      503: ["payments_not_configured"],
    },
    async handle({ app, caller, body, headers }) {
      const key = headers.get("idempotency-key");
      if (!key)
        throw new HttpError(422, "parameter_missing", "Send an Idempotency-Key header of 1 to 255 bytes.", {
          details: { "Idempotency-Key": ["is required"] },
        });
      if (key.length > 255) invalid("Idempotency-Key", "must have 1 to 255 bytes");
      const wish = { caller, key, planName: body.plan_name, tenantId: body.tenant_id };
      const { order, isRepeat } = await checkout(app, wish);
      return new Reply(201, toOrder(order, app.clock.now()), isRepeat ? { "idempotent-replayed": "true" } : {});
    },
  }),
  route({
    ...shared,
    method: "GET",
    path: `${base}/orders`,
    operationId: "listOrders",
    summary: "List orders, newest first",
    query: v.object({ ...Paging, tenant_id: v.optional(TenantIdInQuery) }),
    responses: { 200: v.array(Order) },
    handle(context) {
      const { app, caller, query } = context;
      const batches = byId(query.cursor, (before, limit) =>
        app.db
          .select()
          .from(billingOrders)
          .where(
            and(
              ownedBy(caller, billingOrders.tenantId),
              query.tenant_id === undefined ? undefined : eq(billingOrders.tenantId, query.tenant_id),
              before === undefined ? undefined : lt(billingOrders.id, before),
            ),
          )
          .orderBy(desc(billingOrders.id))
          .limit(limit + 1)
          .all(),
      );
      const now = app.clock.now();
      return page(context, { batches, toWire: (row) => toOrder(row, now) });
    },
  }),
  route({
    method: "POST",
    path: `${base}/webhook`,
    credential: "none",
    tag: "Billing",
    operationId: "receivePaymentNotification",
    summary: "Receive a notification of the payment provider",
    raw: true,
    rawBody: { "application/json": v.record(v.string(), v.unknown()) },
    responses: { 200: Received },
    errors: {
      400: ["invalid_json", "incomplete_body"],
      401: ["unauthorized"],
      413: ["payload_too_large"],
      422: ["parameter_missing"],
      502: ["payment_provider_failed"],
    },
    handle: async (context) => ({ received: true, order_id: await receiveNotice(context) }),
  }),
];
