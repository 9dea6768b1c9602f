import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { STRIPE_KEY, stripeService } from "#test/support/payment-services.ts";
import { startServer } from "#test/support/process.ts";

test("killed between the provider's response and its own, a server creates no second order", async () => {
  const stripe = await stripeService();
  const env = {
    VODBOX_PAYMENTS: "stripe",
    VODBOX_STRIPE_KEY: STRIPE_KEY,
    VODBOX_STRIPE_WEBHOOK_SECRET: "whsec_1",
    VODBOX_STRIPE_URL: stripe.base,
  };
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "A", slug: "a" });
  const order = () =>
    server
      .as({ admin, headers: { "idempotency-key": "once" } })
      .createOrder({ plan_name: "starter", tenant_id: tenant.body.id });

  // Stripe has created the session, and its response is on the way.
  stripe.mischief.push(() => void server.child.kill("SIGKILL"));
  await expect(order()).rejects.toThrow();
  expect((await server.ended).signal).toBe("SIGKILL");
  server = await startServer(dataDir, { env });
  const orders = await server.as({ admin }).listOrders();
  expect(orders.body).toMatchObject([{ status: "creating", checkout_url: null }]);

  const answers = [await order(), await order()];
  for (const { status, body } of answers)
    expect([status, body]).toMatchObject([
      201,
      { order_id: orders.body[0].order_id, status: "pending", checkout_url: expect.stringMatching(/cs_test_1$/) },
    ]);
  expect(stripe.made).toBe(1);
  expect(new Set(stripe.asked.map(({ headers, body }) => `${headers["idempotency-key"]} ${body}`)).size).toBe(1);
});
