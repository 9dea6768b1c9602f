import { Secret, TOTP } from "otpauth";
import { beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { signIn, withSession } from "#test/support/sessions.ts";
import { typedClient } from "#test/support/typed-client.ts";

const PASSWORD = "correct horse";
const STEP_MS = 30_000;
let app: TestApp;
beforeAll(async () => {
  app = await testApp({ rate_limit_session: "1000/60", rate_limit_device_tokens: "1000/60" });
  // In the middle of a step.
  app.stopClock();
  app.advance(STEP_MS - (app.opened.app.clock.now() % STEP_MS) + STEP_MS / 2);
  return app.close;
});

let people = 0;
async function person(at: TestApp = app) {
  const tenant = await at.tenant({ slug: `totp-${++people}` });
  const email = `ann-${people}@example.com`;
  const body = { tenant_id: tenant.id, email, role: "admin", password: PASSWORD };
  expect((await at.as({ admin: at.admin }).createTenantUser(body)).status).toBe(201);
  const call = withSession(at, await signIn(at, { email, password: PASSWORD }));
  return { email, call, me: typedClient(call)() };
}

/** The code of a time `steps` away from now. */
const codeOf = (secret: string, steps = 0) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({
    timestamp: app.opened.app.clock.now() + steps * STEP_MS,
  });

/** A person whose second factor is on. */
async function withFactor() {
  const one = await person();
  const { body } = await one.me.createMyTotp();
  const confirmed = await one.me.confirmMyTotp({ code: codeOf(body.secret) });
  expect(confirmed.status, confirmed.text).toBe(200);
  return { ...one, secret: body.secret as string, recovery: confirmed.body.recovery_codes as string[] };
}

const begin = (email: string, totp?: string, password = PASSWORD) =>
  app.as().createSession({ email, password, ...(totp !== undefined && { totp }) });

test("the factor is on once a code has confirmed it, and has a QR code and recovery codes", async () => {
  const { me, email } = await person();
  expectError(await me.confirmMyTotp({ code: "000000" }), 409, "totp_not_started");
  const { body } = await me.createMyTotp();
  expect(body).toEqual({
    secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
    uri: expect.stringContaining(`secret=${body.secret}`),
    qr_svg: expect.stringMatching(/^<svg /),
  });
  expect(body.uri).toMatch(/^otpauth:\/\/totp\/vodbox/);
  // Not before.
  expect((await begin(email)).status).toBe(201);
  expect((await me.getMe()).body.totp_enabled).toBe(false);
  expectError(await me.confirmMyTotp({ code: "12345" }), 403, "wrong_code");
  const confirmed = await me.confirmMyTotp({ code: codeOf(body.secret) });
  expect(confirmed.body.recovery_codes).toHaveLength(10);
  expect(new Set(confirmed.body.recovery_codes).size).toBe(10);
  expect((await me.getMe()).body.totp_enabled).toBe(true);
  expectError(await me.createMyTotp(), 409, "totp_enabled");
  expectError(await begin(email), 401, "totp_required");
  // Wrong passwords are answered as before.
  expectError(await begin(email, undefined, "wrong"), 401, "unauthorized");
  const { body: entries } = await app.as({ admin: app.admin }).listAuditEntries();
  expect(JSON.stringify(entries)).not.toContain(body.secret);
});

test("a code works once, and one step before and after", async () => {
  const { email, secret } = await withFactor();
  // The code of the confirmation has been used.
  expectError(await begin(email, codeOf(secret)), 401, "unauthorized");
  expect((await begin(email, codeOf(secret, 1))).status).toBe(201);
  expectError(await begin(email, codeOf(secret, 1)), 401, "unauthorized");
  app.advance(3 * STEP_MS);
  expectError(await begin(email, codeOf(secret, -2)), 401, "unauthorized");
  expectError(await begin(email, codeOf(secret, 2)), 401, "unauthorized");
  const code = codeOf(secret, -1);
  expect((await begin(email, `${code.slice(0, 3)} ${code.slice(3)}`)).status).toBe(201);
  const both = await Promise.all([begin(email, codeOf(secret)), begin(email, codeOf(secret))]);
  expect(both.map(({ status }) => status).toSorted()).toEqual([201, 401]);
});

test("a recovery code works once", async () => {
  const { email, recovery } = await withFactor();
  const [first = "", second = ""] = recovery;
  expect((await begin(email, first)).status).toBe(201);
  expectError(await begin(email, first), 401, "unauthorized");
  expect((await begin(email, second.toUpperCase().replaceAll("-", " "))).status).toBe(201);
});

test("the factor is switched off with a code, and by the operator", async () => {
  const { me, email, recovery } = await withFactor();
  const off = (code: string) => me.deleteMyTotp({ code });
  expectError(await off("000000"), 403, "wrong_code");
  expect((await off(recovery[0] as string)).status).toBe(204);
  expect((await begin(email)).status).toBe(201);
  expectError(await off("000000"), 409, "totp_off");

  const other = await withFactor();
  const clear = () => app.as({ admin: app.admin }).clearUserTotp(other.email);
  expect((await clear()).status).toBe(204);
  expect((await clear()).status).toBe(204);
  expect((await begin(other.email)).status).toBe(201);
});

test("device tokens need a code too, and a new password leaves the factor on", async () => {
  const { me, email, secret } = await withFactor();
  const redeem = (totp?: string) => app.as().createDeviceToken({ email_address: email, password: PASSWORD, totp });
  expectError(await redeem(), 401, "totp_required");
  expectError(await redeem("000000"), 401, "unauthorized");
  expect((await redeem(codeOf(secret, 1))).status).toBe(201);
  const body = { current_password: PASSWORD, new_password: "battery staple" };
  expect((await me.changeMyPassword(body)).status).toBe(204);
  expectError(await begin(email, undefined, "battery staple"), 401, "totp_required");
});

test("wrong codes are limited by user, and asking for a code is no failure", async () => {
  const strict = await testApp({ rate_limit_session: "5/60" });
  const { call, me, email } = await person(strict);
  const { body } = await typedClient(call)().createMyTotp();
  const code = new TOTP({ secret: Secret.fromBase32(body.secret) }).generate();
  expect((await me.confirmMyTotp({ code })).status).toBe(200);
  const attempt = (totp?: string) => strict.as().createSession({ email, password: PASSWORD, ...(totp && { totp }) });
  for (let n = 0; n < 7; n++) expectError(await attempt(), 401, "totp_required");
  const off = () => typedClient(call)().deleteMyTotp({ code: "000000" });
  const codes = [];
  for (let n = 0; n < 7; n++) codes.push((await off()).error.code);
  expect(new Set(codes)).toEqual(new Set(["wrong_code", "rate_limited"]));
  // Whatever the address and the route.
  expectError(await attempt("000000"), 429, "rate_limited");
  expectError(await attempt(), 401, "totp_required");
  await strict.close();
});
