import { execFileSync } from "node:child_process";
import { createSign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { paypalService } from "#test/support/payment-services.ts";

/** A root certificate and one signed by it, created with `openssl`: PEM. */
function certificates(folder: string) {
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe" });
  const fresh = (name: string) => ["-newkey", "rsa:2048", "-nodes", "-keyout", at(`${name}.key`)];
  const root = (name: string) =>
    openssl("req", "-x509", ...fresh(name), "-out", at(`${name}.pem`), "-subj", "/CN=Root", "-days", "30");
  root("root");
  root("stranger");
  openssl("req", "-new", ...fresh("leaf"), "-out", at("leaf.csr"), "-subj", "/CN=messages.paypal.com");
  const by = ["-CA", at("root.pem"), "-CAkey", at("root.key"), "-CAcreateserial"];
  openssl("x509", "-req", "-in", at("leaf.csr"), ...by, "-out", at("leaf.pem"), "-days", "20");
  const read = (name: string) => readFileSync(at(name), "utf8");
  return { root: read("root.pem"), stranger: read("stranger.pem"), leaf: read("leaf.pem"), key: read("leaf.key") };
}

test("an order at PayPal is created once, approved, captured, and sets the plan once; forgeries are refused", async () => {
  const pems = certificates(emptyFolder());
  const paypal = await paypalService();
  paypal.certificates.set("CERT-good", pems.leaf + pems.root);
  paypal.certificates.set("CERT-torn", pems.leaf + pems.stranger);
  paypal.certificates.set("CERT-none", "nothing");
  const app = await testApp({
    payments: "paypal",
    paypal_client_id: "client",
    paypal_client_secret: "client-secret",
    paypal_webhook_id: "WH-1",
    paypal_url: paypal.base,
    rate_limit_billing: "1000/60",
  });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const planOf = async () => (await app.as(key).listTenants()).body[0].plan_name;
  const order = (idempotencyKey: string) =>
    app.call("POST", "/api/v1/billing/checkout", {
      key,
      body: { plan_name: "starter" },
      headers: { "idempotency-key": idempotencyKey },
    });

  paypal.mischief.push((response) => response.destroy());
  expectError(await order("one"), 502, "payment_provider_failed");
  const answers = await Promise.all([order("one"), order("one")]);
  const [made] = answers.map(({ body }) => body);
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect(made).toMatchObject({
    status: "pending",
    provider: "paypal",
    checkout_url: "https://www.sandbox.paypal.com/checkoutnow?token=PP-1",
  });
  const asked = paypal.asked.filter(({ path }) => path === "/v2/checkout/orders");
  expect(asked.map(({ headers }) => headers["paypal-request-id"])).toEqual(
    Array.from({ length: 2 }, () => `vodbox-${made.order_id}`),
  );
  expect(JSON.parse(asked[0]?.body ?? "")).toMatchObject({
    intent: "CAPTURE",
    purchase_units: [
      { custom_id: made.order_id, invoice_id: made.order_id, amount: { currency_code: "USD", value: "19.00" } },
    ],
  });

  const notify = (raw: string, headers: Record<string, string>) =>
    app.call("POST", "/api/v1/billing/webhook", { raw, headers: { "content-type": "application/json", ...headers } });
  const signed = (event: unknown, but: Record<string, string> = {}, agoMs = 0, signer = pems.key) => {
    const raw = JSON.stringify(event);
    const time = new Date(app.opened.app.clock.now() - agoMs).toISOString();
    const id = but["paypal-transmission-id"] ?? "T-1";
    const signature = createSign("sha256")
      .update(`${id}|${time}|WH-1|${crc32(raw)}`)
      .sign(signer, "base64");
    return {
      raw,
      headers: {
        "paypal-transmission-id": id,
        "paypal-transmission-time": time,
        "paypal-transmission-sig": signature,
        "paypal-auth-algo": "SHA256withRSA",
        "paypal-cert-url": `${paypal.base}/v1/notifications/certs/CERT-good`,
        ...but,
      },
    };
  };
  const send = (...given: Parameters<typeof signed>) => {
    const { raw, headers } = signed(...given);
    return notify(raw, headers);
  };
  const approved = {
    id: "WH-E1",
    event_type: "CHECKOUT.ORDER.APPROVED",
    resource: {
      id: "PP-1",
      purchase_units: [{ custom_id: made.order_id, amount: { value: "19.00", currency_code: "USD" } }],
    },
  };
  const cert = (name: string, base = paypal.base) => ({ "paypal-cert-url": `${base}/v1/notifications/certs/${name}` });
  const genuine = signed(approved);
  const forged: [string, () => ReturnType<typeof notify>][] = [
    ["altered", () => notify(genuine.raw.replace("19.00", "19.01"), genuine.headers)],
    ["of another transmission", () => notify(genuine.raw, { ...genuine.headers, "paypal-transmission-id": "T-2" })],
    ["late", () => send(approved, {}, 5 * 86_400_000)],
    ["of the future", () => send(approved, {}, -600_000)],
    ["without a time", () => send(approved, { "paypal-transmission-time": "yesterday" })],
    ["by another way to sign", () => send(approved, { "paypal-auth-algo": "none" })],
    ["with a certificate elsewhere", () => send(approved, cert("CERT-good", "https://paypal.example.com"))],
    ["with a certificate of the sandbox", () => send(approved, cert("CERT-good", "https://api.sandbox.paypal.com"))],
    [
      "with a file that is no certificate's",
      () => send(approved, { "paypal-cert-url": `${paypal.base}/elsewhere/CERT-good` }),
    ],
    ["with no certificate", () => send(approved, cert("CERT-none"))],
    ["with a certificate that is not there", () => send(approved, cert("CERT-unknown"))],
    ["with a certificate that another signed", () => send(approved, cert("CERT-torn"))],
    ["of Stripe", () => notify(genuine.raw, { "stripe-signature": "t=1,v1=00" })],
    ["of another shape", () => send({ id: 1 })],
  ];
  for (const [about, attempt] of forged) expectError(await attempt(), 401, "unauthorized", about);
  expect(await planOf()).toBe("pro");

  // The capture failed: PayPal sends the notification again, and the payment is captured once.
  paypal.mischief.push((response) => response.destroy());
  expectError(await send(approved), 502, "payment_provider_failed");
  expect(await planOf()).toBe("pro");
  const answer = await send(approved);
  expect([answer.status, answer.body]).toEqual([200, { received: true, order_id: made.order_id }]);
  expect(await planOf()).toBe("starter");
  const captures = paypal.asked.filter(({ path }) => path === "/v2/checkout/orders/PP-1/capture");
  expect(new Set(captures.map(({ headers }) => headers["paypal-request-id"]))).toEqual(
    new Set([`${made.order_id}-capture`]),
  );

  await app.as({ admin: app.admin }).updateTenant(tenant.id, { plan_name: "pro" });
  const completed = (id: string, custom_id: string, order_id: string, value = "19.00") => ({
    id,
    event_type: "PAYMENT.CAPTURE.COMPLETED",
    resource: {
      id: "CAP-1",
      custom_id,
      amount: { value, currency_code: "USD" },
      supplementary_data: { related_ids: { order_id } },
    },
  });
  for (const event of [approved, completed("WH-E2", made.order_id, "PP-1")])
    expect((await send(event)).status).toBe(200);
  expect(await planOf()).toBe("pro");
  expect(paypal.asked.filter(({ path }) => path.endsWith("/capture"))).toHaveLength(captures.length);

  // A pending capture is completed by its notification; not by one with another amount or order.
  const second = (await order("two")).body;
  for (const event of [
    completed("WH-E3", second.order_id, "PP-1"),
    completed("WH-E4", second.order_id, "PP-9", "1.00"),
    completed("WH-E5", "ord_unknown", "PP-9"),
    { id: "WH-E6", event_type: "BILLING.PLAN.CREATED", resource: {} },
  ])
    expect((await send(event)).status).toBe(200);
  expect(await planOf()).toBe("pro");
  const place = new URL(second.checkout_url).searchParams.get("token") ?? "";
  expect((await send(completed("WH-E7", second.order_id, place))).status).toBe(200);
  expect(await planOf()).toBe("starter");

  // The certificate has expired.
  app.advance(25 * 86_400_000);
  expectError(await send(approved, { "paypal-transmission-id": "T-9" }), 401, "unauthorized");
  await app.close();
});
