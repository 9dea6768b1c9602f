import { beforeAll, describe, expect, test } from "vitest";
import { newSetupCode } from "#features/credentials/sessions/setup.ts";
import { SCOPES } from "#platform/http/caller.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { signIn, withSession } from "#test/support/sessions.ts";
import { typedClient } from "#test/support/typed-client.ts";

const path = "/api/v1/session";
const password = "correct horse battery staple";
const HOUR_MS = 3_600_000;
let app: TestApp;
let people = 0;
beforeAll(async () => {
  // Every sign-in of this file comes from one address.
  app = await testApp({ rate_limit_session: "1000/60" });
  return app.close;
});

async function person(tenantId: number) {
  const email = `person-${++people}@example.com`;
  const body = { tenant_id: tenantId, email_address: email, password };
  const made = await app.as({ admin: app.admin }).createUser(body);
  expect(made.status).toBe(201);
  return { email, id: made.body.id as number };
}
const works = async (session: { cookie: string }, at = path) =>
  (await app.call("GET", at, { headers: { cookie: session.cookie } })).status === 200;

describe("a session", () => {
  test("of the admin token does what the admin token does", async () => {
    const session = await signIn(app, { admin_token: app.admin });
    expect(session.body).toEqual({
      subject: "admin",
      tenant_id: null,
      scopes: [...SCOPES],
      role: null,
      csrf_token: expect.any(String),
      expires_at: expect.any(String),
    });
    const call = withSession(app, session);
    const made = await typedClient(call)().createTenant({ name: "Made", slug: "made" });
    expect(made.status).toBe(201);
    expect((await typedClient(call)().getTenant("made")).body.id).toBe(made.body.id);
    expect((await call("GET", path)).body).toEqual(session.body);
  });

  test("of a key has the key's tenant and scopes", async () => {
    const tenant = await app.tenant();
    const session = await signIn(app, { api_key: await app.key(tenant.id, ["assets:read"]) });
    expect(session.body).toMatchObject({ subject: "api_key", tenant_id: tenant.id, scopes: ["assets:read"] });
    const call = withSession(app, session);
    expect((await typedClient(call)().listAssets()).status).toBe(200);
    expectError(await typedClient(call)().listWebhooks(), 403, "forbidden_scope");
    expectError(await typedClient(call)().listAuditEntries(), 401, "unauthorized");
    expectError(await typedClient(call)().revokeCurrentToken(), 404, "not_found");
  });

  test("of a user has all scopes in the user's tenant, and is audited as that user", async () => {
    const tenant = await app.tenant();
    const user = await person(tenant.id);
    const session = await signIn(app, { email: user.email.toUpperCase(), password });
    expect(session.body).toMatchObject({ subject: "user", tenant_id: tenant.id, scopes: [...SCOPES] });
    const call = withSession(app, session);
    const key = await typedClient(call)().createApiKey({ tenant_id: tenant.id, name: "Mine", scopes: ["assets:read"] });
    expect([key.status, key.body.tenant_id]).toEqual([201, tenant.id]);
    const audit = await app.as({ admin: app.admin }).listAuditEntries({ tenant_id: tenant.id });
    const actors = audit.body.map((entry) => [entry.route, entry.actor, entry.user_id, entry.key_id]);
    expect(actors).toContainEqual(["/api/v1/api_keys", "user", user.id, null]);
    expect(actors).toContainEqual([path, "user", user.id, null]);
    expect(audit.text).not.toContain(password);
  });

  test("is a cookie that scripts and other sites cannot use, stored as a hash", async () => {
    const body = { admin_token: app.admin };
    const plain = await app.as().createSession(body);
    expect(plain.headers.get("set-cookie")).toMatch(
      /^vodbox_session=[A-Za-z0-9]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const secure = await app
      .as({ headers: { origin: "https://video.example.com", host: "video.example.com" } })
      .createSession(body);
    expect(secure.headers.get("set-cookie")).toMatch(/; HttpOnly; SameSite=Strict; Secure$/);
    const [, token = ""] = /=(\w+);/.exec(plain.headers.get("set-cookie") ?? "") ?? [];
    const rows = await app.opened.app.db.all("SELECT * FROM sessions");
    expect(rows.length).toBeGreaterThan(1);
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(JSON.stringify(rows)).not.toContain(plain.body.csrf_token);
    for (const site of ["cross-site", "same-site"])
      expectError(await app.as({ headers: { "sec-fetch-site": site } }).createSession(body), 403, "cross_site");
    const own = await app.as({ headers: { "sec-fetch-site": "same-origin" } }).createSession(body);
    expect(own.status).toBe(201);
  });

  test("changes something only with its CSRF token", async () => {
    const tenant = await app.tenant();
    const session = await signIn(app, { api_key: await app.key(tenant.id) });
    const other = await signIn(app, { api_key: await app.key(tenant.id) });
    const body = { tenant_id: tenant.id, collection: { name: "C", slug: "c" } };
    const create = (headers: Record<string, string>) =>
      app.as({ headers: { cookie: session.cookie, ...headers } }).createCollection(body);
    for (const headers of [{}, { "x-csrf-token": "" }, { "x-csrf-token": "wrong" }, { "x-csrf-token": other.csrf }])
      expectError(await create(headers as Record<string, string>), 403, "csrf_token_required");
    expectError(await app.as({ headers: { cookie: session.cookie } }).deleteSession(), 403, "csrf_token_required");
    expect((await app.as({ headers: { cookie: session.cookie } }).listCollections()).body).toEqual([]);
    // A credential in a header needs none, and precedes the cookie.
    expect((await create({ "x-api-key": await app.key(tenant.id) })).status).toBe(201);
    expectError(await create({ "x-api-key": "svc_wrong" }), 401, "unauthorized");
  });

  test("ends when it is deleted, and only that one", async () => {
    const one = await signIn(app, { admin_token: app.admin });
    const two = await signIn(app, { admin_token: app.admin });
    const ended = await withSession(app, one)("DELETE", path);
    expect([ended.status, ended.text]).toEqual([204, ""]);
    expect(ended.headers.get("set-cookie")).toContain("vodbox_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    expect([await works(one), await works(two)]).toEqual([false, true]);
    expectError(await app.as().getSession(), 401, "unauthorized");
    expectError(await app.as({ admin: app.admin }).getSession(), 401, "unauthorized");
  });

  test("ends after 12 hours without use, and with its key's lifetime", async () => {
    const tenant = await app.tenant();
    const body = { tenant_id: tenant.id, expires_at: new Date(Date.now() + 30 * HOUR_MS).toISOString() };
    const key = (await app.as({ admin: app.admin }).createApiKey({ ...body, scopes: SCOPES })).body;
    const used = await signIn(app, { api_key: key.token });
    const unused = await signIn(app, { api_key: key.token });
    const usedAfter = async (hours: number) => {
      app.advance(hours * HOUR_MS);
      const answer = await app.as({ headers: { cookie: used.cookie } }).getSession();
      // The use is stored after the response: a write behind it in the queue waits for it.
      await app.opened.app.write(async () => {});
      return answer.status;
    };
    expect(await usedAfter(11)).toBe(200);
    expect(await usedAfter(2)).toBe(200);
    expect(await works(unused)).toBe(false);
    expect(await usedAfter(11)).toBe(200);
    expect(await usedAfter(5)).toBe(200);
    expect(await usedAfter(2)).toBe(401);
    await app.runTask("prune-sessions");
    const rows = await app.opened.app.db.all(`SELECT id FROM sessions WHERE tenant_id = ${tenant.id}`);
    expect(rows).toEqual([]);
  });

  test("ends for good with its key, its user's password, its user, its tenant and the admin token", async () => {
    const admin = (method: string, at: string, body?: unknown) =>
      app.call(method, `/api/v1/admin/${at}`, { admin: app.opened.app.secrets.admin_token, body });
    const tenant = await app.tenant();
    const changed = await person(tenant.id);
    const deleted = await person(tenant.id);
    const kept = await person(tenant.id);
    const made = await app.as({ admin: app.admin }).createApiKey({ tenant_id: tenant.id, scopes: SCOPES });
    const ofKey = await signIn(app, { api_key: made.body.token });
    const ofChanged = await signIn(app, { email: changed.email, password });
    const ofDeleted = await signIn(app, { email: deleted.email, password });
    const ofKept = await signIn(app, { email: kept.email, password });
    const ofAdmin = await signIn(app, { admin_token: app.admin });
    await app.as({ admin: app.admin }).revokeApiKey(made.body.id);
    expect(await works(ofKey)).toBe(false);
    await admin("PATCH", `users/${changed.id}`, { password: `${password}!` });
    expect(await works(ofChanged)).toBe(false);
    await admin("DELETE", `users/${deleted.id}`);
    expect(await works(ofDeleted)).toBe(false);
    expect(await works(ofKept)).toBe(true);
    await admin("PATCH", `tenants/${tenant.id}`, { status: "suspended" });
    expect(await works(ofKept)).toBe(false);
    expectError(await app.as().createSession({ email: kept.email, password }), 401, "unauthorized");
    await admin("PATCH", `tenants/${tenant.id}`, { status: "active" });
    expect(await works(ofKept)).toBe(false);
    expect(await works(await signIn(app, { email: kept.email, password }))).toBe(true);
    expect(await works(ofAdmin)).toBe(true);
    const { secrets } = app.opened.app;
    const old = secrets.admin_token;
    expect((await admin("POST", "tokens/admin/rotate")).status).toBe(200);
    expect(await works(ofAdmin)).toBe(false);
    secrets.admin_token = old;
    expect(await works(ofAdmin)).toBe(false);
  });

  test("is not valid with another admin token than that of its start", async () => {
    const session = await signIn(app, { admin_token: app.admin });
    const { secrets } = app.opened.app;
    // As after a restart with another token in the settings.
    secrets.admin_token = "another-token-of-the-settings";
    expect(await works(session)).toBe(false);
    secrets.admin_token = app.admin;
  });
});

describe("a sign-in", () => {
  test("needs exactly one credential", async () => {
    const both = { admin_token: app.admin, api_key: "svc_x" };
    for (const body of [{}, both, { email: "a@example.com" }, { password }, { api_key: "k", password }])
      expectError(await app.as().createSession(body), 422, "parameter_missing");
  });

  test("is refused alike for every wrong credential", async () => {
    const tenant = await app.tenant();
    const user = await person(tenant.id);
    const wrong = [
      { admin_token: "wrong" },
      { api_key: "svc_wrong" },
      { email: user.email, password: "wrong password" },
      { email: "nobody@example.com", password },
    ];
    const answers = await Promise.all(wrong.map((body) => app.as().createSession(body)));
    const told = new Set(
      answers.map(({ status, error, headers }) => `${status} ${error.error} ${headers.get("set-cookie")}`),
    );
    expect([...told]).toEqual(["401 These credentials are wrong, revoked or expired. null"]);
  });

  test("is refused from an address after ten failures, until the window has passed", async () => {
    const limited = await testApp({ trusted_proxies: ["127.0.0.0/8"] });
    const attempt = (admin_token: string) => limited.as().createSession({ admin_token });
    for (let count = 0; count < 20; count++) expect((await attempt(limited.admin)).status).toBe(201);
    // Concurrent guesses are counted one by one.
    const guesses = await Promise.all(Array.from({ length: 30 }, () => attempt("wrong")));
    expect(guesses.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(guesses.filter(({ status }) => status === 429)).toHaveLength(20);
    const refused = await attempt(limited.admin);
    expectError(refused, 429, "rate_limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
    await limited.close();
  });

  test("beyond a thousand sessions of one credential ends the oldest", async () => {
    const tenant = await app.tenant();
    const api_key = await app.key(tenant.id);
    const first = await signIn(app, { api_key });
    const second = await signIn(app, { api_key });
    for (let count = 0; count < 999; count++) await signIn(app, { api_key });
    expect([await works(first), await works(second)]).toEqual([false, true]);
  });
});

describe("the set-up of an empty server", () => {
  const setUp = (of: TestApp, body: unknown) => of.as().unchecked.setUpServer(body);
  const owner = { name: "Café Olé!", email: "Ann@example.com", password };

  test("creates the first tenant and user, once, and signs in", async () => {
    const fresh = await testApp();
    const old = await newSetupCode(fresh.opened.app);
    const code = await newSetupCode(fresh.opened.app);
    expectError(await setUp(fresh, { ...owner, code: "wrong" }), 401, "unauthorized");
    expectError(await setUp(fresh, { ...owner, code: old }), 401, "unauthorized");
    expectError(await setUp(fresh, { ...owner, code, password: "short" }), 422, "validation_failed");
    const answers = await Promise.all([setUp(fresh, { ...owner, code }), setUp(fresh, { ...owner, code })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 401]);
    const made = answers.find(({ status }) => status === 201);
    const [cookie = ""] = (made?.headers.get("set-cookie") ?? "").split(";");
    const tenants = await fresh.as({ headers: { cookie } }).listTenants();
    expect(tenants.body).toMatchObject([
      { id: made?.body.tenant_id, name: "Café Olé!", slug: "cafe-ole", plan_name: "pro" },
    ]);
    expect((await signIn(fresh, { email: owner.email, password })).body.subject).toBe("user");
    expect(await newSetupCode(fresh.opened.app)).toBe(null);
    await fresh.close();
  });

  test("is not possible after an hour, or when a tenant exists", async () => {
    const fresh = await testApp();
    const code = await newSetupCode(fresh.opened.app);
    fresh.advance(HOUR_MS + 1);
    expectError(await setUp(fresh, { ...owner, code }), 401, "unauthorized");
    const again = await newSetupCode(fresh.opened.app);
    await fresh.tenant();
    expectError(await setUp(fresh, { ...owner, code: again }), 401, "unauthorized");
    await fresh.close();
  });
});
