import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { checkup } from "#test/support/doctor.ts";
import { readyAsset } from "#test/support/flow.ts";

test("rows of a tenant that does not exist are found, and deleted by --fix", async () => {
  const app = await testApp();
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const { asset } = await readyAsset(app, key, { playback_policy: "public" });
  const event = { asset_id: asset.id, session_id: "s", event: "play", position_seconds: 0 };
  expect((await app.as().recordPlaybackEvents({ events: [event] })).status).toBe(202);
  await app.runTask("record-views");
  expect((await checkup(app)).of("tenants")).toMatchObject({ ok: true, fixed: 0 });
  // As versions that could not delete tenants may have left them.
  const gone = 987_654;
  const tables = ["playback_events", "playback_sessions", "analytics_hours", "analytics_viewers"];
  for (const table of tables)
    await app.opened.app.write(async (tx) =>
      tx.run(`update ${table} set tenant_id = ${gone} where tenant_id = ${tenant.id}`),
    );
  expect((await checkup(app)).of("tenants")).toMatchObject({ ok: false, detail: expect.stringContaining(`(${gone})`) });
  const fixed = (await checkup(app, { fix: true })).of("tenants");
  expect(fixed).toMatchObject({ ok: true, detail: expect.stringContaining("were deleted") });
  expect(fixed.fixed).toBeGreaterThanOrEqual(tables.length);
  for (const table of tables) expect(await app.opened.app.db.all(`select 1 from ${table}`), table).toEqual([]);
  expect((await checkup(app)).of("tenants")).toMatchObject({ ok: true });
});
