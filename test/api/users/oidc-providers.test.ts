import { afterEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Answer } from "#test/support/client.ts";
import { type Behavior, CLIENT_SECRET, customProvider } from "#test/support/custom-oidc.ts";
import { signIn, withSession } from "#test/support/sessions.ts";
import { typedClient } from "#test/support/typed-client.ts";

const BASE = "http://vodbox.test";
const CALLBACK = "/api/v1/session/oidc/callback";
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A server, a tenant `films`, and a browser with the cookies of the server. */
async function setUp(behavior: Partial<Behavior> = {}, settings: Record<string, unknown> = {}) {
  const provider = await customProvider();
  Object.assign(provider.behavior, behavior);
  const app = await testApp({
    oidc_issuer: `${provider.origin}${provider.behavior.path}`,
    oidc_client_id: "vodbox",
    oidc_client_secret: CLIENT_SECRET,
    oidc_tenant_claim: "tenant",
    oidc_role_claim: "role",
    rate_limit_session: "1000/60",
    ...settings,
  });
  stops.push(provider.close, app.close);
  const tenant = await app.tenant({ slug: "films" });
  return { app, provider, tenant, browser: browserOf(app) };
}

/** Keeps cookies as a browser does. */
function browserOf(app: TestApp) {
  const jar = new Map<string, string>();
  const cookie = () => [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
  const get = async (path: string) => {
    const answer = await app.call("GET", path, { headers: { cookie: cookie(), accept: "text/html" } });
    for (const one of answer.headers.getSetCookie()) {
      const [name = "", value = ""] = (one.split(";")[0] ?? "").split(/=(.*)/s);
      if (value === "") jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  };
  return {
    get,
    /** The path of the callback that the provider leads to. */
    async begin(): Promise<string> {
      const begun = await get("/api/v1/session/oidc/start");
      expect(begun.status, begun.text).toBe(302);
      const led = await fetch(begun.headers.get("location") as string, { redirect: "manual" });
      return (led.headers.get("location") as string).slice(BASE.length);
    },
    async signIn(): Promise<Answer> {
      return get(await this.begin());
    },
    me: async () => (await app.as({ headers: { cookie: cookie() } }).getMe()).body,
  };
}

const expectRefusal = ({ headers }: Answer, reason: string) => {
  expect(headers.get("location")).toBe(`${BASE}/console/assets?oidc_error=${reason}`);
  expect(headers.getSetCookie().join()).not.toContain("vodbox_session");
};
const expectSession = ({ headers }: Answer) => expect(headers.get("location")).toBe(`${BASE}/console/assets`);

const person = { sub: "ann", email: "ann@films.example", email_verified: true, tenant: "films" };

test.each(["RS256", "PS256", "ES256", "ES384", "EdDSA", "HS256"])("ID tokens are signed with %s", async (alg) => {
  const { provider, browser } = await setUp({ alg, claims: person });
  await provider.rotate();
  expectSession(await browser.signIn());
  // A provider changes its key at any time.
  await provider.rotate();
  expectSession(await browser.signIn());
});

test("an ID token that is signed with another key is refused", async () => {
  const { provider, browser } = await setUp({ claims: person });
  expectSession(await browser.signIn());
  await provider.rotate({ isPublished: false });
  expectRefusal(await browser.signIn(), "failed");
});

test.each([
  ["for another client", { aud: "other" }],
  ["for several clients, one of them this", { aud: ["vodbox", "other"] }],
  ["of another issuer", { iss: "https://other.example" }],
  ["without nonce", { nonce: undefined }],
  ["with another nonce", { nonce: "other" }],
  ["that has expired", { exp: 1_700_000_000 }],
  ["without subject", { sub: undefined }],
  ["with a subject that is no text", { sub: 7 }],
  ["with an empty subject", { sub: "" }],
  ["with a subject of 256 characters", { sub: "s".repeat(256) }],
])("an ID token %s is refused", async (_, claims) => {
  const { browser } = await setUp({ claims: { ...person, ...claims } });
  expectRefusal(await browser.signIn(), "failed");
});

test("clocks may differ by some seconds", async () => {
  const now = Math.floor(Date.now() / 1000);
  const { browser, provider } = await setUp({ claims: { ...person, iat: now + 20, nbf: now + 20 } });
  expectSession(await browser.signIn());
  provider.behavior.claims = { ...person, exp: now - 15 };
  expectSession(await browser.signIn());
});

test.each(["client_secret_basic", "client_secret_post"] as const)(
  "the client authenticates with %s",
  async (authentication) => {
    for (const methods of [undefined, [authentication], ["client_secret_basic", "client_secret_post"]]) {
      const metadata = methods ? { token_endpoint_auth_methods_supported: methods } : {};
      const { browser } = await setUp({ authentication, metadata, claims: person });
      expectSession(await browser.signIn());
    }
  },
);

test.each([
  ["/realms/films", "/realms/films/"],
  ["/application/o/films/", "/application/o/films"],
  ["", "/"],
])("the issuer %s may be set as %s", async (path, set) => {
  const { provider, tenant } = await setUp({ path, claims: person });
  const app = await testApp({
    oidc_issuer: `${provider.origin}${set}`,
    oidc_client_id: "vodbox",
    oidc_client_secret: CLIENT_SECRET,
    oidc_tenant_claim: "tenant",
  });
  stops.push(app.close);
  await app.tenant({ slug: tenant.slug });
  expectSession(await browserOf(app).signIn());
});

test("metadata of another issuer are refused", async () => {
  const { browser } = await setUp({ claims: person, metadata: { issuer: "https://other.example" } });
  expectRefusal(await browser.get("/api/v1/session/oidc/start"), "unavailable");
});

test("a callback of another issuer is refused (RFC 9207)", async () => {
  const { browser, provider } = await setUp({ claims: person, callback: { iss: "https://other.example" } });
  expectRefusal(await browser.signIn(), "failed");
  provider.behavior.callback = { iss: provider.origin };
  expectSession(await browser.signIn());
});

test("sign-ins in several tabs do not end one another", async () => {
  const { browser } = await setUp({ claims: person });
  const first = await browser.begin();
  const second = await browser.begin();
  expectRefusal(await browser.get(`${CALLBACK}?code=x&state=x`), "failed");
  expectSession(await browser.get(first));
  expectSession(await browser.get(second));
  expectRefusal(await browser.get(first), "failed");
});

test("a sign-in that is not completed costs a browser no growing cookies", async () => {
  const { app, browser } = await setUp({ claims: person });
  for (let count = 0; count < 20; count++) await browser.begin();
  const last = await browser.get("/api/v1/session/oidc/start");
  expect(last.headers.getSetCookie().join().length).toBeLessThan(3000);
  expect(app).toBeDefined();
});

test.each([
  ["a text", "role", { role: "editor" }, "editor"],
  ["a list", "role", { role: ["x", "admin"] }, "admin"],
  ["a list of Keycloak", "realm_access.roles", { realm_access: { roles: ["offline_access", "editor"] } }, "editor"],
  ["a client's roles", "resource_access.vodbox.roles", { resource_access: { vodbox: { roles: ["admin"] } } }, "admin"],
  [
    "an object of Zitadel",
    "urn:zitadel:iam:org:project:roles",
    { "urn:zitadel:iam:org:project:roles": { editor: { 1: "films.example" } } },
    "editor",
  ],
  ["a name that is a URL", "https://films.example/role", { "https://films.example/role": "editor" }, "editor"],
  ["an unknown role", "role", { role: "owner" }, "viewer"],
  ["no role", "role", {}, "viewer"],
  ["a number", "role", { role: 1 }, "viewer"],
  ["null on the way", "a.b", { a: null }, "viewer"],
  ["a name of JavaScript", "constructor.name", {}, "viewer"],
])("the claim with the role is %s", async (_, oidc_role_claim, claims, role) => {
  const { browser } = await setUp({ claims: { ...person, ...claims } }, { oidc_role_claim });
  expectSession(await browser.signIn());
  expect(await browser.me()).toMatchObject({ role });
});

test.each([
  ["in a list", { tenant: ["films"] }, null],
  ["among groups", { tenant: ["staff", "films"] }, null],
  ["next to another", { tenant: ["films", "other"] }, "refused"],
  ["unknown", { tenant: "unknown" }, "refused"],
  ["empty", { tenant: "" }, "refused"],
  ["a number", { tenant: 1 }, "refused"],
  ["an empty list", { tenant: [] }, "refused"],
  ["very long lists", { tenant: Array.from({ length: 10_000 }, (_, index) => `t${index}`) }, "refused"],
  ["suspended", { tenant: "suspended" }, "refused"],
])("the claim with the tenant is %s", async (_, claims, refusal) => {
  const { app, browser, tenant } = await setUp({ claims: { ...person, ...claims } });
  await app.tenant({ slug: "other" });
  const suspended = await app.tenant({ slug: "suspended" });
  await app.as({ admin: app.admin }).updateTenant(suspended.id, { status: "suspended" });
  const answer = await browser.signIn();
  if (refusal !== null) return expectRefusal(answer, refusal);
  expectSession(answer);
  expect(await browser.me()).toMatchObject({ tenant_id: tenant.id });
});

test("claims of the userinfo endpoint count, and an address is verified by the source that gives it", async () => {
  const { app, browser, provider, tenant } = await setUp();
  const body = { tenant_id: tenant.id, email: "boss@films.example", role: "admin", password: "correct horse" };
  await app.as({ admin: app.admin }).createTenantUser(body);
  // The ID token has an address that is not verified, and the endpoint verifies another one.
  provider.behavior.claims = { sub: "eve", email: body.email };
  provider.behavior.userinfo = { email: "eve@films.example", email_verified: true };
  expectRefusal(await browser.signIn(), "refused");
  provider.behavior.claims = { sub: "boss" };
  // Cognito and Apple send texts.
  provider.behavior.userinfo = { email: body.email, email_verified: "false" };
  expectRefusal(await browser.signIn(), "refused");
  provider.behavior.userinfo = { email: body.email, email_verified: "true" };
  expectSession(await browser.signIn());
  expect(await browser.me()).toMatchObject({ email: body.email, role: "admin" });
});

test("userinfo of another person is refused", async () => {
  const { browser } = await setUp({ claims: person, userinfo: { sub: "other" } });
  expectRefusal(await browser.signIn(), "failed");
});

test("an account of Entra ID without an address has its preferred user name", async () => {
  const { email: _, email_verified: __, ...claims } = person;
  const { browser, provider, app, tenant } = await setUp({
    claims: { ...claims, preferred_username: "ann@films.example" },
  });
  const body = { tenant_id: tenant.id, email: "boss@films.example", role: "admin", password: "correct horse" };
  await app.as({ admin: app.admin }).createTenantUser(body);
  expectSession(await browser.signIn());
  expect(await browser.me()).toMatchObject({ email: "ann@films.example", role: "viewer" });
  // It is never verified.
  provider.behavior.claims = { ...claims, sub: "eve", preferred_username: body.email, email_verified: true };
  expectRefusal(await browser.signIn(), "refused");
});

test("who registered an unverified address loses the user to the person with the verified one", async () => {
  const { app, browser, provider } = await setUp({ claims: { ...person, sub: "eve", email_verified: false } });
  expectSession(await browser.signIn());
  const { id } = await browser.me();
  const ann = browserOf(app);
  provider.behavior.claims = { ...person, sub: "ann" };
  expectSession(await ann.signIn());
  expect(await ann.me()).toMatchObject({ id });
  expect((await browser.get("/api/v1/me")).status).toBe(401);
  provider.behavior.claims = { ...person, sub: "eve", email_verified: false };
  expectRefusal(await browser.signIn(), "refused");
});

test("a user with the address of another person is not signed in as, until an admin has confirmed the address", async () => {
  const { app, browser, tenant } = await setUp({ claims: person });
  const body = { tenant_id: tenant.id, email: "eve@films.example", role: "viewer", password: "correct horse" };
  const { id } = (await app.as({ admin: app.admin }).createTenantUser(body)).body;
  const eve = typedClient(withSession(app, await signIn(app, { email: body.email, password: body.password })))();
  expect((await eve.updateMe({ email: person.email })).status).toBe(200);
  expectRefusal(await browser.signIn(), "refused");
  expect((await eve.updateMe({ email: person.email, name: "Eve" })).status).toBe(200);
  expectRefusal(await browser.signIn(), "refused");
  const confirmed = await app.as({ admin: app.admin }).updateTenantUser(id, { email: person.email });
  expect(confirmed.status).toBe(200);
  expectSession(await browser.signIn());
  expect(await browser.me()).toMatchObject({ id });
});

test("a deleted user is created again, and a changed role and tenant change nothing", async () => {
  const { app, browser, provider, tenant } = await setUp({ claims: { ...person, role: "editor" } });
  await app.tenant({ slug: "other" });
  expectSession(await browser.signIn());
  const { id } = await browser.me();
  provider.behavior.claims = { ...person, role: "admin", tenant: "other" };
  expectSession(await browser.signIn());
  expect(await browser.me()).toMatchObject({ id, role: "editor", tenant_id: tenant.id });
  expect((await app.as({ admin: app.admin }).deleteTenantUser(id)).status).toBe(204);
  expectSession(await browser.signIn());
  expect(await browser.me()).toMatchObject({ role: "admin" });
});

test("names are cut, and control characters are left out", async () => {
  const { browser } = await setUp({ claims: { ...person, name: `\u0000An\nn ${"é😀".repeat(200)}` } });
  expectSession(await browser.signIn());
  const { name } = await browser.me();
  expect(name).toMatch(/^An ?n é/);
  expect(name?.isWellFormed()).toBe(true);
});

test.each([
  ["error", (_: string, response: any) => Boolean(response.writeHead(503).end())],
  [
    "no JSON",
    (_: string, response: any) => Boolean(response.writeHead(200, { "content-type": "text/html" }).end("<p>")),
  ],
  [
    "a redirect",
    (_: string, response: any) => Boolean(response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()),
  ],
  ["a closed connection", (_: string, response: any) => Boolean(response.destroy())],
  [
    "too much",
    (_: string, response: any) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = () => {
        while (!response.destroyed && response.write(" ".repeat(65536)));
      };
      response.on("drain", more);
      more();
      return true;
    },
  ],
])("a provider that responds with %s leads back to the sign-in page", async (_, instead) => {
  const { browser, provider } = await setUp({ claims: person });
  provider.behavior.instead = instead;
  expectRefusal(await browser.get("/api/v1/session/oidc/start"), "unavailable");
  provider.behavior.instead = undefined;
  for (const path of ["token", "jwks"]) {
    const callback = await browser.begin();
    provider.behavior.instead = (name, response) => name === path && instead(name, response);
    expectRefusal(await browser.get(callback), "failed");
    provider.behavior.instead = undefined;
  }
  expectSession(await browser.signIn());
});

test("a slow provider delays no sign-in with a password", async () => {
  const { app, browser, provider, tenant } = await setUp({ claims: person });
  const body = { tenant_id: tenant.id, email: "boss@films.example", role: "admin", password: "correct horse" };
  await app.as({ admin: app.admin }).createTenantUser(body);
  const callback = await browser.begin();
  const held = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  provider.behavior.instead = async () => {
    reached.resolve();
    await held.promise;
    return false;
  };
  const slow = browser.get(callback);
  await reached.promise;
  expect((await app.as().createSession({ email: body.email, password: body.password })).status).toBe(201);
  held.resolve();
  expectSession(await slow);
});
