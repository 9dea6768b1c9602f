import { sql } from "drizzle-orm";
import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { signIn, withSession } from "#test/support/sessions.ts";

const PASSWORD = "correct horse";
let app: TestApp;
beforeAll(async () => {
  app = await testApp();
  return app.close;
});

test("people, keys and the operator leave entries in their tenant's activity, which can be filtered", async () => {
  const tenant = await app.tenant();
  const other = await app.tenant();
  const { admin } = app;
  const email = "boss@example.com";
  const body = { tenant_id: tenant.id, email, role: "admin", password: PASSWORD };
  await app.as({ admin }).createTenantUser(body);
  const boss = withSession(app, await signIn(app, { email, password: PASSWORD }));
  const key = await app.key(tenant.id);
  await app.key(other.id);
  const { asset } = await uploaded(app, key);
  const at = `/api/v1/assets/${asset.id}`;
  await app.as(key).updateAsset(asset.id, { video_asset: { title: "A secret title" } });
  await app.as(key).updateTags(asset.id, { mood: "calm" });
  await boss("PATCH", at, { body: { video_asset: { playback_policy: "public" } } });
  await boss("POST", "/api/v1/users/invitations", { body: { email: "ed@example.com", role: "editor" } });
  await boss("POST", "/api/v1/encoding_profiles", { body: { name: "phones" } });
  await boss("POST", "/api/v1/uploads/initiate", { body: { filename: "b.mp4", bytes_expected: 1 } });
  await app.as({ admin }).deleteAsset(asset.id);
  // Reading is no change.
  await boss("GET", at);

  const list = async (query = "") => (await boss("GET", `/api/v1/activity${query}`)).body;
  const all = await list();
  const keyActor = `key:${(await boss("GET", "/api/v1/api_keys")).body[0].id}`;
  expect(all.map((entry: any) => [entry.actor, entry.action])).toEqual([
    ["operator", "delete_asset"],
    [email, "initiate_upload"],
    [email, "create_encoding_profile"],
    [email, "create_invitation"],
    [email, "update_asset"],
    [keyActor, "update_tags"],
    [keyActor, "update_asset"],
    ["operator", "create_api_key"],
    [email, "create_session"],
    ["operator", "create_tenant_user"],
    ["operator", "create_tenant"],
  ]);
  expect(all[4]).toMatchObject({
    method: "PATCH",
    route: "/api/v1/assets/:id",
    target_type: "assets",
    target_id: String(asset.id),
    fields: ["video_asset", "video_asset.playback_policy"],
    address: "local",
  });
  expect(all[0].address).toBeNull();
  expect(JSON.stringify(all)).not.toContain("secret");

  expect(await list(`?before=${all[3].id}`)).toEqual(all.slice(4));
  expect(await list(`?actor=${encodeURIComponent(email.toUpperCase())}`)).toEqual(
    all.filter((entry: any) => entry.actor === email),
  );
  expect(await list(`?actor=${keyActor}`)).toEqual(all.slice(5, 7));
  expect(await list("?actor=operator&action=delete_asset")).toEqual([all[0]]);
  expect(await list("?action=updateAsset")).toEqual([all[4], all[6]]);
  expect(await list("?action=nothing")).toEqual([]);
  const first = await boss("GET", "/api/v1/activity?limit=4");
  expect(first.body).toEqual(all.slice(0, 4));
  const next = /<(.*)>/.exec(first.headers.get("link") ?? "")?.[1] as string;
  expect((await boss("GET", next)).body).toEqual(all.slice(4, 8));

  const ofOperator = await app.as({ admin }).listActivity({ tenant_id: tenant.id });
  expect(ofOperator.body).toEqual(all);
  expectError(await app.as({ admin }).listActivity(), 422, "parameter_missing");
  expectError(await app.as(key).listActivity(), 403, "forbidden_role");
  expectError(await boss("GET", `/api/v1/activity?tenant_id=${other.id}`), 404, "not_found");
});

test("an entry keeps the address of a user who was deleted", async () => {
  const tenant = await app.tenant();
  const { admin } = app;
  const made = [];
  for (const name of ["one", "two"]) {
    const body = { tenant_id: tenant.id, email: `${name}@example.net`, role: "admin", password: PASSWORD };
    made.push((await app.as({ admin }).createTenantUser(body)).body);
  }
  const one = withSession(app, await signIn(app, { email: "one@example.net", password: PASSWORD }));
  await one("POST", "/api/v1/encoding_profiles", { body: { name: "phones" } });
  await app.as({ admin }).deleteTenantUser(made[0]?.id);
  expect(
    (await app.as({ admin }).listActivity({ tenant_id: tenant.id, action: "create_encoding_profile" })).body,
  ).toMatchObject([{ actor: "one@example.net" }]);
});

test("filters that select few of many entries list exactly these, newest first, in pages", async () => {
  const tenant = await app.tenant();
  const { admin } = app;
  await app.opened.app.write((tx) =>
    tx.run(sql`with recursive n (i) as (values (1) union all select i + 1 from n where i < 2500)
      insert into audit_entries (created_at, actor, actor_name, action, request_id, tenant_id, address, method, route, target_type, fields)
      select i, 'key', 'key:' || (i % 2), iif(i % 700 = 1, 'rare', 'usual'), 'r' || i, ${tenant.id}, '', 'POST', '/', 'assets', '[]' from n`),
  );
  const list = async (query: string, limit: number) => {
    const found: string[] = [];
    for (let next: string | undefined = `${query}&limit=${limit}`; next; ) {
      const answer = await app.call("GET", next, { admin });
      expect(answer.status, answer.text).toBe(200);
      found.push(...answer.body.map((one: any) => one.request_id));
      next = /<http:\/\/vodbox.test(.+)>; rel="next"/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    return found;
  };
  const own = `/api/v1/activity?tenant_id=${tenant.id}`;
  const all = `/api/v1/admin/audit?tenant_id=${tenant.id}`;
  for (const limit of [1, 500]) {
    for (const path of [own, all, "/api/v1/admin/audit?"]) {
      expect(await list(`${path}&action=rare`, limit)).toEqual(["r2101", "r1401", "r701", "r1"]);
      expect(await list(`${path}&action=rare&actor=key:1`, limit)).toEqual(["r2101", "r1401", "r701", "r1"]);
      expect(await list(`${path}&action=rare&actor=key:0`, limit)).toEqual([]);
    }
  }
  expect(await list(`${own}&actor=key:0`, 500)).toHaveLength(1250);
  expect(await list(`${all}&since=1970-01-01T00:00:02.400Z`, 7)).toHaveLength(102);
});
