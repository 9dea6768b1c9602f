import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROLES, type Role } from "#model/enums.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { signIn, withSession } from "#test/support/sessions.ts";

const PASSWORD = "correct horse";
let app: TestApp;
let tenantId: number;
const as: Record<string, ReturnType<typeof withSession>> = {};

beforeAll(async () => {
  app = await testApp();
  tenantId = (await app.tenant()).id;
  for (const role of ROLES) {
    const email = `${role}@example.com`;
    const body = { tenant_id: tenantId, email, role, password: PASSWORD };
    expect((await app.as({ admin: app.admin }).createTenantUser(body)).status).toBe(201);
    as[role] = withSession(app, await signIn(app, { email, password: PASSWORD }));
  }
});
afterAll(() => app.close());

/** Everything that a role may not call, by rules of its own: method, then path. */
const FOR_ADMINS =
  /^(GET|POST|PUT|PATCH|DELETE) \/api\/v1\/(users|api_keys|signing_keys|webhooks|usage|billing|activity|tenants\/)/;
const NO_CHANGE = /^\/mcp$|\/vr_manifest\.json$|\/live\/channels\/:id\/token$|\/device_tokens\/current$/;
const CONTRIBUTES = /^GET \/api\/v1\/(uploads|ingest_batches|assets\/:id\/download|analytics\/viewers)\b/;
function isForbidden(role: Role, method: string, path: string): boolean {
  const called = `${method} ${path}`;
  if (role === "admin") return false;
  if (FOR_ADMINS.test(called) || called === "GET /api/v1/assets/:id/deliveries") return true;
  return role === "viewer" && ((method !== "GET" && !NO_CHANGE.test(path)) || CONTRIBUTES.test(called));
}

describe.each(ROLES)("the role %s", (role) => {
  test("may call what the tenant's people of this role do, and nothing else", async () => {
    const wrong: string[] = [];
    for (const { method, path, credential } of app.opened.routes) {
      // The response to HEAD has no body with a code.
      if (credential !== "key" || method === "HEAD" || path.endsWith("/events/stream")) continue;
      const url = path.replaceAll(/\*\*:\w+|:\w+/g, "999");
      const { body } = (await as[role]?.(method, url, method === "GET" ? {} : { body: {} })) ?? {};
      const isRefused = body?.code === "forbidden_role";
      if (isRefused !== isForbidden(role, method, path)) wrong.push(`${method} ${path}: ${body?.code}`);
    }
    expect(wrong).toEqual([]);
  });

  test("is named by the session, with its scopes", async () => {
    const { body } = (await as[role]?.("GET", "/api/v1/session")) ?? {};
    expect([body.role, body.scopes.includes("api_keys:write"), body.scopes.includes("assets:write")]).toEqual([
      role,
      role === "admin",
      role !== "viewer",
    ]);
  });

  let count = 0;
  test("limits device tokens, also when it changes later", async () => {
    const email = `device-${role}@example.com`;
    const user = await app
      .as({ admin: app.admin })
      .createTenantUser({ tenant_id: tenantId, email, role, password: PASSWORD });
    const { body } = await app.as().createDeviceToken({ email_address: email, password: PASSWORD });
    const create = () =>
      app
        .as(body.token)
        .createCollection({ tenant_id: tenantId, collection: { name: role, slug: `${role}-${++count}` } });
    const first = await create();
    expect([first.status, body.scopes], first.text).toEqual(
      role === "viewer" ? [403, ["assets:read"]] : [201, ["assets:read", "assets:write"]],
    );
    await app.as({ admin: app.admin }).updateTenantUser(user.body.id, { role: "viewer" });
    expectError(await create(), 403, "forbidden_role");
    expect((await app.as(body.token).listAssets()).status).toBe(200);
  });
});

test("API keys and sessions of keys are no admins", async () => {
  const key = await app.key(tenantId);
  expectError(await app.as(key).listTenantUsers(), 403, "forbidden_role");
  const session = withSession(app, await signIn(app, { api_key: key }));
  expectError(await session("GET", "/api/v1/users"), 403, "forbidden_role");
});
