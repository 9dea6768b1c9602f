import { beforeAll, describe, expect, test } from "vitest";
import { startListening } from "#src/listen.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";

const HOUR_MS = 3_600_000;
const path = "/api/v1/api_keys";
let app: TestApp;
beforeAll(async () => {
  app = await testApp({ trusted_proxies: ["127.0.0.0/8"] });
  return app.close;
});

async function issued(fields: Record<string, unknown> = {}) {
  const tenant = await app.tenant();
  const body = { tenant_id: tenant.id, name: "CMS", scopes: ["assets:read", "playback:read"], ...fields };
  const made = await app.call("POST", path, { admin: app.admin, body });
  expect(made.status).toBe(201);
  return made.body as { id: number; tenant_id: number; token: string; expires_at: string | null };
}
const rotate = (id: number, body: unknown = {}, credential: Record<string, unknown> = { admin: app.admin }) =>
  app.call("POST", `${path}/${id}/rotate`, { ...credential, body });
const works = async (key: string) => (await app.as(key).listAssets()).status === 200;
const shown = async (id: number, tenantId: number) =>
  (await app.call("GET", `${path}?tenant_id=${tenantId}`, { admin: app.admin })).body.find((one: any) => one.id === id);

describe("rotation", () => {
  test("makes a key with the same name and scopes; both work for a day, unless it says otherwise", async () => {
    const old = await issued();
    const { status, body } = await rotate(old.id);
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: "CMS", scopes: ["assets:read", "playback:read"], expires_at: null });
    expect(body.token).not.toBe(old.token);
    expect([await works(old.token), await works(body.token)]).toEqual([true, true]);
    const ends = Date.parse((await shown(old.id, old.tenant_id)).expires_at);
    expect(ends - Date.parse(body.created_at)).toBe(24 * HOUR_MS);
  });

  test("without a time of grace revokes the old key at once", async () => {
    const old = await issued();
    const { body } = await rotate(old.id, { grace_hours: 0 });
    expect([await works(old.token), await works(body.token)]).toEqual([false, true]);
    expect(await shown(old.id, old.tenant_id)).toMatchObject({ revoked_at: expect.any(String) });
    expectError(await rotate(old.id), 409, "key_ended");
  });

  test("keeps the lifetime of a key, and never lengthens that of the old one", async () => {
    const now = app.opened.app.clock.now();
    const expires_at = new Date(now + 2 * HOUR_MS).toISOString();
    const old = await issued({ expires_at });
    const { body } = await rotate(old.id, { grace_hours: 720 });
    const lifetime = Date.parse(body.expires_at) - Date.parse(body.created_at);
    expect(Math.abs(lifetime - 2 * HOUR_MS)).toBeLessThan(60_000);
    expect((await shown(old.id, old.tenant_id)).expires_at).toBe(expires_at);
  });

  test.for([
    ["a negative time", { grace_hours: -1 }],
    ["more than a month", { grace_hours: 721 }],
    ["a text", { grace_hours: "24" }],
  ])("is refused with %s", async ([, body]) => {
    const old = await issued();
    expect((await rotate(old.id, body)).status).toBe(422);
    expect(await works(old.token)).toBe(true);
  });

  test("belongs to those who may write keys, within their scopes and their tenant", async () => {
    const old = await issued({ scopes: ["assets:write"] });
    const writer = await app.key(old.tenant_id, ["api_keys:write"]);
    expectError(await rotate(old.id, {}, { key: writer }), 403, "forbidden_scope");
    const both = await app.key(old.tenant_id, ["api_keys:write", "assets:write"]);
    expect((await rotate(old.id, {}, { key: both })).status).toBe(201);
    const stranger = await app.key((await app.tenant()).id, ["api_keys:write", "assets:write"]);
    expectError(await rotate(old.id, {}, { key: stranger }), 404, "not_found");
    expectError(await rotate(old.id, {}, { key: old.token }), 403, "forbidden_scope");
  });

  test("is answered once: a repeated request makes no other key, and does not show the token again", async () => {
    const old = await issued();
    const ask = () => app.as({ admin: app.admin, headers: { "idempotency-key": "rotate-1" } }).rotateApiKey(old.id, {});
    const first = await ask();
    const second = await ask();
    expect(second.body).toEqual({ ...first.body, token: undefined });
    expect(first.body.token).toEqual(expect.any(String));
  });
});

test("a key shows from where it was used last: the client behind a trusted proxy", async () => {
  const { id, tenant_id, token } = await issued();
  expect(await shown(id, tenant_id)).toMatchObject({ last_used_at: null, last_used_address: null });
  const { log, config } = app.opened.app;
  const server = await startListening({ ...config, host: "127.0.0.1", port: 0 }, app.opened.server as never, { log });
  const use = (headers: Record<string, string>) => fetch(`${server.address}/api/v1/assets`, { headers });
  await use({ "x-api-key": token, "x-forwarded-for": "192.0.2.1" });
  await use({ "x-api-key": token, "x-forwarded-for": "203.0.113.9, 2001:db8::7" });
  await use({ "x-api-key": `${token}x`, "x-forwarded-for": "198.51.100.1" });
  server.beginClose();
  await server.close(1000);
  await app.runTask("record-key-use");
  const { last_used_at, last_used_address } = await shown(id, tenant_id);
  expect([last_used_address, Date.parse(last_used_at) > 0]).toEqual(["2001:db8::7", true]);
});
