import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer } from "#test/support/client.ts";
import { type Account, startProvider, throughProvider } from "#test/support/oidc.ts";
import { signIn, withSession } from "#test/support/sessions.ts";

const PASSWORD = "correct horse";
let app: TestApp;
let provider: Awaited<ReturnType<typeof startProvider>>;
beforeAll(async () => {
  provider = await startProvider();
  app = await testApp({
    oidc_issuer: provider.issuer,
    oidc_client_id: "vodbox",
    oidc_client_secret: "client-secret",
    oidc_tenant_claim: "tenant",
    oidc_role_claim: "groups",
    rate_limit_session: "1000/60",
  });
});
afterAll(async () => {
  await app.close();
  await provider.close();
});

const pathOf = (url: string) => url.slice("http://vodbox.test".length);
const cookiesOf = ({ headers }: Answer) =>
  headers
    .getSetCookie()
    .map((one) => one.split(";")[0] as string)
    .filter((one) => !one.endsWith("="))
    .join("; ");

async function start() {
  const begun = await app.call("GET", "/api/v1/session/oidc/start");
  expect(begun.status, begun.text).toBe(302);
  return { url: begun.headers.get("location") as string, cookie: cookiesOf(begun) };
}

/** Signs in at the provider as the account. */
async function signInAs(account: Account) {
  provider.account.current = account;
  const { url, cookie } = await start();
  const callback = pathOf(await throughProvider(url, provider.issuer));
  const answer = await app.call("GET", callback, { headers: { cookie } });
  return { answer, callback, cookie };
}

const me = async (answer: Answer) => {
  expect(answer.headers.get("location")).toBe("http://vodbox.test/console/assets");
  const cookie = cookiesOf(answer);
  return (await app.as({ headers: { cookie } }).getMe()).body;
};
const expectRefusal = ({ headers }: Answer, reason: string) => {
  expect(headers.get("location")).toBe(`http://vodbox.test/console/assets?oidc_error=${reason}`);
  expect(headers.getSetCookie().join()).not.toContain("vodbox_session");
};

test("the request has PKCE, state and nonce, in a cookie that scripts cannot read", async () => {
  const begun = await app.call("GET", "/api/v1/session/oidc/start");
  const { searchParams } = new URL(begun.headers.get("location") as string);
  expect(Object.fromEntries(searchParams)).toMatchObject({
    response_type: "code",
    code_challenge_method: "S256",
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    redirect_uri: "http://vodbox.test/api/v1/session/oidc/callback",
  });
  expect(begun.headers.get("set-cookie")).toMatch(/^vodbox_oidc=.*HttpOnly; SameSite=Lax/);
  expect(begun.headers.get("set-cookie")).not.toContain(searchParams.get("state"));
});

test("a user is linked by a verified e-mail address, and afterwards by issuer and subject", async () => {
  const tenant = await app.tenant();
  const email = "ann@example.com";
  const body = { tenant_id: tenant.id, email, role: "editor", password: PASSWORD };
  const { body: user } = await app.as({ admin: app.admin }).createTenantUser(body);
  expectRefusal((await signInAs({ sub: "ann", email, email_verified: false })).answer, "refused");
  const first = await signInAs({ sub: "ann", email: "ANN@example.com", email_verified: true });
  expect(await me(first.answer)).toMatchObject({ id: user.id, role: "editor" });
  // With another address, too.
  const again = await signInAs({ sub: "ann", email: "other@example.com", email_verified: false });
  expect(await me(again.answer)).toMatchObject({ id: user.id });
  // A callback works once, and in the browser that began it only.
  expectRefusal(await app.call("GET", again.callback, { headers: { cookie: again.cookie } }), "failed");
  expect((await app.as({ admin: app.admin }).listActivity({ tenant_id: tenant.id, actor: email })).body).toHaveLength(
    2,
  );
  await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "suspended" });
  expectRefusal((await signInAs({ sub: "ann", email, email_verified: true })).answer, "refused");
});

test("an unknown person becomes a user of the tenant that the claim names, else is refused", async () => {
  const tenant = await app.tenant({ slug: "films" });
  const person = (sub: string, fields: object = {}) => ({ sub, email: `${sub}@films.example`, ...fields });
  expectRefusal((await signInAs(person("bob"))).answer, "refused");
  expectRefusal((await signInAs(person("bob", { tenant: "unknown" }))).answer, "refused");
  expectRefusal((await signInAs({ sub: "bob", tenant: "films" })).answer, "refused");
  const made = await signInAs(person("bob", { tenant: "films", groups: ["staff", "editor"], name: "Bob" }));
  const bob = await me(made.answer);
  expect(bob).toMatchObject({ tenant_id: tenant.id, role: "editor", name: "Bob", email: "bob@films.example" });
  const unknown = await signInAs(person("cem", { tenant: "films", groups: "owner" }));
  expect(await me(unknown.answer)).toMatchObject({ role: "viewer" });
  // The address of another user is not taken over.
  const taken = { sub: "thief", email: "bob@films.example", email_verified: false, tenant: "films" };
  expectRefusal((await signInAs(taken)).answer, "refused");
  // There is no password.
  const guess = await app.as().createSession({ email: bob.email, password: "x" });
  expect(guess.status).toBe(401);
});

test("another state, another browser and a declined request begin no session", async () => {
  provider.account.current = { sub: "ann", email: "ann@example.com", email_verified: true };
  const { url, cookie } = await start();
  const callback = pathOf(await throughProvider(url, provider.issuer));
  const get = (path: string, headers: Record<string, string> = { cookie }) => app.call("GET", path, { headers });
  expectRefusal(await get(callback, {}), "failed");
  expectRefusal(await get(callback, { cookie: (await start()).cookie }), "failed");
  expectRefusal(await get(callback.replace(/state=[^&]*/, "state=x")), "failed");
  expectRefusal(await get(callback.replace(/code=[^&]*/, "code=x")), "failed");
  provider.account.current = null;
  const declined = await start();
  const answer = pathOf(await throughProvider(declined.url, provider.issuer));
  expect(answer).toContain("error=access_denied");
  expectRefusal(await get(answer, { cookie: declined.cookie }), "failed");
});

test("the sign-in page offers it only where it is configured", async () => {
  const page = (at: TestApp) => at.call("GET", "/console").then(({ text }) => text);
  expect(await page(app)).toContain('data-oidc="127.0.0.1"');
  const plain = await testApp();
  expect(await page(plain)).not.toContain("data-oidc");
  expect((await plain.call("GET", "/api/v1/session/oidc/start")).status).toBe(404);
  expect((await plain.call("GET", "/api/v1/session/oidc/callback?code=x")).status).toBe(404);
  const down = await testApp({ oidc_issuer: "http://127.0.0.1:1", oidc_client_id: "x" });
  expect((await down.call("GET", "/api/v1/session/oidc/start")).body.code).toBe("oidc_unavailable");
  await expect(testApp({ oidc_issuer: "http://id.example.com", oidc_client_id: "x" })).rejects.toThrow(/https/);
  await expect(testApp({ oidc_issuer: "https://id.example.com" })).rejects.toThrow(/OIDC_CLIENT_ID/);
});

test("signing in with a password still works", async () => {
  const tenant = await app.tenant();
  const body = { tenant_id: tenant.id, email: "dan@example.com", role: "admin", password: PASSWORD };
  await app.as({ admin: app.admin }).createTenantUser(body);
  const dan = withSession(app, await signIn(app, { email: body.email, password: PASSWORD }));
  expect((await dan("GET", "/api/v1/me")).status).toBe(200);
});
