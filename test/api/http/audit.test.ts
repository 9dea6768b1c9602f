import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { next, uploaded } from "#test/support/flow.ts";
import { subtitleForm } from "#test/support/subtitles.ts";

/** The log's entries since `after`, newest first. */
const newest = async (app: TestApp, after: number, query = "") =>
  (await app.call("GET", `/api/v1/admin/audit?limit=500${query}`, { admin: app.admin })).body.filter(
    (entry: { id: number }) => entry.id > after,
  );

test("changes with the admin token, and to credentials, are logged once, without values", async () => {
  const app = await testApp();
  const { admin } = app;
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const other = await app.tenant();
  const own = (await app.as(key).listApiKeys()).body[0].id;
  const secret = "https://example.com/a-path-that-is-secret";
  const made: Record<string, any> = {};
  const byAdmin = { actor: "admin", key_id: null, address: "local" };
  const byKey = { actor: "key", key_id: own, tenant_id: tenant.id, address: "local" };
  const rows: [string, () => Promise<any>, object | null][] = [
    [
      "create tenant",
      () => app.as({ admin, headers: { "x-svc-operator": "ann\u00e9 " } }).createTenant({ name: "N", slug: "n" }),
      {
        ...byAdmin,
        operator: "ann",
        method: "POST",
        route: "/api/v1/admin/tenants",
        target_type: "tenants",
        target_id: "3",
        tenant_id: 3,
      },
    ],
    [
      "suspend",
      () => app.as({ admin }).updateTenant(other.id, { status: "suspended" }),
      { ...byAdmin, fields: ["status"], target_type: "tenants", target_id: String(other.id), tenant_id: other.id },
    ],
    ["taken", () => app.as({ admin }).createTenant({ name: "N", slug: "n" }), null],
    [
      "issue",
      async () => {
        made.key = await app.as({ admin }).createApiKey({ tenant_id: tenant.id, name: "K" });
        return made.key;
      },
      {
        ...byAdmin,
        tenant_id: tenant.id,
        target_type: "api_keys",
        target_id: "2",
        fields: expect.arrayContaining(["tenant_id", "name"]),
      },
    ],
    [
      "issue by key",
      () => app.as({ key, headers: { "idempotency-key": "k" } }).createApiKey({ tenant_id: tenant.id, name: "mine" }),
      { ...byKey, target_type: "api_keys", target_id: "3" },
    ],
    [
      "the same again",
      () => app.as({ key, headers: { "idempotency-key": "k" } }).createApiKey({ tenant_id: tenant.id, name: "mine" }),
      null,
    ],
    [
      "revoke",
      () => app.as(key).revokeApiKey(made.key.body.id),
      { ...byKey, method: "DELETE", route: "/api/v1/api_keys/:id", target_id: "2", fields: [] },
    ],
    [
      "webhook",
      async () => {
        made.hook = await app.as(key).createWebhook({ url: secret });
        return made.hook;
      },
      { ...byKey, target_type: "webhooks", target_id: "1", fields: expect.arrayContaining(["url"]) },
    ],
    [
      "pause",
      () => app.as(key).setWebhookActive(1, { active: false }),
      { ...byKey, target_type: "webhooks", target_id: "1", fields: ["active"] },
    ],
    [
      "signing key",
      async () => {
        made.signer = await app.as(key).createSigningKey({ algorithm: "EdDSA" });
        return made.signer;
      },
      { ...byKey, target_type: "signing_keys" },
    ],
    [
      "rotate",
      async () => {
        const answer = await app.as({ admin }).rotateToken("live");
        made.live = answer.body.token;
        return answer;
      },
      { ...byAdmin, target_type: "tokens", target_id: "live" },
    ],
    ["upload by key", () => uploaded(app, key), null],
    [
      "admin edits an asset",
      () => app.as({ admin }).updateAsset(1, { video_asset: { title: "secret title" } }),
      {
        ...byAdmin,
        target_type: "assets",
        target_id: "1",
        tenant_id: tenant.id,
        fields: ["video_asset", "video_asset.title"],
      },
    ],
    [
      "admin tags",
      () => app.as({ admin }).updateTags(1, { "My Secret": "v" }),
      { ...byAdmin, target_id: "1", fields: [] },
    ],
    [
      "admin uploads a subtitle file",
      () => app.as({ admin }).createSubtitle(1, subtitleForm({ language: "de", label: "x" })),
      {
        ...byAdmin,
        target_type: "assets",
        target_id: "1",
        fields: ["file", "language", "label"],
      },
    ],
    ["worker", () => next(app), null],
    ["reads", () => app.as({ admin }).getTenant(1), null],
    ["foreign", () => app.as(key).revokeApiKey(99), null],
    [
      "cancel",
      () => app.as({ admin }).cancelJob(1),
      { ...byAdmin, route: "/api/v1/transcoding_jobs/:id/cancel", target_id: "1" },
    ],
    [
      "delete",
      () => app.as({ admin }).deleteAsset(1),
      { ...byAdmin, method: "DELETE", target_type: "assets", target_id: "1" },
    ],
  ];
  let after = (await newest(app, 0))[0].id;
  for (const [name, call, expected] of rows) {
    const answer = await call();
    const entries = await newest(app, after);
    expect.soft(entries, name).toEqual(expected === null ? [] : [expect.objectContaining(expected)]);
    if (expected && answer.headers) expect.soft(entries[0]?.request_id, name).toBe(answer.headers.get("x-request-id"));
    after = entries[0]?.id ?? after;
  }
  const all = await newest(app, 0);
  const ofTenant = await newest(app, 0, `&tenant_id=${tenant.id}`);
  expect(ofTenant).toEqual(all.filter((entry: any) => entry.tenant_id === tenant.id));
  const { headers, body } = await app.as({ admin }).listAuditEntries({ limit: 2 });
  expect(body).toEqual(all.slice(0, 2));
  const more = /<(.*)>/.exec(headers.get("link") as string)?.[1] as string;
  expect((await app.call("GET", more, { admin })).body).toEqual(all.slice(2, 4));
  const text = JSON.stringify(all);
  for (const value of [
    admin,
    key,
    made.key.body.token,
    made.hook.body.secret,
    made.signer.body.private_key,
    made.live,
    secret,
    "My Secret",
    "secret title",
  ])
    expect(text).not.toContain(value);
  expectError(await app.as(key).listAuditEntries(), 401, "unauthorized");
  for (const method of ["POST", "DELETE", "PUT", "PATCH"])
    expectError(await app.call(method, "/api/v1/admin/audit", { admin }), 405, "method_not_allowed");

  // Retained for 400 days, and no longer.
  app.advance(399 * 86_400_000);
  await app.runTask("prune-audit");
  expect(await newest(app, 0)).toHaveLength(all.length);
  app.advance(2 * 86_400_000);
  await app.runTask("prune-audit");
  expect(await newest(app, 0)).toEqual([]);
  expect((await newest(app, 0, `&since=${new Date(0).toISOString()}`)).length).toBe(0);

  // Change and entry are atomic: neither exists without the other.
  await app.opened.app.write(async (tx) => tx.run(sql`drop table audit_entries`));
  const lost = await app.as({ admin }).createTenant({ name: "L", slug: "lost" });
  expect(lost.status).toBe(500);
  expect((await app.as({ admin }).listTenants()).text).not.toContain("lost");
});

test("an invalid limit is refused with each message once", async () => {
  const { as, admin } = await testApp();
  const answer = await as({ admin }).unchecked.listAuditEntries({ limit: "abc" });
  expect(answer.status).toBe(422);
  expect(answer.error.details.limit).toHaveLength(1);
});
