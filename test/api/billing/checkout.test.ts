import { sql } from "drizzle-orm";
import Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { STRIPE_KEY, stripeService } from "#test/support/payment-services.ts";

const DAY = 24 * 3_600_000;
const SECRET = "whsec_of_the_tests";
let app: TestApp;
let key: string;
let tenant: { id: number; slug: string };

const order = (idempotencyKey: string | null, body: unknown = { plan_name: "starter" }, credential: object = { key }) =>
  app.call("POST", "/api/v1/billing/checkout", {
    ...credential,
    body,
    headers: idempotencyKey === null ? {} : { "idempotency-key": idempotencyKey },
  });
const planOf = async () => (await app.as({ admin: app.admin }).getTenant(tenant.id)).body.plan_name;
const notify = (raw: string, headers: Record<string, string>) =>
  app.call("POST", "/api/v1/billing/webhook", { raw, headers: { "content-type": "application/json", ...headers } });
/** Counted over all tests, because two servers may have one directory. */
let payers = 0;
const opened = async (settings: Record<string, unknown>, folder?: string) => {
  app = await testApp(settings, folder);
  tenant = await app.tenant({ slug: `payer-${++payers}` });
  key = await app.key(tenant.id, ["billing:write"]);
};
afterEach(() => app.close());

describe("with Stripe", () => {
  let stripe: Awaited<ReturnType<typeof stripeService>>;
  let settings: Record<string, unknown>;
  beforeEach(async () => {
    stripe = await stripeService();
    settings = {
      payments: "stripe",
      stripe_key: STRIPE_KEY,
      stripe_webhook_secret: SECRET,
      stripe_url: stripe.base,
      checkout_return_url: "https://www.example.com/account?tab=plan",
      rate_limit_billing: "1000/60",
    };
    await opened(settings);
  });

  const event = (session: object, fields: object = {}) =>
    JSON.stringify({
      id: "evt_1",
      object: "event",
      type: "checkout.session.completed",
      livemode: false,
      ...fields,
      data: { object: { object: "checkout.session", payment_status: "paid", ...session } },
    });
  const signed = (payload: string, { secret = SECRET, agoSeconds = 0 } = {}) => {
    const timestamp = Math.floor(app.opened.app.clock.now() / 1000) - agoSeconds;
    return notify(payload, {
      "stripe-signature": Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
    });
  };
  const paid = (made: { order_id: string }) => ({
    id: "cs_test_1",
    client_reference_id: made.order_id,
    amount_total: 1900,
    currency: "usd",
  });

  test("an order is the same for all requests with its key, and follows Stripe's API", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => order("one")));
    const [first] = answers;
    for (const { status, body } of answers) expect([status, body]).toEqual([201, first?.body]);
    expect(first?.body).toMatchObject({
      order_id: expect.stringMatching(/^ord_\w{22}$/),
      status: "pending",
      checkout_url: "https://checkout.stripe.com/c/pay/cs_test_1",
      provider: "stripe",
      tenant_id: tenant.id,
      plan_name: "starter",
      amount_minor: 1900,
      currency: "USD",
      paid_at: null,
    });
    expect(answers.filter(({ headers }) => headers.has("idempotent-replayed"))).toHaveLength(19);
    expect(stripe.asked).toHaveLength(1);
    const [asked] = stripe.asked;
    const id = first?.body.order_id;
    expect(asked?.headers["idempotency-key"]).toBe(`vodbox-${id}`);
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      mode: "payment",
      client_reference_id: id,
      "metadata[order_id]": id,
      "payment_intent_data[metadata][order_id]": id,
      "line_items[0][quantity]": "1",
      "line_items[0][price_data][currency]": "usd",
      "line_items[0][price_data][unit_amount]": "1900",
      "line_items[0][price_data][product_data][name]": "vodbox starter",
      success_url: `https://www.example.com/account?tab=plan&order_id=${id}&outcome=paid`,
      cancel_url: `https://www.example.com/account?tab=plan&order_id=${id}&outcome=canceled`,
      expires_at: String(Math.floor(Date.parse(first?.body.expires_at) / 1000)),
    });

    expect((await order("two")).body.order_id).not.toBe(id);
    expectError(await order("one", { plan_name: "pro" }), 422, "idempotency_key_reused");
    // With the admin token the key belongs to another caller.
    const asAdmin = await order("one", { plan_name: "starter", tenant_id: tenant.id }, { admin: app.admin });
    expect(asAdmin.body.order_id).not.toBe(id);
    const list = await app.as(key).listOrders();
    expect(list.body.map(({ order_id }: { order_id: string }) => order_id)).toEqual([
      asAdmin.body.order_id,
      expect.any(String),
      id,
    ]);
    // Days later it is still the same order.
    app.advance(3 * 86_400_000);
    expect((await order("one")).body).toMatchObject({ order_id: id, status: "expired", checkout_url: null });
    expect(stripe.made).toBe(3);
  });

  test("payers return to a page of vodbox by default", async () => {
    await app.close();
    await opened({ ...settings, checkout_return_url: undefined });
    const id = (await order("own")).body.order_id;
    const asked = new URLSearchParams(stripe.asked[0]?.body);
    for (const [name, outcome, said] of [
      ["success_url", "paid", /payment is being confirmed/],
      ["cancel_url", "canceled", /payment was canceled/],
    ] as const) {
      const address = asked.get(name) ?? "";
      expect(address).toBe(`${app.opened.app.baseUrl()}/payment?order_id=${id}&outcome=${outcome}`);
      const page = await app.call("GET", address);
      expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      expect(page.text).toMatch(said);
      expect(page.text).not.toMatch(/<script|ord_/);
    }
    const strange = await app.call("GET", "/payment?order_id=<b>&outcome=__proto__");
    expect([strange.status, strange.text.includes("<b>")]).toEqual([200, false]);
  });

  test("an invalid request is refused, and Stripe is not called", async () => {
    const other = await app.tenant();
    const rows: [Promise<Awaited<ReturnType<typeof order>>>, number, string][] = [
      [order(null), 422, "parameter_missing"],
      [order("x".repeat(256)), 422, "validation_failed"],
      [order("a", {}), 422, "parameter_missing"],
      [order("a", { plan_name: "gold" }), 422, "validation_failed"],
      [order("a", { plan_name: "free" }), 422, "validation_failed"],
      [order("a", { plan_name: "starter", tenant_id: other.id }), 404, "not_found"],
      [order("a", { plan_name: "starter" }, { admin: app.admin }), 422, "parameter_missing"],
      [
        order("a", { plan_name: "starter" }, { key: await app.key(tenant.id, ["assets:write"]) }),
        403,
        "forbidden_scope",
      ],
      [order("a", { plan_name: "starter" }, {}), 401, "unauthorized"],
    ];
    for (const [answer, status, code] of rows) expectError(await answer, status, code);
    expect(stripe.asked).toEqual([]);
  });

  test("a provider failure is reported, and the same key retries", async () => {
    // As often as the library retries by itself, while the order was created the first time.
    for (let tries = 0; tries < 3; tries++) stripe.mischief.push((response) => response.destroy());
    expectError(await order("again"), 502, "payment_provider_failed");
    expect((await order("again")).status).toBe(201);
    expect(stripe.asked).toHaveLength(4);
    expect(stripe.made).toBe(1);
    // Stripe caches its refusals for a day, so the request is repeated under another key.
    stripe.refuse = true;
    expectError(await order("refused"), 502, "payment_provider_failed");
    stripe.refuse = false;
    const answer = await order("refused");
    expect(answer.status).toBe(201);
    expect(stripe.asked.slice(4).map(({ headers }) => headers["idempotency-key"])).toEqual([
      `vodbox-${answer.body.order_id}`,
      `vodbox-${answer.body.order_id}-1`,
    ]);
  });

  test("a payment sets the plan once", async () => {
    const made = (await order("pay")).body;
    const completed = event(paid(made));
    const answer = await signed(completed);
    expect([answer.status, answer.body]).toEqual([200, { received: true, order_id: made.order_id }]);
    expect(await planOf()).toBe("starter");
    expect((await order("pay")).body).toMatchObject({
      status: "paid",
      checkout_url: null,
      paid_at: expect.any(String),
    });
    // The operator changes the plan; neither a repeat nor another event of the same payment changes it back.
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { plan_name: "pro" });
    expect((await signed(completed)).status).toBe(200);
    const late = event(paid(made), { id: "evt_2", type: "checkout.session.async_payment_succeeded" });
    expect((await Promise.all([signed(late), signed(late)])).map(({ status }) => status)).toEqual([200, 200]);
    expect(await planOf()).toBe("pro");
  });

  test("an order that is paid after its expiry is honored", async () => {
    const made = (await order("late")).body;
    app.advance(4 * 3_600_000);
    expect((await order("late")).body.status).toBe("expired");
    expect((await signed(event(paid(made)))).status).toBe(200);
    expect(await planOf()).toBe("starter");
  });

  test("notifications that are forged, late, of the other mode or of another provider are refused", async () => {
    const made = (await order("safe")).body;
    const completed = event(paid(made));
    const rows: [string, () => ReturnType<typeof notify>][] = [
      ["unsigned", () => notify(completed, {})],
      ["signed with another secret", () => signed(completed, { secret: "whsec_another" })],
      ["signed too long ago", () => signed(completed, { agoSeconds: 301 })],
      ["live", () => signed(event(paid(made), { livemode: true }))],
      ["no JSON", () => signed("{")],
      ["nonsense for a signature", () => notify(completed, { "stripe-signature": "t=1,v1=00" })],
      ["simulated", () => notify(completed, { "x-svc-simulated-event": "order.paid" })],
      ["of two providers", () => notify(completed, { "stripe-signature": "t=1,v1=00", "x-svc-simulated-event": "a" })],
      [
        "altered on its way",
        () => {
          const header = Stripe.webhooks.generateTestHeaderString({ payload: completed, secret: SECRET });
          return notify(completed.replace("1900", "1901"), { "stripe-signature": header });
        },
      ],
    ];
    for (const [about, send] of rows) expectError(await send(), 401, "unauthorized", about);
    const large = await notify(" ".repeat((1 << 20) + 1), { "stripe-signature": "t=1,v1=00" });
    expectError(large, 413, "payload_too_large");
    expect(await planOf()).toBe("pro");

    // Genuine but irrelevant: 200, or Stripe would resend them.
    const idle = [
      event({ ...paid(made), payment_status: "unpaid" }, { id: "evt_unpaid" }),
      event({ ...paid(made), amount_total: 1 }, { id: "evt_cheap" }),
      event({ ...paid(made), currency: "jpy" }, { id: "evt_yen" }),
      event({ ...paid(made), id: "cs_test_99" }, { id: "evt_other_session" }),
      event({ ...paid(made), client_reference_id: "ord_unknown" }, { id: "evt_unknown" }),
      event(paid(made), { id: "evt_expired", type: "checkout.session.expired" }),
      event({}, { id: "evt_else", type: "customer.created" }),
      // With unexpected shapes.
      ...[undefined, null, {}, { object: null }, { object: 5 }, { object: { client_reference_id: {}, id: 5 } }].map(
        (data, at) => JSON.stringify({ ...JSON.parse(event(paid(made), { id: `evt_odd_${at}` })), data }),
      ),
      event({ ...paid(made), currency: 5 }, { id: "evt_odd_currency" }),
      event({ ...paid(made), amount_total: {} }, { id: "evt_odd_amount" }),
      event(paid(made), { id: undefined }),
      event(paid(made), { type: undefined }),
    ];
    expectError(await signed("null"), 401, "unauthorized");
    for (const each of idle) expect((await signed(each)).status, each).toBe(200);
    expect(await planOf()).toBe("pro");
    expect((await order("safe")).body.status).toBe("pending");
  });
});

describe("simulated", () => {
  test("a tenant has 10,000 orders: one more replaces those that were not paid a month after their end", async () => {
    await opened({ payments: "simulated", env: "development" });
    const now = app.opened.app.clock.now();
    await app.opened.app.write((tx) =>
      tx.run(sql`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO billing_orders (order_id, tenant_id, plan_name, amount_minor, currency, provider, status, caller, idempotency_key,
          request_hash, return_url, expires_at, created_at, updated_at)
        SELECT 'o' || i, ${tenant.id}, 'pro', 1, 'USD', 'simulated', iif(i < 5, 'paid', 'pending'), 'c', i, 'h', 'r', ${now}, 1, 1 FROM n`),
    );
    expect((await order("last")).status).toBe(201);
    expectError(await order("more"), 422, "order_limit_reached");
    app.advance(29 * DAY);
    expectError(await order("more"), 422, "order_limit_reached");
    app.advance(2 * DAY);
    expect((await order("more")).status).toBe(201);
    const paid = await app.opened.app.db.all(sql`SELECT 1 FROM billing_orders WHERE status = 'paid'`);
    expect(paid).toHaveLength(4);
  });

  test("an order is paid by a simulated event, in development", async () => {
    await opened({ payments: "simulated", env: "development" });
    const made = (await order("one")).body;
    expect(made).toMatchObject({
      status: "pending",
      provider: "simulated",
      checkout_url: expect.stringMatching(/^http/),
    });
    const said = (body: unknown, header = "order.paid") =>
      notify(typeof body === "string" ? body : JSON.stringify(body), { "x-svc-simulated-event": header });
    const body = { event: "order.paid", order_id: made.order_id };
    expectError(await said("{"), 400, "invalid_json");
    expectError(await said({ event: "order.paid" }), 422, "parameter_missing");
    expectError(await said({ ...body, order_id: "a\0" }), 422, "parameter_missing");
    expectError(await said(body, "order.refunded"), 401, "unauthorized");
    expectError(await notify(JSON.stringify(body), {}), 401, "unauthorized");
    expect((await said({ ...body, order_id: "ord_unknown" })).body).toEqual({ received: true, order_id: null });
    expect(await planOf()).toBe("pro");
    expect((await said(body)).body).toEqual({ received: true, order_id: made.order_id });
    expect(await planOf()).toBe("starter");
  });

  test("orders, and their keys, belong to the caller's own tenant", async () => {
    await opened({ payments: "simulated", env: "development" });
    const other = await app.tenant();
    const theirKey = await app.key(other.id);
    const theirs = await order("one", { plan_name: "starter" }, { key: theirKey });
    for (const tenant_id of [other.id, 987_654_321]) {
      expectError(await order("two", { plan_name: "starter", tenant_id }), 404, "not_found");
      expectError(await app.as(key).getBillingEstimate({ tenant_id }), 404, "not_found");
    }
    const made = await order("one", { plan_name: "starter", tenant_id: tenant.id });
    expect([theirs.body.tenant_id, made.body.tenant_id]).toEqual([other.id, tenant.id]);
    expect(made.body.order_id).not.toBe(theirs.body.order_id);
    const list = async (credential: object, query = "") =>
      (await app.call("GET", `/api/v1/billing/orders${query}`, credential)).body;
    expect(await list({ key })).toEqual([made.body]);
    expect(await list({ key }, `?tenant_id=${other.id}`)).toEqual([]);
    expect(await list({ admin: app.admin }, `?tenant_id=${other.id}`)).toEqual([theirs.body]);
    expect(await list({ admin: app.admin })).toEqual([made.body, theirs.body]);
  });

  test("simulated payments are refused in production, and without payments there is no checkout", async () => {
    await opened({});
    expectError(await order("off"), 503, "payments_not_configured");
    const headers = { "x-svc-simulated-event": "order.paid" };
    expectError(await notify('{"event":"order.paid","order_id":"ord_1"}', headers), 401, "unauthorized");
    const starts: [Record<string, unknown>, RegExp][] = [
      [{ payments: "simulated" }, /VODBOX_ENV=development/],
      [{ payments: "stripe" }, /VODBOX_STRIPE_KEY, VODBOX_STRIPE_WEBHOOK_SECRET/],
      [{ payments: "stripe", stripe_key: "pk_test_1", stripe_webhook_secret: "whsec_1" }, /sk_live_/],
      [{ payments: "paypal", paypal_client_id: "a" }, /VODBOX_PAYPAL_CLIENT_SECRET, VODBOX_PAYPAL_WEBHOOK_ID/],
      [
        { prices: '{"currency":"XYZ","plans":{"free":{"egress_gb":{"included":-1}}}}' },
        /currency.*plans\.free\.egress_gb/,
      ],
    ];
    for (const [settings, told] of starts) await expect(testApp(settings, emptyFolder())).rejects.toThrow(told);
  });
});
