import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { afterEach, describe, expect, test } from "vitest";
import { dividedHalfUp } from "#platform/config/decimal.ts";
import { loadConfig } from "#platform/config/load.ts";
import { tenants } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";

let app: TestApp;
afterEach(() => app?.close());

const DAY = 86_400_000;
const monthStart = (time: number, months = 0) => {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months);
};
const named = (start: number) => new Date(start).toISOString().slice(0, 7);

/** Registers an asset of this size as a client does; returns its id. */
async function register(key: string, storageBytes: number, fields: object = {}): Promise<number> {
  const video_asset = {
    title: "Held",
    input_status: "uploaded",
    playback_status: "ready",
    source_bytes: 0,
    storage_bytes: storageBytes,
    duration_seconds: 1,
    source_key: "",
    provider: "external_serve",
    manifest_url: "https://cdn.example.com/master.m3u8",
    ...fields,
  };
  const tenant = (await app.as(key).listTenants()).body[0].id;
  const made = await app.as(key).createAsset({
    tenant_id: tenant,
    video_asset: { ...video_asset, source_key: `tenants/${tenant}/sources/held.mp4` },
  });
  expect(made.status, made.text).toBe(201);
  return made.body.asset.id;
}

test("storage, egress and transcoding of three months match a manual count", async () => {
  app = await testApp();
  const { app: running, egress } = app.opened;
  const { clock, db } = running;
  const tenant = await app.tenant({ plan_name: "starter" });
  const other = await app.tenant();
  const key = await app.key(tenant.id);
  const otherKey = await app.key(other.id);
  const first = monthStart(clock.now(), 1);
  app.advance(first - clock.now() + 3 * DAY);

  // The expected value: bytes stored since each change. The row has its time, to the millisecond.
  const changes: { at: number; bytes: number }[] = [];
  let held = 0;
  const changed = async (by: number) => {
    held += by;
    const row = await db.select().from(tenants).where(eq(tenants.id, tenant.id)).get();
    changes.push({ at: row?.storageChangedAt ?? Number.NaN, bytes: held });
  };
  const sent = new Map<number, number>();
  const send = (bytes: number) => {
    const month = monthStart(clock.now());
    sent.set(month, (sent.get(month) ?? 0) + bytes);
    egress.add(tenant.id, bytes);
    egress.add(other.id, 7);
  };
  await register(otherKey, 1_000_000);

  const big = await register(key, 3_000_000_000_000);
  await changed(3_000_000_000_000);
  send(1_500_000_000_001);
  app.advance(10 * DAY);
  await register(key, 999_999_999);
  await changed(999_999_999);
  // Sent before midnight, recorded after it.
  app.advance(monthStart(first, 1) - clock.now() - 2000);
  send(1_000_000_000_000);
  app.advance(4000);
  send(5);
  await app.runTask("count-egress");
  app.advance(20 * DAY);
  // Across the end of a month, without requests.
  app.advance(20 * DAY);
  expect((await app.as(key).deleteAsset(big)).status).toBe(204);
  await changed(-3_000_000_000_000);
  send(42);
  await app.runTask("count-egress");
  app.advance(monthStart(first, 3) - clock.now() + DAY);

  const months = [first, monthStart(first, 1), monthStart(first, 2)];
  for (const [index, month] of months.entries()) {
    const end = months[index + 1] ?? monthStart(first, 3);
    let byteMs = 0n;
    for (const [at, change] of changes.entries()) {
      const from = Math.max(change.at, month);
      const to = Math.min(changes[at + 1]?.at ?? clock.now(), end);
      if (to > from) byteMs += BigInt(change.bytes) * BigInt(to - from);
    }
    const answer = await app.as(key).getBillingEstimate({ month: named(month) });
    const [storage, out] = answer.body.line_items;
    const heldBytes = Number(dividedHalfUp(byteMs, BigInt(end - month)));
    expect(Math.round(storage.quantity * 1e9), named(month)).toBe(heldBytes);
    expect(Math.round(out.quantity * 1e9), named(month)).toBe(sent.get(month) ?? 0);
    // Starter: 100 GB-months and 500 GB are included, then 2.5 and 2 cents.
    const cents = (units: number, included: number, price: number) =>
      Math.floor(Math.max(0, units / 1e9 - included) * price + 0.5);
    expect(storage.amount_minor, named(month)).toBe(cents(heldBytes, 100, 2.5));
    expect(out.amount_minor, named(month)).toBe(cents(sent.get(month) ?? 0, 500, 2));
    expect(answer.body.total_minor).toBe(storage.amount_minor + out.amount_minor);
  }
  expect(sent.get(first)).toBe(2_500_000_000_001);

  const [row] = (await app.as(key).listTenants()).body;
  expect(row.storage_bytes).toBe(held);
  expect(row.egress_bytes).toBe([...sent.values()].reduce((sum, bytes) => sum + bytes, 0));
});

test("the estimate has the specified shape, and the summary a row for every accessible tenant", async () => {
  app = await testApp();
  const mine = await app.tenant({ plan_name: "free" });
  const other = await app.tenant();
  await app.as({ admin: app.admin }).updateTenant(mine.id, { plan_name: "pro" });
  const key = await app.key(mine.id, ["billing:write"]);
  const start = monthStart(app.opened.app.clock.now());
  const period = {
    period_start: new Date(start).toISOString(),
    period_end: new Date(monthStart(start, 1)).toISOString(),
  };
  const zero = { quantity: 0, billable_quantity: 0, amount_minor: 0 };
  const estimate = {
    tenant_id: mine.id,
    plan_name: "pro",
    currency: "USD",
    ...period,
    estimated: true,
    line_items: [
      { meter: "storage_bytes", unit: "gb_month", ...zero, included_quantity: 1000, unit_price_minor: 2 },
      { meter: "egress_bytes", unit: "gb", ...zero, included_quantity: 5000, unit_price_minor: 1.5 },
      { meter: "transcoding_minutes", unit: "minute", ...zero, included_quantity: 5000, unit_price_minor: 1 },
    ],
    total_minor: 0,
  };
  const answer = await app.as(key).getBillingEstimate();
  expect(answer.body).toEqual(estimate);
  expect(answer.headers.get("ratelimit-policy")).toBe('"billing";q=30;w=60');
  const asAdmin = await app.as({ admin: app.admin }).getBillingEstimate({ tenant_id: mine.id });
  expect(asAdmin.body).toEqual(estimate);

  const summary = await app.as(key).getUsage();
  const counters = { storage_bytes: 0, egress_bytes: 0, transcoding_minutes: 0, live_minutes: 0 };
  expect(summary.body).toEqual([
    { tenant_id: mine.id, tenant: mine.slug, plan_name: "pro", ...period, ...counters, estimate },
  ]);
  const [page, rest] = await (async () => {
    const one = await app.as({ admin: app.admin }).getUsage({ limit: 1 });
    const next = /<([^>]+)>/.exec(one.headers.get("link") ?? "")?.[1] ?? "";
    return [one, await app.call("GET", next.replace("http://vodbox.test", ""), { admin: app.admin })];
  })();
  expect([...page.body, ...rest.body].map(({ tenant_id }: { tenant_id: number }) => tenant_id)).toEqual([
    mine.id,
    other.id,
  ]);

  const refused: [string, object, number, string][] = [
    ["/billing/estimate", { admin: app.admin }, 422, "parameter_missing"],
    ["/billing/estimate?tenant_id=99", { admin: app.admin }, 404, "not_found"],
    [`/billing/estimate?tenant_id=${other.id}`, { key }, 404, "not_found"],
    [`/billing/estimate?month=${named(monthStart(start, 1))}`, { key }, 422, "validation_failed"],
    ["/billing/estimate?month=2026-13", { key }, 422, "validation_failed"],
    ["/billing/estimate?month=1969-12", { key }, 422, "validation_failed"],
    ["/usage/summary?month=November", { key }, 422, "validation_failed"],
    ["/usage/summary?cursor=x", { key }, 422, "validation_failed"],
    ["/usage/summary", { key: await app.key(mine.id, ["assets:write"]) }, 403, "forbidden_scope"],
  ];
  for (const [path, credential, status, code] of refused)
    expectError(await app.call("GET", `/api/v1${path}`, credential), status, code, path);
  for (const month of ["", "2026-13", "1969-12"])
    expect((await app.as(key).getUsage({ month })).error.details).toEqual({
      month: ["must be a month such as 2026-11"],
    });
  expect((await app.as(key).getUsage({ tenant_id: other.id })).body).toEqual([]);
});

test("billing calls are limited for each tenant", async () => {
  app = await testApp({ rate_limit_billing: "2/60" });
  const key = await app.key((await app.tenant()).id);
  for (const path of ["/billing/estimate", "/usage/summary"])
    expect((await app.call("GET", `/api/v1${path}`, { key })).status).toBe(200);
  const headers = { "idempotency-key": "once" };
  const body = { plan_name: "starter" };
  expectError(await app.as({ key, headers }).createOrder(body), 429, "rate_limited");
});

test("quotas of a plan refuse what would exceed them, and leave nothing behind", async () => {
  app = await testApp({
    prices: JSON.stringify({
      currency: "EUR",
      plans: Object.fromEntries(
        ["free", "starter", "pro", "enterprise"].map((plan) => [
          plan,
          {
            monthly_price_minor: 100,
            storage_gb_month: { included: 0, unit_price_minor: 0.5 },
            egress_gb: { included: 0, unit_price_minor: 1 },
            transcoding_minute: { included: 0, unit_price_minor: 1 },
            quotas: plan === "starter" ? { storage_bytes: 10, transcoding_minutes: 1 } : {},
          },
        ]),
      ),
    }),
  });
  const tenant = await app.tenant({ plan_name: "starter" });
  const key = await app.key(tenant.id);
  const begin = (bytes_expected: number, way = "initiate") =>
    app.call("POST", `/api/v1/uploads/${way}`, { key, body: { filename: "a.mp4", bytes_expected } });
  // Both began on a larger plan; the second to end exceeds the smaller one.
  await app.plan(tenant.id, "pro");
  const one = await begin(6);
  const two = await begin(6);
  await app.plan(tenant.id, "starter");
  for (const each of [one, two]) {
    expect(each.status, each.text).toBe(201);
    await app.call("PUT", each.body.upload_url, { raw: "abcdef" });
  }
  const complete = (id: number) => app.as(key).completeUpload(id, { bytes_received: 6 });
  const ends = await Promise.all([complete(one.body.id), complete(two.body.id)]);
  expect(ends.map(({ status }) => status).sort()).toEqual([200, 403]);
  const [refused] = ends.filter(({ status }) => status === 403);
  expectError(refused as (typeof ends)[0], 403, "quota_exceeded");
  expect(refused?.error.error).toMatch(/starter plan includes 10 bytes; 6 are used/);
  expect((await app.newEvents()).map(({ type }) => type)).toEqual(["video.upload.completed", "video.job.queued"]);
  expectError(await begin(5), 403, "quota_exceeded");
  expectError(await begin(5, "initiate_multipart"), 403, "quota_exceeded");
  const before = (await app.as(key).listAssets()).body.length;
  const direct = await app.as(key).createAsset({
    tenant_id: tenant.id,
    video_asset: {
      title: "Too much",
      input_status: "uploaded",
      playback_status: "draft",
      source_bytes: 5,
      storage_bytes: 5,
      duration_seconds: 1,
      source_key: `tenants/${tenant.id}/sources/x.mp4`,
    },
  });
  expectError(direct, 403, "quota_exceeded");
  const batch = await app.as(key).createBatch({});
  const wish = { object_key: "a.m4s", bytes_expected: 5, content_type: "video/iso.segment" };
  const batchUpload = await app.as(key).createBatchUpload(batch.body.id, wish);
  expectError(batchUpload, 403, "quota_exceeded");
  expect((await app.as(key).listAssets()).body.length).toBe(before);

  // With another plan, the same upload succeeds.
  await app.plan(tenant.id, "pro");
  const left = ends[0]?.status === 403 ? one : two;
  expect((await complete(left.body.id)).status).toBe(200);
});

test("a batch that exceeds the plan's bytes is not committed, and can be when the quota allows it", async () => {
  app = await testApp();
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  await app.plan(tenant.id, "free");
  const batch = await leased(app, key);
  await batch.putAll(tiny());
  const large = await register(key, 4_999_999_999);
  const commit = () => batch.commit({ assets: [tinyAsset()] });
  await app.newEvents();
  expectError(await commit(), 403, "quota_exceeded");
  expect((await app.as(key).listAssets()).body).toHaveLength(1);
  expect(await app.newEvents()).toEqual([]);
  const headers = { "tus-resumable": "1.0.0", "upload-length": "5" };
  expectError(await app.call("POST", "/api/v1/uploads/tus", { key, headers }), 403, "quota_exceeded");
  await app.as(key).deleteAsset(large);
  expect((await commit()).status).toBe(200);
});

test("minutes are those of the transcoded sources, once per job, in the month when it ended", async () => {
  app = await testApp({ max_attempts: 3 });
  const tenant = await app.tenant({ plan_name: "pro" });
  const key = await app.key(tenant.id);
  const minutes = async (month?: number) => {
    const [row] = (await app.call("GET", `/api/v1/usage/summary${month ? `?month=${named(month)}` : ""}`, { key }))
      .body;
    return row.transcoding_minutes;
  };
  const { clock } = app.opened.app;
  app.advance(monthStart(clock.now(), 1) - clock.now() + DAY);
  const start = monthStart(clock.now());
  const finish = async (contract: unknown, seconds: number) => {
    const media = { duration_seconds: seconds, width: 640, height: 360, frame_rate: 30, renditions: [] };
    return { ...(await putArtifacts(app, contract)), media };
  };

  // A failed attempt costs nothing, and a repeated completion counts once.
  const first = await uploaded(app, key);
  const failed = (await next(app)).body;
  await callback(app, failed, "fail", { code: "disk", message: "full", retryable: true });
  app.advance(3_600_000);
  const contract = (await next(app)).body;
  const result = await finish(contract, 3000.5);
  for (const _ of [1, 2]) expect((await callback(app, contract, "complete", result)).status).toBe(200);
  expect(await minutes()).toBe(51);

  // The next month has its own sixty minutes.
  await app.plan(tenant.id, "free");
  const second = await uploaded(app, key);
  const other = (await next(app)).body;
  expect((await callback(app, other, "complete", await finish(other, 600))).status).toBe(200);
  expect(await minutes()).toBe(61);
  const full = await app.as(key).initiateUpload({ filename: "a", bytes_expected: 1 });
  expectError(full, 403, "quota_exceeded");
  expect(full.error.error).toMatch(/60 transcoding minutes per month; 61 are used/);
  app.advance(monthStart(start, 1) - clock.now() + DAY);
  expect([await minutes(), await minutes(start)]).toEqual([0, 61]);
  await uploaded(app, key);

  // Deletion does not reduce past usage.
  for (const { asset } of [first, second]) await app.as(key).deleteAsset(asset.id);
  expect(await minutes(start)).toBe(61);
});

describe("a price sheet", () => {
  const meter = { included: 0.5, unit_price_minor: 0.000001 };
  const plan = { storage_gb_month: meter, egress_gb: meter, transcoding_minute: meter };
  const none = { storage_bytes: null, transcoding_minutes: null, live_streams: null, live_bitrate: null };
  const sheet = { currency: "JPY", plans: { free: plan, starter: plan, pro: plan, enterprise: plan } };
  const read = { ...plan, live_minute: null, monthly_price_minor: null, quotas: none };
  const load = (files: Record<string, string>, env: Record<string, string> = {}) => {
    const cwd = emptyFolder();
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
    return loadConfig({ cwd, env });
  };
  const toml = (head: string) =>
    [`${head}currency = "JPY"`]
      .concat(
        ["free", "starter", "pro", "enterprise"].map(
          (name) =>
            `${head ? `prices.` : ""}plans.${name} = { ${Object.keys(plan)
              .map((each) => `${each} = { included = 0.5, unit_price_minor = 0.000001 }`)
              .join(", ")}, quotas = { storage_bytes = 7 } }`,
        ),
      )
      .join("\n");

  test("may be JSON, a file of JSON or TOML, or a table of the configuration file", () => {
    expect(load({}).prices).toBeUndefined();
    for (const [files, env] of [
      [{}, { VODBOX_PRICES: JSON.stringify(sheet) }],
      [{ "prices.json": JSON.stringify(sheet) }, { VODBOX_PRICES: "prices.json" }],
      [{ "vodbox.json": JSON.stringify({ prices: sheet }) }, {}],
    ] as const)
      expect(load(files, env).prices?.plans.pro).toEqual(read);
    for (const [files, env] of [
      [{ "prices.toml": toml("") }, { VODBOX_PRICES: "prices.toml" }],
      [{ "vodbox.toml": toml("prices.") }, {}],
    ] as const)
      expect(load(files, env).prices?.plans.free.quotas).toEqual({ ...none, storage_bytes: 7 });
  });

  test("with faults is refused with all of them", () => {
    const faulty = JSON.parse(JSON.stringify(sheet));
    faulty.currency = "euro";
    faulty.plans.pro.egress_gb = { included: -1, unit_price_minor: 0.0000001, extra: 1 };
    faulty.plans.free = { ...plan, quotas: { storage_bytes: 1.5 }, monthly_price_minor: "9" };
    delete faulty.plans.starter.transcoding_minute;
    delete faulty.plans.enterprise;
    const told = (value: unknown) => {
      try {
        load({}, { VODBOX_PRICES: typeof value === "string" ? value : JSON.stringify(value) });
      } catch (error) {
        return (error as Error).message;
      }
      return "";
    };
    const message = told(faulty);
    for (const field of [
      "currency must be an ISO 4217 currency code",
      "plans.pro.egress_gb.included must be a decimal",
      "plans.pro.egress_gb.unit_price_minor must be a decimal",
      "plans.pro.egress_gb.extra is unknown",
      "plans.free.quotas.storage_bytes must be a whole number",
      "plans.free.monthly_price_minor must be a whole number",
      "plans.starter.transcoding_minute is missing",
      "plans.enterprise is missing",
    ])
      expect.soft(message).toContain(field);
    expect(told("{")).toMatch(/VODBOX_PRICES cannot be read/);
    expect(told("nowhere.json")).toMatch(/VODBOX_PRICES names a file that does not exist/);
    expect(told("[1]")).toMatch(/VODBOX_PRICES names a file that does not exist/);
  });
});
