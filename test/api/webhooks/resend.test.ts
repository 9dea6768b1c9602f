import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { type Receiver, receiver, status } from "#test/support/receiver.ts";

const TASK = "deliver-webhooks";
const base = "/api/v1/webhooks";
let app: TestApp;
let key: string;
let reader: string;
let foreign: string;
let there: Receiver;
let id: number;
let path: string;
beforeEach(async () => {
  app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8" });
  const tenant = await app.tenant();
  key = await app.key(tenant.id);
  reader = await app.key(tenant.id, ["webhooks:read"]);
  foreign = await app.key((await app.tenant()).id);
  there = await receiver(status(400));
  id = (await app.as(key).createWebhook({ url: there.url })).body.id;
  path = `${base}/${id}`;
});
const post = (action: string, body: object = {}, credentials: object = { key }) =>
  app.call("POST", `${path}/${action}`, { ...credentials, body });
/** A test event that the receiver refused for good. */
async function failed(): Promise<{ id: number; event_id: string }> {
  const { body } = await post("test");
  await app.runTask(TASK);
  return body;
}
const statuses = async () =>
  (await app.call("GET", `${path}/deliveries`, { key })).body.map((one: { status: string }) => one.status);

describe("a delivery", () => {
  test("shows the request that was sent, without signatures", async () => {
    const delivery = await failed();
    const { status: code, body } = await app.call("GET", `${path}/deliveries/${delivery.id}`, { key: reader });
    const [sent] = there.received;
    expect([code, body.status, body.response_status, body.request.body]).toEqual([200, "failed", 400, sent?.body]);
    expect(body.request).toMatchObject({ method: "POST", url: there.url });
    for (const [name, value] of Object.entries(body.request.headers))
      expect(sent?.headers[name.toLowerCase()], name).toBe(value);
    expect(Object.keys(body.request.headers)).toEqual(["content-type", "user-agent", "Svc-Event", "webhook-id"]);
    expect((await app.call("GET", `${path}/deliveries/whd_${delivery.id}`, { key })).body).toEqual(body);
  });

  test("of another tenant or endpoint does not exist", async () => {
    const delivery = await failed();
    const other = (await app.as(key).createWebhook({ url: there.url })).body.id;
    const none = await app.key(1, ["assets:read"]);
    expectError(await app.call("GET", `${path}/deliveries/${delivery.id}`, { key: foreign }), 404, "not_found");
    expectError(await app.as(key).getDelivery(other, delivery.id), 404, "not_found");
    for (const ref of ["0", "987654", "x", "evt_1"])
      expectError(await app.call("GET", `${path}/deliveries/${ref}`, { key }), 404, "not_found", ref);
    expectError(await app.call("GET", `${path}/deliveries/${delivery.id}`, { key: none }), 403, "forbidden_scope");
  });
});

describe("failed deliveries", () => {
  test("are resent together, and others are not", async () => {
    for (let n = 0; n < 3; n++) await failed();
    there.behave(status(200));
    await failed();
    there.received.length = 0;
    const answer = await post("resend_failed");
    expect([answer.status, answer.body]).toEqual([202, { matched: 3, resent: 3, paused: 0, last: null }]);
    await app.runTask(TASK);
    expect(await statuses()).toEqual(["delivered", "delivered", "delivered", "delivered"]);
    expect(there.received).toHaveLength(3);
    expect((await post("resend_failed")).body).toEqual({ matched: 0, resent: 0, paused: 0, last: null });
  });

  test("are resent in batches, of this endpoint alone", async () => {
    const { id: first } = await failed();
    const other = (await app.as(key).createWebhook({ url: there.url })).body.id;
    for (const endpoint of [id, other])
      await app.opened.app.write(async (tx) => {
        await tx.run(sql`
          INSERT INTO webhook_deliveries (tenant_id, endpoint_id, event_id, status, attempts, tries, created_at, updated_at)
          SELECT tenant_id, ${endpoint}, event_id, 'failed', 6, 6, created_at, updated_at
          FROM webhook_deliveries, json_each(${JSON.stringify(Array.from({ length: 1199 }))}) WHERE webhook_deliveries.id = ${first}`);
      });
    const sizes: number[] = [];
    for (let after: number | null | undefined; after !== null; ) {
      const { body } = await post("resend_failed", after === undefined ? {} : { after });
      sizes.push(body.resent);
      after = body.last;
    }
    expect(sizes).toEqual([500, 500, 200]);
    const rows = await app.opened.app.db.all(sql`
      SELECT endpoint_id = ${id} AS own, status, count(*) AS n FROM webhook_deliveries GROUP BY 1, 2 ORDER BY 1`);
    expect(rows).toEqual([
      { own: 0, status: "failed", n: 1199 },
      { own: 1, status: "pending", n: 1200 },
    ]);
  });

  test("of a paused endpoint stay as they are, and another tenant's do not exist", async () => {
    await failed();
    await app.call("PATCH", `${path}/active`, { key, body: { active: false } });
    expect((await post("resend_failed")).body).toEqual({ matched: 1, resent: 0, paused: 1, last: null });
    expect(await statuses()).toEqual(["failed"]);
    expectError(await post("resend_failed", {}, { key: foreign }), 404, "not_found");
    expectError(await post("resend_failed", {}, { key: reader }), 403, "forbidden_scope");
    for (const after of [1.5, "x", {}])
      expectError(await post("resend_failed", { after }), 422, "validation_failed", String(after));
  });
});

describe("an endpoint", () => {
  const patch = (body: unknown, credentials: object = { key }) => app.call("PATCH", path, { ...credentials, body });

  test("changes its URL, description and events, each alone; its next deliveries go there", async () => {
    const elsewhere = await receiver(status(200));
    const before = (await app.call("GET", path, { key })).body;
    const moved = await patch({ url: elsewhere.url });
    expect([moved.status, moved.body]).toEqual([
      200,
      { ...before, url: elsewhere.url, updated_at: expect.any(String) },
    ]);
    await failed();
    expect([there.received.length, elsewhere.received.length]).toEqual([0, 1]);
    expect((await patch({ description: "Ours" })).body).toMatchObject({ url: elsewhere.url, description: "Ours" });
    const events = ["video.asset.ready", "video.asset.ready"];
    expect((await patch({ event_types: events })).body).toMatchObject({
      description: "Ours",
      event_types: ["video.asset.ready"],
    });
    expect((await patch({ description: null, event_types: [] })).body).toMatchObject({
      description: null,
      event_types: [],
    });
    expect((await patch({})).status).toBe(200);
  });

  test("refuses what creation refuses, and callers that may not", async () => {
    for (const body of [
      { url: "ftp://example.com/" },
      { url: "http://10.0.0.1/" },
      { url: " " },
      { url: null },
      { url: `https://example.com/${"x".repeat(2000)}` },
      { description: "x".repeat(1001) },
      { event_types: ["video.unknown"] },
      { event_types: "video.asset.ready" },
    ])
      expect([(await patch(body)).status, body]).toEqual([422, body]);
    expectError(await patch({ description: "x" }, { key: foreign }), 404, "not_found");
    expectError(await patch({ description: "x" }, { key: reader }), 403, "forbidden_scope");
  });
});
