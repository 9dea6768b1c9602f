import { and, eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { readBytes } from "#platform/http/body.ts";
import { metricsOf } from "#platform/http/metrics.ts";
import type { Context } from "#platform/http/route.ts";
import { paymentsOf, signersOf } from "#platform/outbound/payments/configured.ts";
import {
  InvalidSignature,
  type Notice,
  PaymentFailed,
  type PaymentProvider,
} from "#platform/outbound/payments/provider.ts";
import type { Db } from "#storage/db/open.ts";
import { billingEvents, billingOrders, type OrderRow, tenants } from "#storage/db/schema.ts";
import { orderById } from "./orders.ts";

const MAX_BYTES = 1 << 20;

const unauthorized = (message: string) => new HttpError(401, "unauthorized", message);

/**
 * Processes a provider's notification: verified over the raw bytes, applied once. Returns the order's id, or null when
 * it concerns none of our orders; that is not an error, because the provider would retry.
 */
export async function receiveNotice({ app, headers, request, incoming }: Context): Promise<string | null> {
  const provider = await paymentsOf(app);
  const signers = signersOf(headers);
  // Before the body is read, with the same response whether payments are off or another provider is configured.
  if (!provider || signers.length !== 1 || signers[0] !== provider.kind)
    throw unauthorized("The notification has no valid signature of the payment provider.");
  const body = await readBytes({ request, incoming }, MAX_BYTES);
  try {
    const notice = await provider.verify({ headers, body, now: app.clock.now() });
    return await act(app, provider, notice);
  } catch (error) {
    if (error instanceof InvalidSignature) throw unauthorized(`The notification was refused. ${error.message}`);
    if (!(error instanceof PaymentFailed)) throw error;
    metricsOf(app).services.add("payments");
    app.log.warn({ reason: error.message }, "a notification of the payment provider could not be processed");
    throw new HttpError(502, "payment_provider_failed", "The payment provider failed; send the notification again.");
  }
}

async function act(app: App, provider: PaymentProvider, notice: Notice): Promise<string | null> {
  const order = notice.orderId === null ? undefined : await orderById(app.db, notice.orderId);
  if (!order || !isOurs(app, provider, order, notice)) return null;
  if (await isKnown(app.db, provider, notice)) return order.orderId;
  const paid = await paidBy(app, provider, order, notice);
  await app.write((tx) => settle(tx, app, order.orderId, { provider, notice, paid }));
  return order.orderId;
}

async function isKnown(db: Db, { kind }: PaymentProvider, { eventId }: Notice): Promise<boolean> {
  const same = and(eq(billingEvents.provider, kind), eq(billingEvents.eventId, eventId));
  return (await db.select({ id: billingEvents.eventId }).from(billingEvents).where(same).get()) !== undefined;
}

/** By provider, and the provider's id of the order. */
function isOurs(app: App, { kind }: PaymentProvider, order: OrderRow, { providerOrderId }: Notice): boolean {
  const isSame = providerOrderId === null || [null, providerOrderId].includes(order.providerOrderId);
  if (order.provider === kind && isSame) return true;
  app.log.warn({ order_id: order.orderId, provider: kind }, "a notification does not match the order with this id");
  return false;
}

/** Whether the full price was paid. An approved payment is captured now, unless that was done before. */
async function paidBy(app: App, provider: PaymentProvider, order: OrderRow, notice: Notice): Promise<boolean> {
  if (notice.outcome === "other" || order.status === "paid") return false;
  const isApproval = notice.outcome === "approved" && notice.providerOrderId !== null;
  if (notice.outcome === "approved" && !isApproval) return false;
  const reported = isApproval ? await provider.capture(order.orderId, notice.providerOrderId as string) : notice.amount;
  if (isApproval && reported === null) return false;
  const amount = reported === "order" ? order : reported;
  if (amount?.amountMinor === order.amountMinor && amount.currency === order.currency) return true;
  app.log.error({ order_id: order.orderId, amount }, "the paid amount of an order differs; the plan was not changed");
  return false;
}

/**
 * Records the event and sets the plan in one transaction, once. An order that is paid after its expiry is honored: the
 * money was taken.
 */
async function settle(
  tx: Db,
  app: App,
  orderId: string,
  { provider, notice, paid }: { provider: PaymentProvider; notice: Notice; paid: boolean },
): Promise<void> {
  const now = app.clock.now();
  if (await isKnown(tx, provider, notice)) return;
  await tx
    .insert(billingEvents)
    .values({ provider: provider.kind, eventId: notice.eventId, type: notice.type, orderId, receivedAt: now });
  const order = await orderById(tx, orderId);
  if (!paid || !order || order.status === "paid") return;
  const set = { status: "paid" as const, paidAt: now, updatedAt: now };
  await tx
    .update(billingOrders)
    .set({ ...set, providerOrderId: order.providerOrderId ?? notice.providerOrderId })
    .where(eq(billingOrders.id, order.id));
  await tx.update(tenants).set({ planName: order.planName, updatedAt: now }).where(eq(tenants.id, order.tenantId));
}
