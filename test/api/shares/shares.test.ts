import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { shareOf, viewer } from "#test/support/shares.ts";

let app: TestApp;
let tenant: { id: number; slug: string };
let key: string;
let asset: { id: number; external_id: string };
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  ({ asset } = await readyAsset(app, key, { title: "Secret film" }));
});
const HOUR = 3_600_000;
const list = () => `/api/v1/assets/${asset.id}/shares`;
const at = ({ id }: { id: number }) => `${list()}/${id}`;
const share = (fields?: Record<string, unknown>) => shareOf(app, key, asset.id, fields);
const patch = (which: { id: number }, body: unknown) => app.as(key).unchecked.updateShare(asset.id, which.id, body);
const fromNow = (ms: number) => new Date(app.opened.app.clock.now() + ms).toISOString();

describe("a share", () => {
  test("has two pages, and shows all of itself but the password", async () => {
    const made = await share();
    expect(made).toEqual({
      id: expect.any(Number),
      tenant_id: tenant.id,
      asset_id: asset.id,
      name: null,
      url: expect.stringMatching(/^http:\/\/vodbox\.test\/s\/[A-Za-z0-9]{22}$/),
      embed_url: made.url.replace("/s/", "/embed/s/"),
      status: "active",
      has_password: false,
      expires_at: null,
      max_plays: null,
      play_count: 0,
      allow_download: false,
      created_at: expect.any(String),
      updated_at: made.created_at,
    });
    const fields = { name: "For Ann", expires_at: fromNow(HOUR), max_plays: 3, allow_download: true };
    const whole = await share({ ...fields, password: "open sesame" });
    expect(whole).toMatchObject({ ...fields, has_password: true });
    expect(whole.url).not.toBe(made.url);
    expect((await app.as(key).getShare(asset.id, whole.id)).body).toEqual(whole);
    expect((await app.as(key).listShares(asset.id)).body).toEqual([whole, made]);
    const rows = JSON.stringify(await app.opened.app.db.all("SELECT * FROM shares"));
    expect(rows).not.toContain("sesame");
    expect(rows).toContain("scrypt$");
  });

  test("is listed in pages", async () => {
    const ids: number[] = [];
    for (let n = 0; n < 5; n++) ids.unshift((await share({ name: `${n}` })).id);
    const seen: number[] = [];
    let pages = 0;
    for (let next: string | undefined = `${list()}?limit=2`; next; pages++) {
      const answer = await app.call("GET", next, { key });
      seen.push(...answer.body.map(({ id }: { id: number }) => id));
      next = /<([^>]+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    expect([seen, pages]).toEqual([ids, 3]);
    expectError(await app.as(key).listShares(asset.id, { cursor: "x" }), 422, "validation_failed");
  });

  test("can be changed in every field, and a password removed", async () => {
    const made = await share({ name: "A", password: "one", max_plays: 1, expires_at: fromNow(HOUR) });
    const changed = { name: "B", max_plays: 7, allow_download: true, expires_at: fromNow(2 * HOUR) };
    expect((await patch(made, changed)).body).toMatchObject({ ...made, ...changed, updated_at: expect.any(String) });
    const none = { name: null, max_plays: null, allow_download: false, expires_at: null };
    expect((await patch(made, { ...none, password: null })).body).toMatchObject({ ...none, has_password: false });
    expect((await viewer(app).open(made.url)).text).toContain("Secret film");
    expect((await patch(made, { password: "two" })).body).toMatchObject({ ...none, has_password: true });
    expect((await viewer(app).open(made.url)).text).not.toContain("Secret film");
  });

  test("refuses values that are not valid, when it is created and later", async () => {
    const made = await share({ name: "kept" });
    for (const [field, value] of [
      ["name", ""],
      ["name", "x".repeat(201)],
      ["name", "two\nlines"],
      ["name", "\u202egpj.exe"],
      ["name", 5],
      ["password", ""],
      ["password", "x".repeat(1025)],
      ["password", 12345678],
      ["expires_at", "tomorrow"],
      ["expires_at", "2020-01-01T00:00:00Z"],
      ["expires_at", 5],
      ["max_plays", 0],
      ["max_plays", 1.5],
      ["max_plays", "3"],
      ["max_plays", 1e12],
      ["allow_download", "yes"],
      ["allow_download", null],
    ] as const) {
      for (const answer of [
        await app.as(key).createShare(asset.id, { [field]: value }),
        await patch(made, { [field]: value }),
      ]) {
        expect(answer.status, `${field} ${answer.text}`).toBe(422);
        expect(Object.keys(answer.error.details)).toEqual([field]);
      }
    }
    expect((await app.as(key).listShares(asset.id)).body).toEqual([made]);
  });

  test("may keep a time that has passed when another field is changed", async () => {
    const made = await share({ expires_at: fromNow(HOUR) });
    app.advance(2 * HOUR);
    const { body } = await patch(made, { name: "late", expires_at: made.expires_at });
    expect(body).toMatchObject({ name: "late", status: "expired" });
    expect((await patch(made, { expires_at: fromNow(HOUR) })).body.status).toBe("active");
  });

  test("of another tenant, or of another asset, does not exist", async () => {
    const made = await share();
    const { asset: sibling } = await readyAsset(app, key);
    const foreign = await app.key((await app.tenant()).id);
    for (const [path, by] of [
      [at(made), foreign],
      [`/api/v1/assets/${sibling.id}/shares/${made.id}`, key],
    ] as const) {
      expectError(await app.call("GET", path, { key: by }), 404, "not_found");
      expectError(await app.call("PATCH", path, { key: by, body: { name: "x" } }), 404, "not_found");
      expectError(await app.call("DELETE", path, { key: by }), 404, "not_found");
    }
    expectError(await app.as(foreign).listShares(asset.id), 404, "not_found");
    expectError(await app.as(foreign).createShare(asset.id, {}), 404, "not_found");
    expect((await app.as({ admin: app.admin }).getShare(asset.id, made.id)).body).toEqual(made);
  });

  test("needs the scope that writing assets needs; its URL is shown to who may play", async () => {
    const made = await share();
    const reader = await app.key(tenant.id, ["assets:read"]);
    const player = await app.key(tenant.id, ["playback:read"]);
    expectError(await app.as(reader).listShares(asset.id), 403, "forbidden_scope");
    expect((await app.as(player).listShares(asset.id)).body).toEqual([made]);
    expectError(await app.as(player).createShare(asset.id, {}), 403, "forbidden_scope");
    expectError(await app.as(player).updateShare(asset.id, made.id, {}), 403, "forbidden_scope");
    expectError(await app.as(player).deleteShare(asset.id, made.id), 403, "forbidden_scope");
  });

  test("is created once for one Idempotency-Key, whose record says nothing of the password", async () => {
    const make = (body: unknown) =>
      app.as({ key, headers: { "idempotency-key": "one" } }).unchecked.createShare(asset.id, body);
    const first = await make({ password: "letmein" });
    const again = await make({ password: "letmein" });
    expect([again.status, again.body, again.headers.get("idempotent-replayed")]).toEqual([201, first.body, "true"]);
    expectError(await make({ password: "letmeout" }), 422, "idempotency_key_reused");
    const { createHash } = await import("node:crypto");
    const hash = createHash("sha256").update(`POST ${list()}\n{"password":"letmein"}`).digest("hex");
    const records = JSON.stringify(await app.opened.app.db.all("SELECT * FROM idempotency_records"));
    expect(records).not.toContain("letmein");
    expect(records).not.toContain(hash);
  });

  test("is in the audit log, without its password", async () => {
    const made = await share({ password: "letmein" });
    await app.as(key).deleteShare(asset.id, made.id);
    const { body, text } = await app.as({ admin: app.admin }).listAuditEntries();
    const said = body.filter(({ route }: { route: string }) => route.includes("/shares"));
    expect(said.map(({ method, actor }) => [method, actor])).toEqual([
      ["DELETE", "key"],
      ["POST", "key"],
    ]);
    expect(text).not.toContain("letmein");
  });

  test("is limited in number", async () => {
    const insert = `INSERT INTO shares (tenant_id, asset_id, code, created_at, updated_at)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
      SELECT ${tenant.id}, ${asset.id}, 'code-' || i, 1, 1 FROM n`;
    await app.opened.app.write(async (tx) => tx.run(insert));
    const last = await share();
    expectError(await app.as(key).createShare(asset.id, {}), 422, "share_limit_reached");
    await app.as(key).deleteShare(asset.id, last.id);
    await share();
  });
});

describe("the end of a share", () => {
  test("by DELETE is permanent, and its pages say so", async () => {
    const made = await share();
    expect((await app.as(key).deleteShare(asset.id, made.id)).status).toBe(204);
    for (const answer of [
      await app.as(key).getShare(asset.id, made.id),
      await app.as(key).deleteShare(asset.id, made.id),
      await patch(made, { name: "x" }),
    ])
      expectError(answer, 404, "not_found");
    expect((await app.as(key).listShares(asset.id)).body).toEqual([]);
    for (const url of [made.url, made.embed_url]) expect((await viewer(app).open(url)).status, url).toBe(410);
    await app.runTask("prune-shares");
    expect((await viewer(app).open(made.url)).status).toBe(410);
  });

  test("comes with the asset and with the tenant", async () => {
    const made = await share();
    await app.as(key).deleteAsset(asset.id);
    expect((await viewer(app).open(made.url)).status).toBe(404);
    const { asset: other } = await uploaded(app, key);
    const last = await shareOf(app, key, other.id);
    await app.as({ admin: app.admin }).deleteTenant(tenant.id, { confirm: tenant.slug });
    await app.runTask("delete-tenants");
    expect((await viewer(app).open(last.url)).status).toBe(404);
    expect(await app.opened.app.db.all("SELECT * FROM shares")).toEqual([]);
  });
});

test("of the shares of an asset that were deleted, the last thousand are remembered", async () => {
  const oldest = await share();
  const newest = await share();
  const end = async (one: { id: number }) => {
    app.advance(1000);
    expect((await app.as(key).deleteShare(asset.id, one.id)).status).toBe(204);
  };
  const statusOf = async (one: { url: string }) => (await viewer(app).open(one.url)).status;
  await end(oldest);
  app.advance(1000);
  await app.opened.app.write((tx) =>
    tx.run(sql`with recursive n (i) as (values (1) union all select i + 1 from n where i < 999)
      insert into shares (tenant_id, asset_id, code, deleted_at, created_at, updated_at)
      select ${tenant.id}, ${asset.id}, 'code' || i, ${app.opened.app.clock.now()}, 1, 1 from n`),
  );
  expect(await statusOf(oldest)).toBe(410);
  await end(newest);
  expect([await statusOf(oldest), await statusOf(newest)]).toEqual([404, 410]);
  const rows = await app.opened.app.db.all(sql`select 1 from shares where asset_id = ${asset.id}`);
  expect(rows).toHaveLength(1000);
});
