import { sql } from "drizzle-orm";
import { beforeAll, describe, expect, test } from "vitest";
import { EVENT_TYPES } from "#platform/events/catalog.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { emptyFolder } from "#test/support/folder.ts";

const path = "/api/v1/webhooks";
const url = "https://example.com/hook";
let app: TestApp;
let key: string;
let tenant: { id: number };
beforeAll(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  return app.close;
});
const create = (body: unknown, headers: Record<string, string> = {}) =>
  app.as({ key, headers }).unchecked.createWebhook(body);

describe("creating an endpoint", () => {
  test("returns the record, and its secret only once", async () => {
    const made = await create({ url, description: "Ours", event_types: ["video.asset.ready", "video.asset.ready"] });
    const { secret, ...record } = made.body;
    expect([made.status, secret]).toEqual([201, expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)]);
    expect(record).toEqual({
      id: expect.any(Number),
      tenant_id: tenant.id,
      format: "svc",
      url,
      description: "Ours",
      event_types: ["video.asset.ready"],
      active: true,
      failure_count: 0,
      failing_since: null,
      disabled_at: null,
      disabled_reason: null,
      last_delivery_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await app.as(key).getWebhook(record.id)).body).toEqual(record);
    const list = await app.as(key).listWebhooks();
    expect(list.body[0]).toEqual(record);
    expect(list.text).not.toContain("whsec_");
  });

  test("stores the secret encrypted", async () => {
    const dataDir = emptyFolder();
    const own = await testApp({}, dataDir);
    const owned = await own.tenant();
    const made = await own.as({ admin: own.admin }).createWebhook({ tenant_id: owned.id, url });
    const { webhookEndpoints } = await import("#storage/db/schema.ts");
    const [row] = await own.opened.app.db.select().from(webhookEndpoints).all();
    expect(row?.secret).not.toContain(made.body.secret.slice(6, 20));
    expect(Buffer.from(row?.secret ?? "", "base64url").toString("latin1")).not.toContain(made.body.secret.slice(6, 20));
  });

  test("subscribes to everything without event_types, or with none", async () => {
    for (const given of [{}, { event_types: [] }])
      expect((await create({ url, ...given })).body.event_types).toEqual([]);
    expect((await create({ url, event_types: [...EVENT_TYPES] })).body.event_types).toEqual([...EVENT_TYPES]);
  });

  test("repeated under one key creates one endpoint, and does not repeat the secret", async () => {
    const headers = { "idempotency-key": "hook-1" };
    const first = await create({ url }, headers);
    const again = await create({ url }, headers);
    expect([again.status, again.body.id, again.headers.get("idempotent-replayed")]).toEqual([
      201,
      first.body.id,
      "true",
    ]);
    expect(again.body.secret).toBe(undefined);
    expectError(await create({ url: `${url}2` }, headers), 422, "idempotency_key_reused");
  });

  // biome-ignore format: a table.
  test.each<[string, unknown, string]>([
    ["no address", {}, "parameter_missing"],
    ["an address of another type", { url: 7 }, "parameter_missing"],
    ["no URL", { url: "example" }, "validation_failed"],
    ["a blank one", { url: " " }, "validation_failed"],
    ["plain http", { url: "http://example.com/" }, "validation_failed"],
    ["another protocol", { url: "ftp://example.com/" }, "validation_failed"],
    ["credentials", { url: "https://me:secret@example.com/" }, "validation_failed"],
    ["loopback", { url: "https://127.0.0.1/" }, "validation_failed"],
    ["loopback, spelled otherwise", { url: "https://0x7f.1/" }, "validation_failed"],
    ["metadata", { url: "https://169.254.169.254/" }, "validation_failed"],
    ["a private range", { url: "https://10.1.2.3/" }, "validation_failed"],
    ["IPv6 loopback", { url: "https://[::1]/" }, "validation_failed"],
    ["an unknown event", { url, event_types: ["video.asset.exploded"] }, "validation_failed"],
    ["no list of events", { url, event_types: "video.asset.ready" }, "validation_failed"],
    ["a long description", { url, description: "x".repeat(1001) }, "validation_failed"],
  ])("refuses %s", async (about, body, code) => {
    expectError(await create(body), 422, code, about);
  });

  test("accepts plain http where the operator has allowed a range, and nowhere else", async () => {
    const open = await testApp({ webhook_allow_cidrs: "127.0.0.0/8" });
    const owned = await open.tenant();
    const at = (address: string) => open.as({ admin: open.admin }).createWebhook({ tenant_id: owned.id, url: address });
    expect((await at("http://127.0.0.1:9/hook")).status).toBe(201);
    expectError(await at("http://10.0.0.1/hook"), 422, "validation_failed");
    expectError(await at("http://93.184.215.14/hook"), 422, "validation_failed");
  });

  test("is limited to a hundred per tenant", async () => {
    const full = await app.key((await app.tenant()).id);
    const more = () => app.as(full).createWebhook({ url });
    for (let count = 0; count < 100; count++) expect((await more()).status).toBe(201);
    expectError(await more(), 422, "webhook_limit_reached");
    const [newest] = (await app.as(full).listWebhooks()).body;
    expect((await app.as(full).deleteWebhook(newest.id)).status).toBe(204);
    expect((await more()).status).toBe(201);
  });
});

describe("an endpoint", () => {
  test("can be paused and resumed", async () => {
    const { id } = (await create({ url })).body;
    const set = (body: unknown) => app.as(key).unchecked.setWebhookActive(id, body);
    expect((await set({ active: false })).body).toMatchObject({ id, active: false, disabled_at: null });
    expect((await set({ active: true })).body).toMatchObject({ id, active: true });
    expectError(await set({}), 422, "parameter_missing");
    expectError(await set({ active: "yes" }), 422, "parameter_missing");
  });

  test("is deleted with its deliveries, in slices", async () => {
    const { id } = (await create({ url })).body;
    for (let count = 0; count < 3; count++) await app.as(key).testWebhook(id);
    expect((await app.as(key).deleteWebhook(id)).status).toBe(204);
    for (const [method, at] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/deliveries"],
      ["POST", "/test"],
      ["POST", "/rotate_secret"],
    ] as const)
      expectError(await app.call(method, `${path}/${id}${at}`, { key }), 404, "not_found");
    await app.runTask("prune-deliveries");
    const { webhookDeliveries, webhookEndpoints } = await import("#storage/db/schema.ts");
    const { db } = app.opened.app;
    expect((await db.select().from(webhookEndpoints).all()).filter((row) => row.id === id)).toEqual([]);
    expect((await db.select().from(webhookDeliveries).all()).filter((row) => row.endpointId === id)).toEqual([]);
  });

  test("lists its deliveries in pages, by status and event", async () => {
    const { id } = (await create({ url, event_types: ["video.track.ready"] })).body;
    const sent = [];
    for (let count = 0; count < 3; count++) sent.push((await app.as(key).testWebhook(id)).body);
    const list = (query: string) => app.call("GET", `${path}/${id}/deliveries?${query}`, { key });
    expect(sent[0]).toEqual({
      id: sent[0]?.id,
      delivery_id: `whd_${sent[0]?.id}`,
      tenant_id: tenant.id,
      endpoint_id: id,
      event_id: expect.stringMatching(/^evt_/),
      event: "video.track.ready",
      status: "pending",
      attempts: 0,
      next_attempt_at: expect.any(String),
      last_attempt_at: null,
      delivered_at: null,
      response_status: null,
      response_body: null,
      duration_ms: null,
      error: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const first = await list("limit=2");
    expect(first.body).toEqual([sent[2], sent[1]]);
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] as string;
    expect((await app.call("GET", next, { key })).body).toEqual([sent[0]]);
    expect((await list("status=failed")).body).toEqual([]);
    expect((await list("status=pending&event=video.track.ready")).body).toHaveLength(3);
    expect((await list("event=video.asset.ready")).body).toEqual([]);
    for (const query of ["status=lost", "event=nothing", "limit=0", "cursor=x"])
      expectError(await list(query), 422, "validation_failed", query);
  });

  test("can have its own deliveries resent, and nothing else", async () => {
    const { id } = (await create({ url })).body;
    for (const ref of ["987654321", "whd_987654321", "whd_", "evt_x"])
      expectError(await app.as(key).resendDelivery(id, ref), 404, "not_found", ref);
  });

  test("that is paused receives no test either", async () => {
    const { id } = (await create({ url })).body;
    await app.as(key).setWebhookActive(id, { active: false });
    const sent = await app.as(key).testWebhook(id);
    expect([sent.status, sent.body.status]).toEqual([202, "skipped"]);
  });
});

describe("the operator", () => {
  const admin = (method: string, at: string, body?: unknown) =>
    app.call(method, `/api/v1/admin/webhooks/${at}`, { admin: app.admin, body });

  test("sees deliveries of all tenants, and replays by id, by event and by filter", async () => {
    const other = await app.tenant();
    const made = await app.as({ admin: app.admin }).createWebhook({ tenant_id: other.id, url });
    const sent = (await app.as({ admin: app.admin }).testWebhook(made.body.id)).body;
    const mine = `tenant_id=${other.id}&endpoint_id=${made.body.id}`;
    expect((await admin("GET", `deliveries?${mine}`)).body).toEqual([sent]);
    expect((await admin("GET", `deliveries?${mine}&status=failed`)).body).toEqual([]);
    expect((await admin("GET", `deliveries?${mine}&until=${sent.created_at}`)).body).toEqual([]);
    expect((await admin("GET", `deliveries?${mine}&since=${sent.created_at}`)).body).toHaveLength(1);

    const answer = (given: object) => ({ matched: 1, replayed: 1, paused: 0, unknown: [], last: null, ...given });
    for (const id of [sent.id, String(sent.id), sent.delivery_id, sent.event_id])
      expect((await admin("POST", "replay", { ids: [id] })).body).toEqual(answer({}));
    const unknown = ["whd_987654321", "evt_nothing"];
    const some = await admin("POST", "replay", { ids: [sent.id, ...unknown], dry_run: true });
    expect(some.body).toEqual(answer({ replayed: 0, unknown }));
    const filter = { tenant_id: other.id, status: "pending", event: sent.event };
    expect((await admin("POST", "replay", filter)).body).toEqual(answer({}));
    expect((await admin("POST", "replay", { ...filter, status: "failed" })).body).toEqual(
      answer({ matched: 0, replayed: 0 }),
    );
    await app.as({ admin: app.admin }).setWebhookActive(made.body.id, { active: false });
    expect((await admin("POST", "replay", filter)).body).toEqual(answer({ replayed: 0, paused: 1 }));
  });

  test("sends an event without subscribers to those who subscribe now", async () => {
    const other = await app.tenant();
    await app.newEvents();
    const theirs = await app.key(other.id);
    const initiated = await app.as(theirs).initiateUpload({ filename: "a.mp4", bytes_expected: 1 });
    await app.as(theirs).deleteAsset(initiated.body.asset_id);
    const made = await app.as(theirs).createWebhook({ url });
    const { events } = await import("#storage/db/schema.ts");
    const all = await app.opened.app.db.select().from(events).all();
    const event = all.findLast((each) => each.tenantId === other.id);
    const replayed = await admin("POST", "replay", { ids: [event?.eventId] });
    expect(replayed.body).toMatchObject({ matched: 1, replayed: 1 });
    const deliveries = await app.as(theirs).listDeliveries(made.body.id);
    expect(deliveries.body).toMatchObject([{ event_id: event?.eventId, event: "video.asset.deleted" }]);
  });

  test("must select what to replay", async () => {
    expectError(await admin("POST", "replay", {}), 422, "parameter_missing");
    for (const body of [
      { ids: [] },
      { ids: ["x"] },
      { ids: Array(101).fill(1) },
      { status: "lost" },
      { since: "soon" },
    ])
      expectError(await admin("POST", "replay", body), 422, "validation_failed", JSON.stringify(body).slice(0, 40));
  });
});

test("finished deliveries and events are deleted after 30 days, pending ones are not", async () => {
  const old = await testApp({ webhook_allow_cidrs: "127.0.0.0/8" });
  const owned = await old.tenant();
  const made = await old.as({ admin: old.admin }).createWebhook({ tenant_id: owned.id, url: "http://127.0.0.1:1/" });
  const send = async () => (await old.as({ admin: old.admin }).testWebhook(made.body.id)).body.id as number;
  await old.as({ admin: old.admin }).setWebhookActive(made.body.id, { active: false });
  await send();
  await old.as({ admin: old.admin }).setWebhookActive(made.body.id, { active: true });
  const pending = await send();
  old.advance(31 * 86_400_000);
  const fresh = await send();
  await old.runTask("prune-deliveries");
  const left = (await old.as({ admin: old.admin }).listDeliveries(made.body.id)).body;
  expect(left.map((each: { id: number }) => each.id)).toEqual([fresh, pending]);
  expect(await old.newEvents()).toHaveLength(2);
});

describe("a filter of deliveries that selects few of many", () => {
  /** All ids of a list, page by page. */
  async function idsOf(list: string): Promise<number[]> {
    const ids: number[] = [];
    for (let next: string | undefined = list; next; ) {
      const { status, body, headers, text } = await app.call("GET", next, { key });
      expect(status, text).toBe(200);
      ids.push(...body.map((one: { id: number }) => one.id));
      next = /<http:\/\/vodbox.test(.+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
    return ids;
  }
  let endpoint: number;
  let rows: { id: number; event_id: number; status: string; type: string }[];
  const ASSET = "987654321";

  beforeAll(async () => {
    endpoint = (await create({ url })).body.id;
    const other = (await create({ url })).body.id;
    const numbers = sql`with recursive n (i) as (values (1) union all select i + 1 from n where i < 1300)`;
    await app.opened.app.write(async (tx) => {
      await tx.run(sql`${numbers} insert into assets (id, tenant_id, external_id, title, input_status, playback_status,
          playback_policy, source_key, created_at, updated_at)
        select ${Number(ASSET)}, ${tenant.id}, 'vid_many', 't', 'pending', 'draft', 'public', 'k', 1, 1 from n where i = 1`);
      await tx.run(sql`${numbers} insert into events (event_id, tenant_id, type, data, created_at)
        select 'evt_many' || i, ${tenant.id}, iif(i % 202 = 1, 'video.asset.errored', 'video.asset.ready'),
          json_object('asset_id', ${ASSET}), 1 from n`);
      for (const id of [endpoint, other])
        await tx.run(sql`insert into webhook_deliveries (tenant_id, endpoint_id, event_id, status, created_at, updated_at)
          select tenant_id, ${id}, id, iif(id % 300 = 0, 'failed', 'delivered'), 1, 1 from events
          where event_id like 'evt_many%' and id % 5 <> 0 or event_id like 'evt_many%' and id % 300 = 0`);
    });
    rows = await app.opened.app.db.all(sql`
      select d.id, d.event_id, d.status, e.type from webhook_deliveries d join events e on e.id = d.event_id
      where d.endpoint_id = ${endpoint} order by d.id desc`);
    expect(rows.length).toBeGreaterThan(1000);
  });

  test.each(["", "&limit=3", "&limit=1"])("lists exactly these, newest first, in pages%s", async (page) => {
    const at = `${path}/${endpoint}/deliveries`;
    const errored = rows.filter(({ type }) => type === "video.asset.errored").map(({ id }) => id);
    const failed = rows.filter(({ status }) => status === "failed").map(({ id }) => id);
    expect([errored.length > 2, failed.length > 2]).toEqual([true, true]);
    expect(await idsOf(`${at}?event=video.asset.errored${page}`)).toEqual(errored);
    expect(await idsOf(`${at}?status=failed${page}`)).toEqual(failed);
    expect(await idsOf(`${at}?status=skipped${page}`)).toEqual([]);
    const ofAsset = await idsOf(`/api/v1/assets/${ASSET}/deliveries?status=failed${page}`);
    expect(ofAsset).toHaveLength(2 * failed.length);
    expect(ofAsset.filter((id) => failed.includes(id))).toEqual(failed);
  });

  test("is not needed to list all", async () => {
    expect(await idsOf(`${path}/${endpoint}/deliveries?limit=500`)).toEqual(rows.map(({ id }) => id));
    expect(new Set(await idsOf(`/api/v1/assets/${ASSET}/deliveries?limit=500`)).size).toBe(2 * rows.length);
  });
});
