import { sql } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { CallOptions } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { newFolder } from "#test/support/folder.ts";

const DAY_MS = 86_400_000;
const paths = { keys: "/api/v1/api_keys", uploads: "/api/v1/uploads/initiate" };
const upload = { filename: "a.mp4", bytes_expected: 3 };

async function withTenant(flags?: Record<string, unknown>, dataDir?: string) {
  const app = await testApp(flags, dataDir);
  const tenant = await app.tenant();
  return { app, tenant, key: await app.key(tenant.id) };
}
const post = (app: TestApp, path: string, idempotencyKey: string, options: CallOptions) =>
  app.call("POST", path, { ...options, headers: { "idempotency-key": idempotencyKey } });
const countOf = async (app: TestApp, path: string) =>
  (await app.call("GET", path, { admin: app.admin })).body.length as number;

describe("a repeat with its Idempotency-Key", () => {
  test("of a new API key returns the first response, without the token, and creates none", async () => {
    const { app, tenant } = await withTenant();
    const body = { tenant_id: tenant.id, name: "K" };
    const first = await post(app, paths.keys, "one", { admin: app.admin, body });
    expect(first.headers.has("idempotent-replayed")).toBe(false);
    const again = await post(app, paths.keys, "one", { admin: app.admin, body });
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    const { token, ...rest } = first.body;
    expect(token).toMatch(/^svc_/);
    expect(again.body).toEqual(rest);
    expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    expect(await countOf(app, paths.keys)).toBe(2);
  });

  test("of an upload returns the first response, with a working URL", async () => {
    const { app, key } = await withTenant();
    app.stopClock();
    const first = await post(app, paths.uploads, "one", { key, body: upload });
    const again = await post(app, paths.uploads, "one", { key, body: upload });
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(again.body).toEqual(first.body);
    expect((await app.call("PUT", again.body.upload_url, { raw: "abc" })).status).toBe(200);
    expect(await countOf(app, "/api/v1/assets")).toBe(1);
  });

  test.each([
    ["a tenant", "/api/v1/admin/tenants", { name: "Second", slug: "second" }, []],
    [
      "a user of the operator",
      "/api/v1/admin/users",
      { email_address: "a@example.com", password: "correct horse" },
      [],
    ],
    ["a person", "/api/v1/users", { email: "b@example.com", role: "editor", password: "correct horse" }, []],
    ["an invitation", "/api/v1/users/invitations", { email: "c@example.com", role: "editor" }, ["url"]],
  ])("of %s returns the first response, and changes nothing", async (_, path, fields, secrets) => {
    const { app, tenant } = await withTenant();
    const body = { tenant_id: tenant.id, ...fields };
    const first = await post(app, path, "one", { admin: app.admin, body });
    expect(first.status, first.text).toBe(201);
    const again = await post(app, path, "one", { admin: app.admin, body });
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(again.body).toEqual(
      Object.fromEntries(Object.entries(first.body).filter(([name]) => !secrets.includes(name as never))),
    );
    const other = { ...body, password: "another horse", name: "Other", email: "d@example.com" };
    expectError(await post(app, path, "one", { admin: app.admin, body: other }), 422, "idempotency_key_reused");
  });

  test("is possible wherever a POST creates something that lasts", async () => {
    const { app } = await withTenant();
    const without = app.opened.routes
      .filter(({ method, responses, idempotent, hidden }) => {
        const creates = method === "POST" && responses && 201 in responses && !hidden;
        return creates && !idempotent;
      })
      .map(({ operationId }) => operationId);
    // Tokens and signatures, which a repeat makes again; and what ends the one before it.
    const renewed = [
      "createChannelToken",
      "createPublishToken",
      "signBatchUploadPart",
      "createPairingCode",
      "createDeviceToken",
    ];
    const ends = ["createResetLink", "createRemovalHold"];
    // Before there is a caller; and orders, which always have a key and answer a repeat themselves.
    const other = ["createSession", "setUpServer", "acceptInvitation", "createOrder"];
    expect(without.filter((name) => ![...renewed, ...ends, ...other].includes(name ?? ""))).toEqual([]);
  });

  test("with another body, or on another route, is 422 and has no effect", async () => {
    const { app, key } = await withTenant();
    await post(app, paths.uploads, "one", { key, body: upload });
    const other = { ...upload, bytes_expected: 4 };
    expectError(await post(app, paths.uploads, "one", { key, body: other }), 422, "idempotency_key_reused");
    const other_route = { tenant_id: 1 };
    expectError(await post(app, paths.keys, "one", { key, body: other_route }), 422, "idempotency_key_reused");
    expect(await countOf(app, "/api/v1/assets")).toBe(1);
    expect((await post(app, paths.uploads, "two", { key, body: other })).status).toBe(201);
  });

  test("of another tenant is independent", async () => {
    const { app, key } = await withTenant();
    const otherKey = await app.key((await app.tenant()).id);
    const mine = await post(app, paths.uploads, "one", { key, body: upload });
    const theirs = await post(app, paths.uploads, "one", { key: otherKey, body: { ...upload, filename: "b.mp4" } });
    expect([mine.status, theirs.status]).toEqual([201, 201]);
    expect(theirs.body.id).not.toBe(mine.body.id);
  });

  test("is recognized for 24 hours, and no longer", async () => {
    const { app, key } = await withTenant();
    const first = await post(app, paths.uploads, "one", { key, body: upload });
    app.advance(DAY_MS - 60_000);
    await app.runTask("prune-answers");
    expect((await post(app, paths.uploads, "one", { key, body: upload })).body.id).toBe(first.body.id);
    app.advance(120_000);
    const fresh = await post(app, paths.uploads, "one", { key, body: { ...upload, filename: "other.mp4" } });
    expect(fresh.status).toBe(201);
    expect(fresh.body.id).not.toBe(first.body.id);
    expect(fresh.headers.has("idempotent-replayed")).toBe(false);
    app.advance(2 * DAY_MS);
    await app.runTask("prune-answers");
    expect((await post(app, paths.uploads, "one", { key, body: upload })).status).toBe(201);
  });

  test("survives a restart", async () => {
    const dataDir = newFolder();
    const { app, key } = await withTenant({}, dataDir);
    const first = await post(app, paths.uploads, "one", { key, body: upload });
    app.opened.beginStop();
    await app.opened.close();
    const later = await testApp({}, dataDir);
    const again = await post(later, paths.uploads, "one", { key, body: upload });
    expect([again.body.id, again.headers.get("idempotent-replayed")]).toEqual([first.body.id, "true"]);
    await later.close();
  });

  test("concurrent with the first creates one record", async () => {
    const { app, key } = await withTenant();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => post(app, paths.uploads, "one", { key, body: upload })),
    );
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.body.id}`)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get("idempotent-replayed") === "true")).toHaveLength(9);
    expect(await countOf(app, "/api/v1/assets")).toBe(1);
  });

  test("of a refused request is a new attempt", async () => {
    const { app, key } = await withTenant();
    expectError(await post(app, paths.uploads, "one", { key, body: {} }), 422, "parameter_missing");
    expect((await post(app, paths.uploads, "one", { key, body: upload })).status).toBe(201);
  });

  test("needs a key of 1 to 255 bytes", async () => {
    const { app, key } = await withTenant();
    expectError(await post(app, paths.uploads, "x".repeat(256), { key, body: upload }), 422, "validation_failed");
    expectError(await post(app, paths.uploads, "", { key, body: upload }), 422, "validation_failed");
    expect((await post(app, paths.uploads, "x".repeat(255), { key, body: upload })).status).toBe(201);
  });
});

describe("a list", () => {
  /** Follows `Link` to the end. */
  async function walk(app: TestApp, path: string, options: CallOptions): Promise<number[][]> {
    const pages: number[][] = [];
    for (let at: string | undefined = path; at; ) {
      const answer = await app.call("GET", at, options);
      expect(answer.status, at).toBe(200);
      pages.push(answer.body.map((row: { id: number }) => row.id));
      at = /^<(http:\/\/vodbox\.test\/[^>]+)>; rel="next"$/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    return pages;
  }

  test.for(["/api/v1/assets", "/api/v1/api_keys"])("%s is paged, newest first, each record once", async (path) => {
    const { app, tenant, key } = await withTenant({ rate_limit_uploads: "1000/60" });
    const other = await app.tenant();
    for (let i = 0; i < 7; i++) {
      for (const tenantId of [tenant.id, other.id])
        await app.call("POST", paths.uploads, { admin: app.admin, body: { ...upload, tenant_id: tenantId } });
      await app.key(tenant.id);
    }
    const [all = []] = await walk(app, path, { key });
    expect(all.length).toBeGreaterThanOrEqual(7);
    expect(all).toEqual(all.toSorted((a, b) => b - a));
    for (const limit of [1, 3, 7, 500]) {
      const pages = await walk(app, `${path}?limit=${limit}`, { key });
      expect(pages.flat(), `limit ${limit}`).toEqual(all);
      expect(pages.every((page) => page.length <= limit)).toBe(true);
      expect(pages).toHaveLength(Math.ceil(all.length / limit));
    }
    // An asset that is created between two pages moves none of the others.
    const first = await app.call("GET", `${path}?limit=2`, { key });
    await app.call("POST", paths.uploads, { key, body: upload });
    await app.key(tenant.id);
    const link = /^<([^>]+)>/.exec(first.headers.get("link") as string)?.[1] as string;
    expect((await walk(app, link, { key })).flat()).toEqual(all.slice(2));
    for (const query of [
      "limit=0",
      "limit=501",
      "limit=x",
      "limit=-1",
      "limit=1.5",
      "limit=",
      "cursor=x",
      "cursor=",
      "cursor=aWQ6eA",
    ])
      expectError(await app.call("GET", `${path}?${query}`, { key }), 422, "validation_failed", query);
  });

  test("of assets is filtered, and the filter applies to all pages", async () => {
    const { app, tenant, key } = await withTenant();
    for (const title of ["Red 100%", "red_car", "Blue", "rédd"])
      await app.call("POST", paths.uploads, {
        key,
        body: { ...upload, title, external_id: `x-${title.length}${title[0]}` },
      });
    const titles = async (query: string, options: CallOptions = { key }) =>
      (await app.call("GET", `/api/v1/assets?${query}`, options)).body.map((asset: { title: string }) => asset.title);
    expect(await titles("q=red")).toEqual(["red_car", "Red 100%"]);
    expect(await titles("q=0%25")).toEqual(["Red 100%"]);
    expect(await titles("q=d_c")).toEqual(["red_car"]);
    expect(await titles("q=%27%22%5C")).toEqual([]);
    expect(await titles("external_id=x-4B")).toEqual(["Blue"]);
    expect(await titles("playback_status=ready")).toEqual([]);
    expect(await titles("playback_status=draft&input_status=pending")).toHaveLength(4);
    expect(await titles("collection_id=1")).toEqual([]);
    expect(await titles(`tenant_id=${tenant.id}`, { admin: app.admin })).toHaveLength(4);
    expect(await titles("tenant_id=999", { admin: app.admin })).toEqual([]);
    const pages = await walk(app, "/api/v1/assets?q=red&limit=1", { key });
    expect(pages.map((page) => page.length)).toEqual([1, 1]);
    for (const query of ["playback_status=x", "input_status=ready", "collection_id=x", "tenant_id=x", "q=%00"])
      expectError(await app.call("GET", `/api/v1/assets?${query}`, { key }), 422, "validation_failed", query);
  });
});

test("uploads are limited per tenant, and the headers show the remaining quota", async () => {
  const { app, key } = await withTenant({ rate_limit_uploads: "3/60" });
  const ask = (as: string) => app.call("POST", paths.uploads, { key: as, body: upload });
  for (const left of [2, 1, 0]) {
    const answer = await ask(key);
    expect(answer.status).toBe(201);
    expect(answer.headers.get("ratelimit")).toMatch(new RegExp(`^"uploads";r=${left};t=([1-9]|[1-5]\\d|60)$`));
    expect(answer.headers.get("ratelimit-policy")).toBe('"uploads";q=3;w=60');
  }
  const refused = await ask(key);
  expectError(refused, 429, "rate_limited");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
  expect(refused.headers.get("ratelimit")).toMatch(/^"uploads";r=0;t=\d+$/);
  expect(refused.headers.get("ratelimit-policy")).toBe('"uploads";q=3;w=60');
  expect((await app.as(key).listAssets()).status).toBe(200);
  const other = await app.tenant();
  expect((await ask(await app.key(other.id))).status).toBe(201);
  const { status } = await app.call("POST", paths.uploads, {
    admin: app.admin,
    body: { ...upload, tenant_id: other.id },
  });
  expect(status).toBe(201);
});

describe("what is stored for repeats", () => {
  const LIMIT = 256 * 2 ** 20;
  const bytesOf = async ({ opened }: TestApp, tenantId: number) => {
    const [row] = await opened.app.db.all<{ counted: number; stored: number }>(sql`
      select idempotency_bytes as counted, (select coalesce(sum(octet_length(body)), 0) from idempotency_records
        where counted_for = ${tenantId}) as stored from tenants where id = ${tenantId}`);
    return row;
  };

  test("is counted for the tenant, also when a key is used again after a day, and until it is deleted", async () => {
    const { app, tenant, key } = await withTenant();
    const filename = `${"f".repeat(150)}.mp4`;
    await post(app, paths.uploads, "one", { key, body: upload });
    await post(app, paths.uploads, "two", { key, body: { ...upload, filename } });
    const before = await bytesOf(app, tenant.id);
    expect(before?.counted).toBeGreaterThan(500);
    expect(before?.counted).toBe(before?.stored);
    app.advance(25 * 3_600_000);
    await post(app, paths.uploads, "one", { key, body: { ...upload, filename } });
    const after = await bytesOf(app, tenant.id);
    expect(after?.counted).toBeGreaterThan(before?.counted ?? 0);
    expect(after?.counted).toBe(after?.stored);
    app.advance(25 * 3_600_000);
    await app.runTask("prune-answers");
    expect(await bytesOf(app, tenant.id)).toEqual({ counted: 0, stored: 0 });
  });

  test("has a limit, beyond which requests without the header, repeats and other tenants are still answered", async () => {
    const { app, tenant, key } = await withTenant();
    const other = await app.key((await app.tenant()).id);
    const first = await post(app, paths.uploads, "one", { key, body: upload });
    await app.opened.app.write((tx) =>
      tx.run(sql`update tenants set idempotency_bytes = ${LIMIT + 1} where id = ${tenant.id}`),
    );
    const refused = await post(app, paths.uploads, "two", { key, body: upload });
    expectError(refused, 429, "rate_limited");
    expect(refused.headers.get("retry-after")).toBe("3600");
    expect((await post(app, paths.uploads, "one", { key, body: upload })).body.id).toBe(first.body.id);
    expect((await app.call("POST", paths.uploads, { key, body: upload })).status).toBe(201);
    expect((await post(app, paths.uploads, "two", { key: other, body: upload })).status).toBe(201);
  });
});
