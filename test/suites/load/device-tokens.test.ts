import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { nightly } from "#test/support/nightly.ts";

const password = "correct horse battery staple";
let app: TestApp;
let tenant: { id: number };
beforeAll(async () => {
  // Every attempt in this file comes from one address.
  app = await testApp({ rate_limit_device_tokens: "1000/60" });
  tenant = await app.tenant();
  return app.close;
});
const admin = (method: string, at: string, body?: unknown) =>
  app.call(method, `/api/v1/admin/${at}`, { admin: app.admin, body });
const redeem = (body: unknown) => app.as().unchecked.createDeviceToken(body);
const person = async (email: string, of = tenant.id) => {
  const made = await admin("POST", "users", { tenant_id: of, email_address: email, password });
  expect(made.status).toBe(201);
  return made.body;
};
const works = async (token: string) => (await app.as(token).listAssets()).status === 200;
const toldNothing = ({ status, body: { request_id: _, ...body } }: Answer) => ({ status, body });

describe("a device token", () => {
  test("is issued for an email address and password, once, as a key of the tenant", async () => {
    await person("Ann@Example.com");
    const made = await redeem({ email_address: " ann@example.COM", password, device_name: "Ann's laptop" });
    expect([made.status, made.body]).toEqual([
      201,
      {
        token: expect.stringMatching(/^svc_[A-Za-z0-9]{40}$/),
        token_type: "api_key",
        api_key_id: expect.any(Number),
        tenant_id: tenant.id,
        scopes: ["assets:read", "assets:write"],
        device_name: "Ann's laptop",
      },
    ]);
    expect(await works(made.body.token)).toBe(true);
    const keys = await app.as({ admin: app.admin }).listApiKeys({ tenant_id: tenant.id });
    expect(keys.body[0]).toMatchObject({ id: made.body.api_key_id, name: "Ann's laptop" });
    expect(keys.text).not.toContain(made.body.token);
    const beyond = await app.as(made.body.token).listApiKeys();
    expectError(beyond, 403, "forbidden_scope");
  });

  test("is issued for a pairing code, once, however it is typed", async () => {
    const { body: code } = await admin("POST", "pairing_codes", { tenant_id: tenant.id });
    expect(code.pairing_code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$/);
    const typed = ` ${code.pairing_code.toLowerCase().replaceAll("0", "o").replaceAll("1", "l").replace("-", " ")}`;
    const [first, second] = await Promise.all([redeem({ pairing_code: typed }), redeem({ pairing_code: typed })]);
    const [made, refused] = first.status === 201 ? [first, second] : [second, first];
    expect([made.status, made.body.tenant_id, await works(made.body.token)]).toEqual([201, tenant.id, true]);
    expectError(refused, 401, "unauthorized");
    expectError(await redeem({ pairing_code: code.pairing_code }), 401, "unauthorized");
  });

  test("is not issued for an expired code", async () => {
    const { body: code } = await admin("POST", "pairing_codes", { tenant_id: tenant.id });
    app.advance(600_001);
    expectError(await redeem({ pairing_code: code.pairing_code }), 401, "unauthorized");
  });

  test("revokes itself, and only itself", async () => {
    await person("two@example.com");
    const one = await redeem({ email_address: "two@example.com", password });
    const two = await redeem({ email_address: "two@example.com", password });
    const gone = await app.as(one.body.token).revokeCurrentToken();
    expect([gone.status, gone.text]).toEqual([204, ""]);
    expect([await works(one.body.token), await works(two.body.token)]).toEqual([false, true]);
    expectError(await app.as(one.body.token).revokeCurrentToken(), 401, "unauthorized");
    expectError(await app.as({ admin: app.admin }).revokeCurrentToken(), 404, "not_found");
  });
});

describe("a refused client", () => {
  test("gets the same response for an unknown address, a wrong password and a wrong code", async () => {
    await person("known@example.com");
    const refused = [
      await redeem({ email_address: "unknown@example.com", password }),
      await redeem({ email_address: "known@example.com", password: `${password}!` }),
      await redeem({ pairing_code: "0000-0000" }),
    ];
    for (const answer of refused) expectError(answer, 401, "unauthorized");
    expect(new Set(refused.map((answer) => JSON.stringify(toldNothing(answer)))).size).toBe(1);
  });

  nightly("cannot distinguish them by time either", async () => {
    await person("timed@example.com");
    const times = { unknown: [] as number[], wrong: [] as number[] };
    for (let round = 0; round < 7; round++) {
      for (const [name, email] of [
        ["unknown", "nobody@example.com"],
        ["wrong", "timed@example.com"],
      ] as const) {
        const from = performance.now();
        await redeem({ email_address: email, password: "wrong password" });
        times[name].push(performance.now() - from);
      }
    }
    // Without hashing a response takes a millisecond or two, with it a hundred. A busy machine only adds to it.
    const unknown = Math.min(...times.unknown);
    const wrong = Math.min(...times.wrong);
    expect(unknown / wrong).toBeGreaterThan(0.6);
    expect(unknown / wrong).toBeLessThan(1.6);
    expect(unknown).toBeGreaterThan(20);
  });

  test("unknown: users of a suspended tenant are answered like unknown ones; a free plan has no keys", async () => {
    const asleep = await app.tenant();
    const free = await app.tenant({ plan_name: "free" });
    await person("asleep@example.com", asleep.id);
    await person("free@example.com", free.id);
    await admin("PATCH", `tenants/${asleep.id}`, { status: "suspended" });
    expectError(await redeem({ email_address: "asleep@example.com", password }), 401, "unauthorized");
    expectError(await redeem({ email_address: "free@example.com", password: "wrong password" }), 401, "unauthorized");
    expectError(await redeem({ email_address: "free@example.com", password }), 403, "plan_required");
    const { body: code } = await admin("POST", "pairing_codes", { tenant_id: free.id });
    expectError(await redeem({ pairing_code: code.pairing_code }), 403, "plan_required");
    await admin("PATCH", `tenants/${free.id}`, { plan_name: "pro" });
    expect((await redeem({ pairing_code: code.pairing_code })).status).toBe(201);
  });

  test.each<[unknown, string]>([
    [{}, "parameter_missing"],
    [{ email_address: "a@b.c" }, "parameter_missing"],
    [{ password }, "parameter_missing"],
    [{ email_address: "no address", password }, "validation_failed"],
    [{ email_address: "a@b.c", password: 1 }, "validation_failed"],
    [{ pairing_code: " " }, "validation_failed"],
    [{ pairing_code: "x", device_name: "" }, "validation_failed"],
  ])("gets 422 for %j", async (body, code) => expectError(await redeem(body), 422, code));

  test("must wait after ten attempts a minute from one address", async () => {
    const strict = await testApp();
    const guess = () => strict.as().createDeviceToken({ pairing_code: "0000-0000" });
    for (let n = 0; n < 10; n++) expect((await guess()).status).toBe(401);
    const limited = await guess();
    expectError(limited, 429, "rate_limited");
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(limited.headers.get("ratelimit-policy")).toBe('"device_tokens";q=10;w=60');
    await strict.close();
  });

  test("is asked to retry when too many sign in at once, and the others succeed", async () => {
    await person("crowd@example.com");
    const all = await Promise.all(
      Array.from({ length: 40 }, () => redeem({ email_address: "crowd@example.com", password })),
    );
    const statuses = Map.groupBy(all, ({ status }) => status);
    expect([...statuses.keys()].sort()).toEqual([201, 503]);
    for (const answer of statuses.get(503) ?? []) expectError(answer, 503, "busy");
    expect(statuses.get(201)?.length).toBeGreaterThanOrEqual(32);
  });
});

describe("a user", () => {
  test("has an address that is unique over all tenants, and a password of at least 8 characters that no response contains", async () => {
    const made = await person("one@example.com");
    expect(JSON.stringify(made)).not.toMatch(/password|scrypt/);
    const other = (await app.tenant()).id;
    const write = (fields: unknown) => admin("POST", "users", { tenant_id: other, password, ...(fields as object) });
    expectError(await write({ email_address: "ONE@example.com" }), 422, "validation_failed");
    expectError(await write({ email_address: "x@example.com", password: "7 chars" }), 422, "validation_failed");
    expectError(await write({ email_address: "x@example.com", tenant_id: 987_654 }), 404, "not_found");
    const listed = await admin("GET", `users?tenant_id=${tenant.id}`);
    expect(listed.body.map((user: any) => user.email_address)).toContain("one@example.com");
    expect(listed.text).not.toMatch(/password|scrypt/);
    expect((await admin("GET", `users?tenant_id=${other}`)).body).toEqual([]);
  });

  test("can get another password, and the old one is refused", async () => {
    await person("new@example.com");
    const changed = await admin("PATCH", "users/NEW@example.com", { password: "another password" });
    expect(changed.status).toBe(200);
    expectError(await redeem({ email_address: "new@example.com", password }), 401, "unauthorized");
    expect((await redeem({ email_address: "new@example.com", password: "another password" })).status).toBe(201);
    expectError(await admin("PATCH", "users/nobody@example.com", { password }), 404, "not_found");
  });

  test("with another password loses every device that the old one paired, and nothing else", async () => {
    const email_address = "rotated@example.com";
    await person(email_address);
    const devices = [];
    for (const device_name of ["phone", "television", "studio"])
      devices.push((await redeem({ email_address, password, device_name })).body.token);
    const { body: code } = await admin("POST", "pairing_codes", { tenant_id: tenant.id });
    const paired = (await redeem({ pairing_code: code.pairing_code })).body.token;
    await person("colleague@example.com");
    const colleague = (await redeem({ email_address: "colleague@example.com", password })).body.token;
    const issued = await app.key(tenant.id);
    for (const token of [...devices, paired, colleague, issued]) expect(await works(token)).toBe(true);
    expect((await admin("PATCH", `users/${email_address}`, { password: "another password" })).status).toBe(200);
    for (const token of devices) expect(await works(token)).toBe(false);
    for (const token of [paired, colleague, issued]) expect(await works(token)).toBe(true);
    // Tokens from the new password stay valid, also when the same password is set again with another email.
    const fresh = (await redeem({ email_address, password: "another password" })).body.token;
    expect((await admin("PATCH", "users/colleague@example.com", { password: "another password" })).status).toBe(200);
    expect([await works(fresh), await works(colleague)]).toEqual([true, false]);
  });

  test("is deleted with the devices that were paired by the password, and with no others", async () => {
    const { id } = await person("leaving@example.com");
    const theirs = (await redeem({ email_address: "leaving@example.com", password })).body.token;
    const others = await app.key(tenant.id);
    expect((await admin("DELETE", `users/${id}`)).status).toBe(204);
    expect([await works(theirs), await works(others)]).toEqual([false, true]);
    expectError(await redeem({ email_address: "leaving@example.com", password }), 401, "unauthorized");
    expectError(await admin("DELETE", `users/${id}`), 404, "not_found");
  });
});
