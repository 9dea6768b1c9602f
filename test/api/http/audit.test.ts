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
  const own = (await app.call("GET", "/api/v1/api_keys", { key })).body[0].id;
  const secret = "https://example.com/a-path-that-is-secret";
  const made: Record<string, any> = {};
  const byAdmin = { actor: "admin", key_id: null, address: "local" };
  const byKey = { actor: "key", key_id: own, tenant_id: tenant.id, address: "local" };
  const rows: [string, () => Promise<any>, object | null][] = [
    [
      "create tenant",
      () =>
        app.call("POST", "/api/v1/admin/tenants", {
          admin,
          headers: { "x-svc-operator": "ann\u00e9 " },
          body: { name: "N", slug: "n" },
        }),
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
      () => app.call("PATCH", `/api/v1/admin/tenants/${other.id}`, { admin, body: { status: "suspended" } }),
      { ...byAdmin, fields: ["status"], target_type: "tenants", target_id: String(other.id), tenant_id: other.id },
    ],
    ["taken", () => app.call("POST", "/api/v1/admin/tenants", { admin, body: { name: "N", slug: "n" } }), null],
    [
      "issue",
      async () => {
        made.key = await app.call("POST", "/api/v1/api_keys", { admin, body: { tenant_id: tenant.id, name: "K" } });
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
      () =>
        app.call("POST", "/api/v1/api_keys", {
          key,
          headers: { "idempotency-key": "k" },
          body: { tenant_id: tenant.id, name: "mine" },
        }),
      { ...byKey, target_type: "api_keys", target_id: "3" },
    ],
    [
      "the same again",
      () =>
        app.call("POST", "/api/v1/api_keys", {
          key,
          headers: { "idempotency-key": "k" },
          body: { tenant_id: tenant.id, name: "mine" },
        }),
      null,
    ],
    [
      "revoke",
      () => app.call("DELETE", `/api/v1/api_keys/${made.key.body.id}`, { key }),
      { ...byKey, method: "DELETE", route: "/api/v1/api_keys/:id", target_id: "2", fields: [] },
    ],
    [
      "webhook",
      async () => {
        made.hook = await app.call("POST", "/api/v1/webhooks", { key, body: { url: secret } });
        return made.hook;
      },
      { ...byKey, target_type: "webhooks", target_id: "1", fields: expect.arrayContaining(["url"]) },
    ],
    [
      "pause",
      () => app.call("PATCH", "/api/v1/webhooks/1/active", { key, body: { active: false } }),
      { ...byKey, target_type: "webhooks", target_id: "1", fields: ["active"] },
    ],
    [
      "signing key",
      async () => {
        made.signer = await app.call("POST", "/api/v1/signing_keys", { key, body: { algorithm: "EdDSA" } });
        return made.signer;
      },
      { ...byKey, target_type: "signing_keys" },
    ],
    [
      "rotate",
      async () => {
        const answer = await app.call("POST", "/api/v1/admin/tokens/live/rotate", { admin });
        made.live = answer.body.token;
        return answer;
      },
      { ...byAdmin, target_type: "tokens", target_id: "live" },
    ],
    ["upload by key", () => uploaded(app, key), null],
    [
      "admin edits an asset",
      () => app.call("PATCH", "/api/v1/assets/1", { admin, body: { video_asset: { title: "secret title" } } }),
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
      () => app.call("PATCH", "/api/v1/assets/1/tags", { admin, body: { "My Secret": "v" } }),
      { ...byAdmin, target_id: "1", fields: [] },
    ],
    [
      "admin uploads a subtitle file",
      () =>
        app.call("POST", "/api/v1/assets/1/subtitles", { admin, raw: subtitleForm({ language: "de", label: "x" }) }),
      {
        ...byAdmin,
        target_type: "assets",
        target_id: "1",
        fields: ["file", "language", "label"],
      },
    ],
    ["worker", () => next(app), null],
    ["reads", () => app.call("GET", "/api/v1/admin/tenants/1", { admin }), null],
    ["foreign", () => app.call("DELETE", "/api/v1/api_keys/99", { key }), null],
    [
      "cancel",
      () => app.call("POST", "/api/v1/transcoding_jobs/1/cancel", { admin }),
      { ...byAdmin, route: "/api/v1/transcoding_jobs/:id/cancel", target_id: "1" },
    ],
    [
      "delete",
      () => app.call("DELETE", "/api/v1/assets/1", { admin }),
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
  const { headers, body } = await app.call("GET", "/api/v1/admin/audit?limit=2", { admin });
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
  expectError(await app.call("GET", "/api/v1/admin/audit", { key }), 401, "unauthorized");
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
  const lost = await app.call("POST", "/api/v1/admin/tenants", { admin, body: { name: "L", slug: "lost" } });
  expect(lost.status).toBe(500);
  expect((await app.call("GET", "/api/v1/tenants", { admin })).text).not.toContain("lost");
});

test("an invalid limit is refused with each message once", async () => {
  const { call, admin } = await testApp();
  const answer = await call("GET", "/api/v1/admin/audit?limit=abc", { admin });
  expect(answer.status).toBe(422);
  expect(answer.body.details.limit).toHaveLength(1);
});
