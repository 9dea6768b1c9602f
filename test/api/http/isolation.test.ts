import { sql } from "drizzle-orm";
import { beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "#platform/http/caller.ts";
import type { Route } from "#platform/http/route.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased } from "#test/support/batches.ts";
import type { CallOptions } from "#test/support/client.ts";
import { foreignResources, THEIRS } from "#test/support/foreign-resources.ts";
import { type BrowserSession, signIn } from "#test/support/sessions.ts";
import { subtitleForm } from "#test/support/subtitles.ts";

/**
 * Every route × every credential. The expected result is derived from the route table alone: a route without its
 * credential, scope or owner check fails here without a test of its own.
 */
let app: TestApp;
let theirs: Awaited<ReturnType<typeof foreignResources>>;
let mine: { id: number; key: string };
let document: {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example: unknown }> } }>>;
};
let keys: { revoked: string; expired: string; suspended: string; all: string };

beforeAll(async () => {
  // No server listens there: no response may come from it.
  app = await testApp({
    translate: "libretranslate",
    translate_url: "http://127.0.0.1:9",
    rate_limit_billing: "1000/60",
  });
  document = (await app.call("GET", "/api/v1/openapi.json")).body;
  const owner = await app.tenant();
  const other = await app.tenant();
  const suspended = await app.tenant();
  theirs = await foreignResources(app, other.id);
  mine = { id: owner.id, key: await app.key(owner.id) };
  const person = { ...PERSON, tenant_id: owner.id, role: "admin" };
  await app.as({ admin: app.admin }).createTenantUser(person);
  const short = await app
    .as({ admin: app.admin })
    .createApiKey({ tenant_id: owner.id, expires_at: new Date(Date.now() + 60_000).toISOString() });
  const revoked = await app.as({ admin: app.admin }).createApiKey({ tenant_id: owner.id, scopes: [...SCOPES] });
  await app.as({ admin: app.admin }).revokeApiKey(revoked.body.id);
  const suspendedKey = await app.key(suspended.id);
  await app.as({ admin: app.admin }).updateTenant(suspended.id, { status: "suspended" });
  app.advance(61_000);
  keys = { revoked: revoked.body.token, expired: short.body.token, suspended: suspendedKey, all: mine.key };
  return app.close;
});

const concrete = (route: Route) => {
  const stem = Object.keys(theirs.paths).find((path) => route.path.startsWith(path));
  const filled = stem ? route.path.replace(stem, stem.replace(/:.*$/, theirs.paths[stem] as string)) : route.path;
  return filled.replace(/\*\*:\w+/, "nothing");
};
const tables = () => app.opened.routes;
const named = (route: Route) => `${route.method} ${route.path}`;

/** A valid body from the OpenAPI document, so that requests are refused because of the credential alone. */
function bodyOf(route: Route): CallOptions {
  if (route.form) return { raw: subtitleForm() };
  const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
  const content = document.paths[path]?.[route.method.toLowerCase()]?.requestBody?.content;
  return content?.["application/json"] ? { body: content["application/json"].example } : {};
}
/** A response that does not end has its own tests; here its headers suffice. */
const methodOf = (route: Route) => (route.produces?.includes("text/event-stream") ? "HEAD" : route.method);
const ask = (route: Route, { headers, ...credentials }: CallOptions, path = concrete(route)) => {
  const { headers: ofBody, ...body } = bodyOf(route);
  return app.call(methodOf(route), path, { ...credentials, ...body, headers: { ...ofBody, ...headers } });
};

/** Every row of every table, except the time when a key was last used: unchanged by refused requests. */
async function state(): Promise<string> {
  const { db } = app.opened.app;
  const names = await db.all<{ name: string }>(sql`select name from sqlite_schema where type = 'table' order by name`);
  const rows: string[] = [];
  for (const { name } of names) {
    const all = await db.all(sql.raw(`select * from "${name}"`));
    rows.push(`${name}: ${JSON.stringify(all, (field, value) => (/^last_used_/.test(field) ? null : value))}`);
  }
  return rows.join("\n");
}

const PERSON = { email: "person@example.com", password: "correct horse" };

/** A tenant's callers: software, and a person in a browser. */
const CALLERS: [string, () => Promise<CallOptions>][] = [
  ["a key", async () => ({ key: keys.all })],
  ["a session", async () => headersOf(await signIn(app, { api_key: keys.all }))],
  ["a user who is an admin", async () => headersOf(await signIn(app, PERSON))],
];
const headersOf = ({ cookie, csrf }: BrowserSession) => ({ headers: { cookie, "x-csrf-token": csrf } });

describe("every route of the table", () => {
  test("refuses credentials of other kinds, and nothing changes", async () => {
    const before = await state();
    for (const route of tables().filter((each) => !["none", "signed"].includes(each.credential))) {
      const wrong: Record<string, CallOptions> = {
        none: {},
        invalid: { key: "svc_nothing" },
        empty: { key: "" },
        revoked: { key: keys.revoked },
        expired: { key: keys.expired },
        suspended: { key: keys.suspended },
        "wrong admin": { admin: "not-the-admin-token" },
        "wrong admin token with a valid key": { admin: "not-the-admin-token", key: keys.all },
        ...(route.credential !== "worker" && { worker: { worker: app.worker } }),
        ...(route.credential !== "metrics" && { metrics: { bearer: app.opened.app.secrets.metrics_token } }),
        ...(route.credential === "gateway" && { "the admin token": { admin: app.admin } }),
        ...(route.credential !== "key" && { "a key": { key: keys.all }, "a key as bearer": { bearer: keys.all } }),
      };
      for (const [name, credentials] of Object.entries(wrong)) {
        const answer = await ask(route, credentials);
        expect
          .soft([answer.status, answer.body?.code], `${route.method} ${route.path} with ${name}`)
          .toEqual([401, methodOf(route) === "HEAD" ? undefined : "unauthorized"]);
      }
    }
    expect(await state()).toBe(before);
  });

  test("requires its scopes, and names them", async () => {
    const single = new Map<string, string>();
    for (const scope of SCOPES) single.set(scope, await app.key(mine.id, [scope]));
    const before = await state();
    for (const route of tables().filter((each) => each.scopes.length > 0)) {
      for (const scope of SCOPES.filter((each) => !route.scopes.includes(each))) {
        const answer = await ask(route, { key: single.get(scope) as string });
        const expected = { code: "forbidden_scope", error: "insufficient_scope", required_scopes: route.scopes };
        // The response to a HEAD has no body.
        if (methodOf(route) !== "HEAD")
          expect.soft(answer.body, `${route.method} ${route.path} with ${scope}`).toMatchObject(expected);
        expect.soft(answer.status).toBe(403);
      }
    }
    expect(await state()).toBe(before);
  });

  test("accepts each scope that it names; without any, every key of the tenant", async () => {
    for (const scope of SCOPES) {
      const key = await app.key(mine.id, [scope]);
      for (const route of tables().filter((each) => each.credential === "key")) {
        if (route.forAdmins || (route.scopes.length > 0 && !route.scopes.includes(scope))) continue;
        // It would revoke the key of the request.
        if (route.path.endsWith("/device_tokens/current")) continue;
        const { status, body } = await ask(route, { key });
        expect.soft([401, 403], `${named(route)} with ${scope} ${body?.code}`).not.toContain(status);
      }
    }
  });

  test("accepts the worker token, the admin token and a lease where declared", async () => {
    for (const route of tables().filter((each) => each.credential === "worker" || each.credential === "admin")) {
      if (route.path.endsWith("/rotate")) continue;
      const tokens: CallOptions[] = [
        { admin: app.admin },
        ...(route.credential === "worker" ? [{ worker: app.worker }] : []),
      ];
      for (const token of tokens) {
        const leased = await ask(route, { ...token, lease: "not the lease" });
        expect.soft(leased.status, named(route)).not.toBe(401);
        if (route.lease) expect.soft((await ask(route, token)).status, named(route)).toBe(401);
      }
    }
  });

  test.each(CALLERS)("does not find another tenant's resources, for %s", async (_, credentials) => {
    const own = await credentials();
    const isAdmin = (await app.call("GET", "/api/v1/users", own)).status === 200;
    const before = await state();
    for (const route of tables().filter((each) => each.credential === "key" && /:\w/.test(each.path))) {
      const found = await ask(route, own);
      const path = concrete(route).replace(/\/(\d+|vid_\w+)(?=\/|$)/, "/987654321");
      const nobodys = await ask(route, own, path);
      const seen = ({ status, body }: typeof found) => [status, body?.code, body?.error];
      expect.soft(found.status, named(route)).toBe(route.forAdmins && !isAdmin ? 403 : 404);
      expect.soft(seen(found), named(route)).toEqual(seen(nobodys));
    }
    expect(await state()).toBe(before);
  });

  test.each(CALLERS)(
    "reveals nothing of another tenant in any list, export or record to %s",
    async (_, credentials) => {
      const own = await credentials();
      const reading = tables().filter((each) => each.method === "GET" && each.credential === "key");
      let answered = 0;
      for (const route of reading) {
        for (const query of [
          "",
          `?tenant_id=${mine.id + 1}`,
          "?q=theirs",
          "?format=json",
          "?top=100",
          `?filename=${THEIRS}.mp4&bytes=3`,
        ]) {
          const answer = await ask(route, own, concrete(route) + query);
          expect.soft(answer.text, named(route) + query).not.toContain(THEIRS);
          if (answer.status === 200) answered++;
        }
      }
      expect(answered).toBeGreaterThan(20);
      // The marker is visible to its owner.
      for (const path of [
        "/api/v1/assets",
        "/api/v1/assets/export",
        "/api/v1/assets/graph_export",
        "/api/v1/collections/tree",
        "/api/v1/analytics?top=1",
      ])
        expect((await app.call("GET", path, { key: theirs.key })).text, path).toContain(THEIRS);
    },
  );

  test("refuses an unsupported method, with Allow", async () => {
    for (const path of new Set(tables().map((route) => route.path))) {
      const methods = tables()
        .filter((route) => route.path === path)
        .flatMap((route) => [route.method, route.alias]);
      const missing = ["GET", "POST", "PUT", "PATCH", "DELETE"].find(
        (method) => !methods.includes(method as Route["method"]),
      );
      // Another API has all of them, and its own form of errors.
      if (missing === undefined) continue;
      const answer = await app.call(missing, concrete({ path } as Route), { admin: app.admin });
      const refused = path.startsWith("/mux/")
        ? { error: { type: "method_not_allowed" } }
        : { code: "method_not_allowed" };
      expect.soft(answer, `${missing} ${path}`).toMatchObject({ status: 405, body: refused });
      expect.soft(answer.headers.get("allow")).toContain(methods[0]);
    }
  });
});

test("a worker without a lease token is refused before its body is read", async () => {
  for (const route of app.opened.routes.filter((each) => each.lease)) {
    const headers = { "content-type": "application/json" };
    const body = route.method === "GET" ? {} : { raw: "{ no json" };
    const answer = await app.call(route.method, concrete(route), { worker: app.worker, headers, ...body });
    expect.soft([answer.status, answer.body.code], route.path).toEqual([401, "unauthorized"]);
  }
});

/** Where a key's own tenant must be named too. */
const NAMED = ["/api/v1/api_keys", "/api/v1/collections", "/api/v1/assets"];
test("another tenant's tenant_id in a body is answered like one that does not exist", async () => {
  const bodies = {
    "/api/v1/uploads/initiate": { filename: "x.mp4", bytes_expected: 1 },
    "/api/v1/uploads/initiate_multipart": { filename: "x.mp4", bytes_expected: 1 },
    "/api/v1/ingest_batches": { name: "X" },
    "/api/v1/api_keys": { scopes: ["assets:read"] },
    "/api/v1/signing_keys": { algorithm: "EdDSA" },
    "/api/v1/webhooks": { url: "https://example.com/" },
    "/api/v1/live/channels": { channel: "mine-alone" },
    "/api/v1/collections": { collection: { name: "X", slug: "x" } },
    "/api/v1/assets": {
      video_asset: {
        title: "X",
        input_status: "pending",
        playback_status: "draft",
        source_bytes: 0,
        storage_bytes: 0,
        duration_seconds: 0,
        source_key: `tenants/${mine.id}/sources/x.mp4`,
      },
    },
  };
  const second: Record<string, object> = {
    "/api/v1/collections": { collection: { name: "Y", slug: "y" } },
    "/api/v1/live/channels": { channel: "mine-too" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const another = second[path] ?? {};
    for (const tenantId of [mine.id + 1, 987_654_321]) {
      const answer = await app.call("POST", path, { key: keys.all, body: { ...body, tenant_id: tenantId } });
      expect.soft([answer.status, answer.body.code], `${path} for ${tenantId}`).toEqual([404, "not_found"]);
    }
    const created = (await app.call("POST", path, { key: keys.all, body: { ...body, tenant_id: mine.id } })).status;
    expect.soft(created, path).toBe(201);
    const unnamed = await app.call("POST", path, { key: keys.all, body: { ...body, ...another } });
    expect.soft(unnamed.status, path).toBe(NAMED.includes(path) ? 422 : 201);
    expect.soft((await app.call("POST", path, { admin: app.admin, body })).body.code).toBe("parameter_missing");
  }
});

test("a batch's token covers that batch and nothing else", async () => {
  const own = await leased(app, keys.all);
  const before = await state();
  for (const route of tables().filter((each) => each.credential === "key")) {
    const { status, body } = await ask(route, { headers: own.headers });
    // It exists, but not for this caller.
    if (methodOf(route) === "HEAD") continue;
    expect
      .soft([status, body?.code], named(route))
      .toEqual(route.batchToken ? [404, "not_found"] : [401, "unauthorized"]);
    if (!route.batchToken) continue;
    const altered = {
      "x-svc-batch-token": theirs.batch.headers["x-svc-batch-token"].replace(/.$/, (last: string) =>
        last === "A" ? "B" : "A",
      ),
    };
    for (const headers of [altered, { "x-svc-batch-token": "" }, { "x-svc-batch-token": "bat_1_" }])
      expect.soft((await ask(route, { headers })).status, named(route)).toBe(401);
  }
  expect(await state()).toBe(before);
  expect((await own.ask("GET", "")).status).toBe(200);
});

test("an upload of another's batch is not found in one's own", async () => {
  const own = await leased(app, keys.all);
  for (const route of tables().filter((each) => each.path.includes("/:upload_id"))) {
    const path = concrete(route).replace(/ingest_batches\/\d+/, `ingest_batches/${own.batch.id}`);
    const answer = await ask(route, { key: keys.all }, path);
    expect.soft([answer.status, answer.body?.code], named(route)).toEqual([404, "not_found"]);
  }
});

test("a track of another's asset is not found on one's own", async () => {
  const made = await app.as(keys.all).initiateUpload({ filename: "mine.mp4", bytes_expected: 1 });
  for (const route of tables().filter((each) => /:video_asset_id\/\w+\/:id/.test(each.path))) {
    const path = concrete(route).replace(/assets\/\d+/, `assets/${made.body.asset_id}`);
    const answer = await ask(route, { key: keys.all }, path);
    expect.soft([answer.status, answer.body?.code], named(route)).toEqual([404, "not_found"]);
  }
});

test("a delivery of another's endpoint is not found on one's own", async () => {
  const made = await app.as(keys.all).createWebhook({ url: "https://example.com/" });
  const path = (theirs.paths["/api/v1/webhooks/:id/deliveries/:delivery_id"] as string).replace(
    /^\d+/,
    `${made.body.id}`,
  );
  const answer = await app.call("POST", `/api/v1/webhooks/${path}/resend`, { key: keys.all });
  expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
});

test("lists contain the caller's own rows and no others", async () => {
  const hooks = await app.as(keys.all).listWebhooks();
  expect(new Set(hooks.body.map((hook: { tenant_id: number }) => hook.tenant_id))).toEqual(new Set([mine.id]));
  expect((await app.as(keys.all).listWebhooks({ tenant_id: mine.id + 1 })).body).toEqual([]);
  const assets = await app.as(keys.all).listAssets();
  expect(new Set(assets.body.map((asset: { tenant_id: number }) => asset.tenant_id))).toEqual(new Set([mine.id]));
  expect((await app.as(keys.all).listTenants()).body.map((tenant: { id: number }) => tenant.id)).toEqual([mine.id]);
  expect((await app.as(keys.all).listAssets({ tenant_id: mine.id + 1 })).body).toEqual([]);
  const all = (await app.as({ admin: app.admin }).listTenants()).body.map(({ id }) => id);
  expect(all).toEqual(expect.arrayContaining([mine.id, mine.id + 1, mine.id + 2]));
  for (const path of [
    "collections",
    "collections/tree",
    "transcoding_jobs",
    "signing_keys",
    "usage/summary",
    "live/channels",
  ].map((each) => `/api/v1/${each}`)) {
    const owners = (await app.call("GET", path, { key: keys.all })).body.map((each: any) => each.tenant_id);
    expect(new Set(owners), path).toEqual(new Set([mine.id]));
    expect((await app.call("GET", `${path}?tenant_id=${mine.id + 1}`, { key: keys.all })).body).toEqual([]);
  }
});
