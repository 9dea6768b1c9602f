import { and, eq, sql } from "drizzle-orm";
import { type App, lockNamespace } from "#app.ts";
import { HttpError, invalid, newOrderId, sha256 } from "#lib/base";
import type { PlanName } from "#model/enums.ts";
import type { Caller } from "#platform/http/caller.ts";
import { metricsOf } from "#platform/http/metrics.ts";
import { requireFewerRows } from "#platform/limits/row-limit.ts";
import { paymentsOf } from "#platform/outbound/payments/configured.ts";
import { type Created, PaymentFailed, type PaymentProvider } from "#platform/outbound/payments/provider.ts";
import { RETURN_PATH } from "#platform/outbound/payments/return-url.ts";
import type { Db } from "#storage/db/open.ts";
import { billingOrders, type OrderRow } from "#storage/db/schema.ts";
import { requireTenant } from "../tenants/queries.ts";
import { pricesOf } from "../tenants/quota.ts";

/** Within Stripe's session lifetime (30 minutes to 24 hours), and both providers recognize a repeat for this long. */
const ORDER_MS = 3 * 3_600_000;

const locks = lockNamespace<string>("order");

type OrderRequest = { caller: Caller; key: string; planName: PlanName; tenantId: number | undefined };

/**
 * Creates an order and its payment URL; all requests with the same key return the same order. It is stored before the
 * provider is called, and each call to the provider is identical: after a crash at any point, the next request with the
 * key completes it. Throws 503 while payments are off, 502 when the provider fails.
 */
export async function checkout(app: App, wish: OrderRequest): Promise<{ order: OrderRow; isRepeat: boolean }> {
  const provider = await paymentsOf(app);
  if (!provider)
    throw new HttpError(
      503,
      "payments_not_configured",
      "Payments are disabled; the operator can enable them with VODBOX_PAYMENTS.",
    );
  const started = await app.write((tx) => begin(tx, app, provider, wish));
  if (started.order.status !== "creating") return started;
  // Two concurrent requests with one key: the second finds the result of the first.
  return locks(app).withLock(started.order.orderId, async () => {
    const order = (await orderById(app.db, started.order.orderId)) ?? started.order;
    const isOpen = order.status === "creating" && order.expiresAt > app.clock.now();
    return { order: isOpen ? await introduce(app, provider, order) : order, isRepeat: started.isRepeat };
  });
}

export const orderById = (db: Db, orderId: string): Promise<OrderRow | undefined> =>
  db.select().from(billingOrders).where(eq(billingOrders.orderId, orderId)).get();

/** Orders of a tenant. A new one replaces the oldest that were not paid. */
const MAX_ORDERS = 10_000;
/** So long after its end the provider may still say that an order was paid. */
const LATE_PAYMENT_MS = 30 * 24 * 3_600_000;

async function begin(tx: Db, app: App, provider: PaymentProvider, { caller, key, planName, tenantId }: OrderRequest) {
  const tenant = await requireTenant(tx, caller, tenantId);
  const owner = caller.kind === "key" ? `tenant:${caller.tenantId}` : caller.kind;
  const requestHash = sha256(JSON.stringify([planName, tenant.id]));
  const known = await tx
    .select()
    .from(billingOrders)
    .where(and(eq(billingOrders.caller, owner), eq(billingOrders.idempotencyKey, key)))
    .get();
  if (known && known.requestHash !== requestHash)
    throw new HttpError(422, "idempotency_key_reused", "This Idempotency-Key was used for a different request.");
  if (known) return { order: known, isRepeat: true };
  const now = app.clock.now();
  await requireFewerRows(tx, {
    table: "billing_orders",
    where: sql`tenant_id = ${tenant.id}`,
    max: MAX_ORDERS,
    ended: sql`status <> 'paid' AND expires_at <= ${now - LATE_PAYMENT_MS}`,
    code: "order_limit_reached",
    message: `A tenant has at most ${MAX_ORDERS} orders; wait until open ones expire.`,
  });
  const order = await tx
    .insert(billingOrders)
    .values({
      orderId: newOrderId(),
      tenantId: tenant.id,
      planName,
      ...priceOf(app, planName),
      provider: provider.kind,
      status: "creating",
      caller: owner,
      idempotencyKey: key,
      requestHash,
      // Stored, because the provider must receive the same values even after settings change.
      returnUrl: app.config.checkout_return_url ?? app.baseUrl().replace(/\/$/, "") + RETURN_PATH,
      expiresAt: now + ORDER_MS,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  return { order, isRepeat: false };
}

function priceOf(app: App, planName: PlanName) {
  const { currency, plans } = pricesOf(app);
  const amountMinor = plans[planName].monthly_price_minor;
  if (amountMinor === null) return invalid("plan_name", `the plan ${planName} is not for sale; ask the operator`);
  if (amountMinor === 0) return invalid("plan_name", `the plan ${planName} is free; ask the operator to change to it`);
  return { amountMinor, currency };
}

async function introduce(app: App, provider: PaymentProvider, order: OrderRow): Promise<OrderRow> {
  if (order.provider !== provider.kind)
    throw new HttpError(
      502,
      "payment_provider_failed",
      "The payment provider has changed since this order; use a new Idempotency-Key.",
    );
  let created: Created;
  try {
    created = await provider.create({ ...order, description: `vodbox ${order.planName}` });
  } catch (error) {
    if (!(error instanceof PaymentFailed)) throw error;
    if (error.isRefusal)
      await app.write(async (tx) => {
        const refusals = sql`${billingOrders.refusals} + 1`;
        await tx.update(billingOrders).set({ refusals }).where(eq(billingOrders.id, order.id));
      });
    metricsOf(app).services.add("payments");
    app.log.warn({ order_id: order.orderId, reason: error.message }, "the payment provider failed");
    throw new HttpError(
      502,
      "payment_provider_failed",
      "The payment provider failed; send the request again with the same Idempotency-Key.",
    );
  }
  return app.write((tx) =>
    tx
      .update(billingOrders)
      .set({
        ...created,
        // It may have been paid before its URL was stored.
        status: sql`CASE ${billingOrders.status} WHEN 'creating' THEN 'pending' ELSE ${billingOrders.status} END`,
        updatedAt: app.clock.now(),
      })
      .where(eq(billingOrders.id, order.id))
      .returning()
      .get(),
  );
}
