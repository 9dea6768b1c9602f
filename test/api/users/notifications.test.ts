import { sql } from "drizzle-orm";
import { afterEach, expect, test } from "vitest";
import { DEFAULT_PRICES } from "#platform/config/prices.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, contractOf, uploaded } from "#test/support/flow.ts";
import { receiver, status } from "#test/support/receiver.ts";
import { signIn, withSession } from "#test/support/sessions.ts";
import { startSmtp } from "#test/support/smtp.ts";
import { typedClient } from "#test/support/typed-client.ts";

const PASSWORD = "correct horse";
const path = "/api/v1/me/notifications";
const settingsPath = "/api/v1/me/notification_settings";
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function start(settings: Record<string, unknown> = {}) {
  const app = await testApp({
    rate_limit_session: "1000/60",
    rate_limit_uploads: "1000/60",
    webhook_allow_cidrs: "127.0.0.0/8",
    ...settings,
  });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  // The plan with quotas.
  const body = { plan_name: "free" };
  await app.as({ admin: app.admin }).updateTenant(tenant.id, body);
  return { app, tenant, key };
}
let people = 0;
async function person(app: TestApp, tenant_id: number, role: string) {
  const email = `person${++people}@example.com`;
  const body = { tenant_id, email, role, password: PASSWORD };
  expect((await app.as({ admin: app.admin }).createTenantUser(body)).status).toBe(201);
  const call = withSession(app, await signIn(app, { email, password: PASSWORD }));
  const list = async (query = "") => (await call("GET", path + query)).body;
  const unread = async () => (await call("GET", `${path}/unread`)).body.count;
  return { email, call, me: typedClient(call)(), list, unread };
}
async function failedEncode(app: TestApp, key: string, title: string) {
  const { asset, job } = await uploaded(app, key, { title });
  const contract = await contractOf(app, job.id);
  const fail = () => callback(app, contract, "fail", { retryable: false });
  expect((await fail()).status).toBe(200);
  // The worker did not receive the response.
  await fail();
  return asset;
}
async function disabledEndpoint(app: TestApp, key: string) {
  const there = await receiver();
  there.behave(status(410));
  const { id } = (await app.as(key).createWebhook({ url: `${there.url}?secret=1` })).body;
  await app.as(key).testWebhook(id);
  await app.runTask("deliver-webhooks");
  return id;
}
const use = (app: TestApp, tenantId: number, bytes: number) =>
  app.opened.app.write((tx) => tx.run(sql`update tenants set storage_bytes = ${bytes} where id = ${tenantId}`));

test("each occurrence is notified once, to the roles that may know of it", async () => {
  const { app, tenant, key } = await start();
  const admin = await person(app, tenant.id, "admin");
  const editor = await person(app, tenant.id, "editor");
  const viewer = await person(app, tenant.id, "viewer");
  const stranger = await person(app, (await app.tenant({ slug: "other" })).id, "admin");
  const asset = await failedEncode(app, key, "Broken film");
  const endpoint = await disabledEndpoint(app, key);
  const quotas = async () => {
    await app.runTask("notify-of-quotas");
    return (await admin.list()).filter(({ kind }: any) => kind === "quota").map(({ data }: any) => data.percent);
  };
  await use(app, tenant.id, 3_900_000_000);
  expect(await quotas()).toEqual([]);
  await use(app, tenant.id, 4_000_000_000);
  for (let round = 0; round < 2; round++) expect(await quotas()).toEqual([80]);
  await use(app, tenant.id, 6_000_000_000);
  for (let round = 0; round < 2; round++) expect(await quotas()).toEqual([100, 80]);
  const all = await admin.list();
  expect(all.map(({ kind, data, is_read }: any) => [kind, data, is_read])).toEqual([
    ["quota", { resource: "storage", percent: 100 }, false],
    ["quota", { resource: "storage", percent: 80 }, false],
    ["webhook_disabled", { endpoint_id: endpoint, url: expect.not.stringContaining("secret"), reason: "gone" }, false],
    [
      "encode_failed",
      { asset_id: asset.id, title: "Broken film", code: "transcoding_failed", detail: "Transcoding failed." },
      false,
    ],
  ]);
  for (const { list, unread } of [editor, viewer]) {
    expect((await list()).map(({ kind }: any) => kind)).toEqual(["encode_failed"]);
    expect(await unread()).toBe(1);
  }
  expect(await stranger.list()).toEqual([]);
  // Who comes later has nothing to catch up on.
  app.advance(1000);
  const late = await person(app, tenant.id, "admin");
  expect([(await late.list()).length, await late.unread()]).toEqual([4, 0]);
});

test("an encode that is retried and fails again is another occurrence", async () => {
  const { app, tenant, key } = await start();
  const admin = await person(app, tenant.id, "admin");
  const { asset, job } = await uploaded(app, key, { title: "Broken film" });
  for (const count of [1, 2]) {
    const contract = await contractOf(app, job.id);
    expect((await callback(app, contract, "fail", { retryable: false })).status).toBe(200);
    expect((await admin.list()).map(({ data }: any) => data.asset_id)).toEqual(Array(count).fill(asset.id));
    app.advance(1000);
    await app.as({ admin: app.admin }).retryJob(job.id);
  }
});

test("they are marked as read by each user alone, and listed in pages", async () => {
  const { app, tenant, key } = await start();
  const ann = await person(app, tenant.id, "admin");
  const bob = await person(app, tenant.id, "viewer");
  for (const title of ["One", "Two", "Three"]) await failedEncode(app, key, title);
  const [newest] = await ann.list();
  const read = (body: unknown, call = ann.call) => call("POST", `${path}/read`, { body });
  expect((await read({ ids: [newest.id, 999_999] })).status).toBe(204);
  expect([await ann.unread(), await bob.unread()]).toEqual([2, 3]);
  expect((await ann.list("?unread=true")).map(({ data }: any) => data.title)).toEqual(["Two", "One"]);
  const first = await ann.me.listMyNotifications({ limit: 2 });
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
  expect((await ann.call("GET", next)).body.map(({ data }: any) => data.title)).toEqual(["One"]);
  for (let round = 0; round < 2; round++) expect((await read({}, bob.call)).status).toBe(204);
  expect([await ann.unread(), await bob.unread()]).toEqual([2, 0]);
  expectError(await read({ ids: ["1"] }), 422, "validation_failed");
  expectError(await read({ ids: Array.from({ length: 201 }, (_, index) => index + 1) }), 422, "validation_failed");
  expectError(await app.as(key).listMyNotifications(), 401, "unauthorized");
});

test("only the newest are kept, and those of quotas are not repeated", async () => {
  const { app, tenant, key } = await start();
  const { list, unread } = await person(app, tenant.id, "admin");
  await use(app, tenant.id, 5_000_000_000);
  await app.runTask("notify-of-quotas");
  await use(app, tenant.id, 0);
  await app.opened.app.write((tx) =>
    tx.run(sql`insert into notifications (tenant_id, kind, occurrence, data, created_at)
      select ${tenant.id}, 'encode_failed', value, '{}', ${app.opened.app.clock.now()}
      from json_each(${JSON.stringify(Array.from({ length: 300 }, (_, index) => index))})`),
  );
  await failedEncode(app, key, "Last");
  const all = await list();
  expect(all).toHaveLength(201);
  expect([all[0].data.title, all.at(-1).kind, await unread()]).toEqual(["Last", "quota", 201]);
  await use(app, tenant.id, 5_000_000_000);
  await app.runTask("notify-of-quotas");
  expect(await list()).toHaveLength(201);
});

test("another plan of the same month has its own thresholds", async () => {
  const { plans, ...prices } = DEFAULT_PRICES;
  const pro = { ...plans.pro, quotas: { ...plans.pro.quotas, storage_bytes: 100_000_000_000 } };
  const { app, tenant } = await start({ prices: JSON.stringify({ ...prices, plans: { ...plans, pro } }) });
  const { list } = await person(app, tenant.id, "admin");
  for (const [plan, bytes] of [
    ["free", 4_500_000_000],
    ["pro", 90_000_000_000],
  ] as const) {
    await app.plan(tenant.id, plan);
    await use(app, tenant.id, bytes);
    for (let round = 0; round < 2; round++) await app.runTask("notify-of-quotas");
  }
  expect((await list()).map(({ data }: any) => data.percent)).toEqual([80, 80]);
});

test("each user chooses the kinds in the console and by mail", async () => {
  const smtp = await startSmtp();
  const { app, tenant, key } = await start({ smtp_url: smtp.url, smtp_from: "Films <films@example.com>" });
  open.push(app, smtp);
  const admin = await person(app, tenant.id, "admin");
  const viewer = await person(app, tenant.id, "viewer");
  const settings = await viewer.me.getMyNotificationSettings();
  const usual = { console: true, mail: false };
  expect(settings.body).toEqual({
    mail_available: true,
    kinds: { encode_failed: usual, live_signal_lost: usual },
  });
  const choose = (call: typeof admin.call, body: unknown) => call("PATCH", settingsPath, { body });
  const chosen = await choose(admin.call, { encode_failed: { console: false, mail: true }, quota: { mail: true } });
  expect(chosen.body.kinds).toMatchObject({ encode_failed: { console: false, mail: true }, quota: { console: true } });
  // Choosing a kind does not show it to a role that may not know of it.
  await choose(viewer.call, { quota: { mail: true, console: true } });
  await admin.me.updateMe({ language: "de" });
  await failedEncode(app, key, "Broken\r\nBcc: evil@example.com");
  await use(app, tenant.id, 5_000_000_000);
  await app.runTask("notify-of-quotas");
  await app.runTask("send-mail");
  expect(smtp.mails.map(({ to }) => to)).toEqual([[admin.email], [admin.email]]);
  expect(smtp.mails.filter(({ text }) => /^bcc:/im.test(text))).toEqual([]);
  expect((await admin.list()).map(({ kind }: any) => kind)).toEqual(["quota"]);
  expect((await viewer.list()).map(({ kind }: any) => kind)).toEqual(["encode_failed"]);
  expectError(await choose(admin.call, { quota: { mail: "yes" } }), 422, "validation_failed");
  expectError(await choose(admin.call, { quota: 5 }), 422, "validation_failed");
});
