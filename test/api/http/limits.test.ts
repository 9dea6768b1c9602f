import { expect, test } from "vitest";
import { countWindows } from "#platform/http/limits.ts";
import { testApp } from "#test/support/app.ts";
import type { CallOptions } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";

test("every response of a limited route contains the limit: counted requests the remaining quota, others the policy", async () => {
  const app = await testApp({ rate_limit_uploads: "4/60" });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const reader = await app.key(tenant.id, ["assets:read"]);
  const path = "/api/v1/uploads/initiate";
  const good = { filename: "a.mp4", bytes_expected: 1 };
  const rows: [about: string, status: number, left: number | null, options: CallOptions][] = [
    ["no key", 401, null, { body: good }],
    ["no scope", 403, null, { key: reader, body: good }],
    ["done", 201, 3, { key, body: good }],
    ["no JSON", 400, 2, { key, raw: "{", headers: { "content-type": "application/json" } }],
    ["nothing asked", 422, 1, { key, body: {} }],
    ["no folder", 404, 0, { key, body: { ...good, tenant_id: 987_654 } }],
    ["too many", 429, 0, { key, body: good }],
    ["no key, still", 401, null, { body: good }],
  ];
  for (const [about, status, left, options] of rows) {
    const { status: found, headers } = await app.call("POST", path, options);
    expect.soft([found, headers.get("ratelimit-policy")], about).toEqual([status, '"uploads";q=4;w=60']);
    const told = headers.get("ratelimit");
    if (left === null) expect.soft(told, about).toBe(null);
    else expect.soft(told, about).toMatch(new RegExp(`^"uploads";r=${left};t=\\d+$`));
    expect.soft(headers.has("retry-after"), about).toBe(status === 429);
  }
  // Another tenant has its own window, and the operator has none.
  const others = await app.as(await app.key((await app.tenant()).id)).initiateUpload(good);
  expect([others.status, others.headers.get("ratelimit")]).toEqual([201, expect.stringMatching(/^"uploads";r=3;/)]);
  const operators = await app.as({ admin: app.admin }).initiateUpload({ ...good, tenant_id: tenant.id });
  expect([operators.status, operators.headers.get("ratelimit")]).toEqual([201, null]);
  expectError(await app.as(key).initiateUpload(good), 429, "rate_limited");
});

test("a flood of addresses uses bounded memory, and none of the tenants'", async () => {
  const windows = countWindows({ requests: 2, seconds: 3600 });
  for (let time = 0; time < 3; time++) await windows.countTenant(7);
  await windows.countAddress("203.0.113.7");
  const flood = Array.from(
    { length: 25_000 },
    (_, at) => `2001:db8:${(at >> 8).toString(16)}:${(at & 255).toString(16)}::1`,
  );
  for (const address of flood) await windows.countAddress(address);
  // The newest addresses are tracked; the oldest are not.
  expect((await windows.hasAllowance(flood.at(-1) as string)).left).toBe(1);
  expect((await windows.hasAllowance("203.0.113.7")).left).toBe(2);
  expect(await windows.countTenant(7)).toMatchObject({ exceeded: true });
});
