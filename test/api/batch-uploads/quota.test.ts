import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { leased } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";

test("batch uploads are limited by what open batches contain and expect", async () => {
  const app = await testApp();
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  await app.as({ admin: app.admin }).updateTenant(tenant.id, { plan_name: "free" });
  // Another tenant's batches do not count.
  const others = await leased(app, await app.key((await app.tenant()).id));
  expect((await others.want("big.m4s", "", { bytes_expected: 4_000_000_000 })).status).toBe(201);
  const one = await leased(app, key);
  const two = await leased(app, key);
  const want = (batch: typeof one, name: string, bytes_expected: number) => batch.want(name, "", { bytes_expected });
  expect((await want(one, "a.m4s", 3_000_000_000)).status).toBe(201);
  const refused = await want(two, "b.m4s", 2_000_000_001);
  expectError(refused, 403, "quota_exceeded");
  expect(refused.body.error).toMatch(/0 are used, 3000000000 are reserved by open uploads and batch uploads/);
  // The same one again, a larger one that replaces it, and the rest.
  expect((await want(one, "a.m4s", 3_000_000_000)).status).toBe(200);
  expectError(await want(one, "a.m4s", 5_000_000_001), 403, "quota_exceeded");
  expect((await want(one, "a.m4s", 4_000_000_000)).status).toBe(201);
  expect((await want(two, "b.m4s", 1_000_000_000)).status).toBe(201);
  expectError(await want(two, "c.m4s", 1), 403, "quota_exceeded");
  const [row] = (await app.as(key).getUsage()).body;
  expect(row.storage_bytes).toBe(0);
  // Aborted uploads, and an ended batch, release their bytes.
  expect((await one.ask("POST", "/cancel")).status).toBeLessThan(300);
  expect((await want(two, "c.m4s", 4_000_000_000)).status).toBe(201);
});
