import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { sessionFrom, signIn, withSession } from "#test/support/sessions.ts";
import { typedClient } from "#test/support/typed-client.ts";

const PASSWORD = "correct horse";
const HOURS_72 = 72 * 3_600_000;
let app: TestApp;

beforeAll(async () => {
  app = await testApp();
});
afterAll(() => app.close());

let tenants = 0;
/** A tenant with one admin, who is signed in. */
async function company(at: TestApp = app) {
  const slug = `company-${++tenants}`;
  const tenant = await at.tenant({ slug });
  const email = `boss@${slug}.example`;
  const body = { tenant_id: tenant.id, email, role: "admin", password: PASSWORD };
  const { body: boss } = await at.as({ admin: at.admin }).createTenantUser(body);
  const call = withSession(at, await signIn(at, { email, password: PASSWORD }));
  return { tenant, boss, email, call, me: typedClient(call)(), slug };
}

describe("users", () => {
  test("are created, listed, changed and deleted by an admin, within the tenant", async () => {
    const { me, boss, slug, tenant } = await company();
    const other = await company();
    const made = await me.createTenantUser({
      email: `Ed@${slug}.example`,
      name: "Ed",
      role: "editor",
      password: PASSWORD,
    });
    expect(made.body).toEqual({
      id: expect.any(Number),
      tenant_id: tenant.id,
      email: `ed@${slug}.example`,
      name: "Ed",
      role: "editor",
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await me.listTenantUsers()).body.map(({ id }) => id)).toEqual([boss.id, made.body.id]);
    const at = `/api/v1/users/${made.body.id}`;
    for (const method of ["GET", "PATCH", "DELETE"])
      expectError(await other.call(method, at, method === "PATCH" ? { body: {} } : {}), 404, "not_found");
    const editor = withSession(app, await signIn(app, { email: `ed@${slug}.example`, password: PASSWORD }));
    expect((await me.updateTenantUser(made.body.id, { role: "viewer", name: null })).body).toMatchObject({
      role: "viewer",
      name: null,
    });
    // At once, in the session that exists.
    expectError(await editor("POST", "/api/v1/collections", { body: { name: "x" } }), 403, "forbidden_role");
    expect((await me.deleteTenantUser(made.body.id)).status).toBe(204);
    expect((await editor("GET", "/api/v1/session")).status).toBe(401);
  });

  test("an admin remains", async () => {
    const { me, boss, slug } = await company();
    expectError(await me.deleteTenantUser(boss.id), 409, "last_admin");
    expectError(await me.updateTenantUser(boss.id, { role: "editor" }), 409, "last_admin");
    expectError(await app.as({ admin: app.admin }).deleteTenantUser(boss.id), 409, "last_admin");
    const second = { email: `two@${slug}.example`, role: "admin", password: PASSWORD };
    const { body } = await me.createTenantUser(second);
    const [one, two] = await Promise.all([
      me.updateTenantUser(boss.id, { role: "viewer" }),
      app.as({ admin: app.admin }).deleteTenantUser(body.id),
    ]);
    expect([one.status, two.status].filter((status) => status < 300)).toHaveLength(1);
    // The operator may do it.
    expect((await app.as({ admin: app.admin }).deleteUser(boss.id)).status).toBe(204);
  });

  test.each([
    [{ email: "no address" }, "email"],
    [{ email: "boss@company-1.example" }, "email"],
    [{ role: "owner" }, "role"],
    [{ password: "short" }, "password"],
    [{ name: "x".repeat(201) }, "name"],
    [{ role: undefined }, "role"],
  ])("%j is invalid", async (change, field) => {
    const { me } = await company();
    const body = { email: "new@example.com", role: "editor", password: PASSWORD, ...change };
    const refused = await me.unchecked.createTenantUser(body);
    expect([refused.status, Object.keys(refused.error.details)]).toEqual([422, [field]]);
  });
});

describe("an invitation", () => {
  const invite = (call: ReturnType<typeof withSession>, email: string, role = "editor") =>
    typedClient(call)().createInvitation({ email, role });
  const codeOf = ({ url }: { url: string }) => url.split("/").at(-1) as string;
  const accept = (code: string) => app.as().acceptInvitation(code, { name: "Ann", password: PASSWORD });

  test("makes a user of its address and role, once, and signs in", async () => {
    const { call, me, slug } = await company();
    const { status, body } = await invite(call, `ann@${slug}.example`);
    expect(status).toBe(201);
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(HOURS_72);
    expect((await me.listInvitations()).body).toEqual([expect.not.objectContaining({ url: expect.anything() })]);
    const code = codeOf(body);
    expect((await app.as().getInvitation(code)).body).toMatchObject({
      email: `ann@${slug}.example`,
      role: "editor",
      tenant_name: expect.any(String),
    });
    const [one, two] = await Promise.all([accept(code), accept(code)]);
    expect([one.status, two.status].toSorted()).toEqual([201, 410]);
    const ann = withSession(app, sessionFrom(one.status === 201 ? one : two));
    expect((await ann("GET", "/api/v1/me")).body).toMatchObject({ name: "Ann", role: "editor" });
    expectError(await app.as().getInvitation(code), 410, "invitation_ended");
    expect((await me.listInvitations()).body).toEqual([]);
    const { body: entries } = await app.as({ admin: app.admin }).listAuditEntries();
    expect(JSON.stringify(entries)).not.toContain(code);
  });

  test("ends by revocation, after 72 hours, and by a newer one to the same address", async () => {
    const { call, me, slug } = await company();
    const revoked = (await invite(call, `a@${slug}.example`)).body;
    expect((await me.revokeInvitation(revoked.id)).status).toBe(204);
    expectError(await me.revokeInvitation(revoked.id), 404, "not_found");
    const replaced = (await invite(call, `b@${slug}.example`)).body;
    const newer = (await invite(call, `b@${slug}.example`)).body;
    for (const one of [revoked, replaced]) expectError(await accept(codeOf(one)), 410, "invitation_ended");
    app.advance(HOURS_72);
    expectError(await accept(codeOf(newer)), 410, "invitation_ended");
    expectError(await accept("unknown"), 404, "not_found");
    app.advance(31 * 24 * 3_600_000);
    await app.runTask("prune-invitations");
    expectError(await accept(codeOf(newer)), 404, "not_found");
  });

  test("is not for an address that is taken, nor by another tenant's admin to revoke", async () => {
    const one = await company();
    const other = await company();
    expectError(await invite(one.call, one.email), 422, "validation_failed");
    const { body } = await invite(one.call, `c@${one.slug}.example`);
    expectError(await other.me.revokeInvitation(body.id), 404, "not_found");
    expect((await other.me.listInvitations()).body).toEqual([]);
  });
});

describe("one's own account", () => {
  test("is read and changed", async () => {
    const { me, email } = await company();
    expect((await me.getMe()).body).toMatchObject({
      email,
      tenant_name: expect.any(String),
      role: "admin",
      language: null,
      theme: null,
    });
    const body = { name: "Boss", language: "de", theme: "dark" };
    expect((await me.updateMe(body)).body).toMatchObject(body);
    expect((await me.unchecked.updateMe({ role: "viewer" })).body.role).toBe("admin");
    expectError(await me.updateMe({ language: "xx" }), 422, "validation_failed");
    const ofAdmin = withSession(app, await signIn(app, { admin_token: app.admin }));
    expectError(await ofAdmin("GET", "/api/v1/me"), 404, "not_found");
  });

  test("a new password ends other sessions and device tokens, not this session", async () => {
    const { me, email } = await company();
    const second = withSession(app, await signIn(app, { email, password: PASSWORD }));
    const device = await app.as().createDeviceToken({ email_address: email, password: PASSWORD });
    const change = (current_password: string) =>
      me.changeMyPassword({ current_password, new_password: "battery staple" });
    expectError(await change("wrong"), 403, "wrong_password");
    expect((await change(PASSWORD)).status).toBe(204);
    expect((await me.getMe()).status).toBe(200);
    expect((await second("GET", "/api/v1/me")).status).toBe(401);
    expect((await app.as(device.body.token).listAssets()).status).toBe(401);
    await signIn(app, { email, password: "battery staple" });
  });

  test("guesses of the current password are limited, whatever their address", async () => {
    const strict = await testApp({ rate_limit_session: "5/60" });
    const { call } = await company(strict);
    const guess = () => typedClient(call)().changeMyPassword({ current_password: "wrong", new_password: PASSWORD });
    const codes = [];
    for (let n = 0; n < 7; n++) codes.push((await guess()).error.code);
    expect(new Set(codes)).toEqual(new Set(["wrong_password", "rate_limited"]));
    await strict.close();
  });

  test("sessions are listed and ended", async () => {
    const { me, email } = await company();
    const headers = { "user-agent": "Firefox" };
    const second = withSession(app, await signIn(app, { email, password: PASSWORD }, headers));
    const third = withSession(app, await signIn(app, { email, password: PASSWORD }));
    const { body } = await me.listMySessions();
    expect(body.map((one) => [one.is_current, one.user_agent])).toEqual([
      [false, null],
      [false, "Firefox"],
      [true, null],
    ]);
    expect((await me.endMySession(body[1].id)).status).toBe(204);
    expect((await second("GET", "/api/v1/me")).status).toBe(401);
    const other = await company();
    expectError(await other.me.endMySession(body[0].id), 404, "not_found");
    expect((await me.endMyOtherSessions()).status).toBe(204);
    expect([(await third("GET", "/api/v1/me")).status, (await me.getMe()).status]).toEqual([401, 200]);
  });
});
