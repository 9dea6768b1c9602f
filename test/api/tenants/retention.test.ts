import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import type { SwitchingStore } from "#storage/objects/switching.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { film, HOUR } from "#test/support/views.ts";

const DAY = 24 * HOUR;
let app: TestApp;
beforeEach(async () => {
  app = await testApp({ rate_limit_beacon: "1000000/1", rate_limit_uploads: "10000/60", playback_event_days: 3650 });
});

const now = () => app.opened.app.clock.now();
const keep = (tenantId: number, days: Record<string, unknown>) =>
  app.as({ admin: app.admin }).updateTenant(tenantId, days);
/** What the tasks recorded of a tenant, newest first. */
const recorded = async (tenantId: number) =>
  (await app.as({ admin: app.admin }).listAuditEntries({ tenant_id: tenantId })).body
    .filter(({ actor }: { actor: string }) => actor === "system")
    .map(({ route, fields }: { route: string; fields: string[] }) => [route, ...fields].join(" "));

describe("retention", () => {
  test("is a number of days on the tenant, and null resets it", async () => {
    const { id } = await app.tenant();
    const both = { delete_sources_after_days: 30, delete_analytics_after_days: 36_500 };
    expect((await keep(id, both)).body).toMatchObject(both);
    expect((await keep(id, { name: "Same" })).body).toMatchObject(both);
    expect((await keep(id, { delete_sources_after_days: null })).body).toMatchObject({
      delete_sources_after_days: null,
      delete_analytics_after_days: 36_500,
    });
    for (const days of [0, -1, 1.5, 36_501])
      expectError(await keep(id, { delete_sources_after_days: days }), 422, "validation_failed");
    expect((await keep(id, { delete_analytics_after_days: "7" })).status).toBe(422);
  });

  test("of sources deletes those of finished assets that are older, and no others", async () => {
    const tenant = await app.tenant();
    const key = await app.key(tenant.id);
    const other = await app.tenant();
    const otherKey = await app.key(other.id);
    const first = await readyAsset(app, key);
    const old = [first, await readyAsset(app, key)];
    const theirs = await readyAsset(app, otherKey);
    const queued = await uploaded(app, key);
    app.advance(5 * DAY);
    await app.as({ admin: app.admin }).cancelJob(queued.job.id);
    const young = await readyAsset(app, key);
    const source = async (id: number, as = key) => (await app.as(as).getAsset(id)).body.source_key;
    await app.runTask("delete-old-sources");
    expect(await source(first.asset.id)).not.toBe("");

    await keep(tenant.id, { delete_sources_after_days: 5 });
    app.advance(HOUR);
    await app.runTask("delete-old-sources");
    for (const { asset } of old) {
      const { body } = await app.as(key).getAsset(asset.id);
      expect(body).toMatchObject({ source_key: "", playback_status: "ready" });
      expect(Date.parse(body.source_deleted_at)).toBeGreaterThan(now() - 60_000);
    }
    for (const kept of [young, queued]) expect(await source(kept.asset.id)).not.toBe("");
    expect(await source(theirs.asset.id, otherKey)).not.toBe("");
    expect([await recorded(tenant.id), await recorded(other.id)]).toEqual([["delete-old-sources sources=2"], []]);
    expect((await app.call("GET", "/metrics", { admin: app.admin })).text).toContain(
      'vodbox_scheduled_deletions_total{kind="sources"} 2',
    );
    // Nothing is left to do.
    await app.runTask("delete-old-sources");
    expect(await recorded(tenant.id)).toHaveLength(1);
    app.advance(61_000);
    await app.runTask("sweep-objects");
    const objects = app.opened.app.objects as SwitchingStore;
    expect(await objects.head(first.asset.source_key)).toBeNull();
    expect(await objects.head(young.asset.source_key)).not.toBeNull();
  });

  test("of sources reaches all of many, in small steps, past those that are still needed", async () => {
    const { id } = await app.tenant();
    await keep(id, { delete_sources_after_days: 1 });
    await app.opened.app.write((tx) =>
      tx.run(`INSERT INTO assets (tenant_id, external_id, title, input_status, playback_status, playback_policy, source_key,
        source_bytes, storage_bytes, ready_at, created_at, updated_at)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        SELECT ${id}, 'vid_x' || i, 'Old ' || i, 'uploaded', iif(i % 3 = 0, 'errored', 'ready'), 'signed',
          'tenants/${id}/sources/' || i, 10, 15, 1, 1, 1 FROM n`),
    );
    await app.runTask("delete-old-sources");
    const sources = await app.opened.app.db.all<{ status: string; held: number; n: number }>(sql`
      SELECT playback_status AS status, source_key <> '' AS held, count(*) AS n, sum(storage_bytes) AS bytes FROM assets
      GROUP BY 1, 2 ORDER BY 1`);
    expect(sources).toEqual([
      { status: "errored", held: 1, n: 100, bytes: 1500 },
      { status: "ready", held: 0, n: 200, bytes: 1000 },
    ]);
    expect(await recorded(id)).toEqual(["delete-old-sources sources=200"]);
  });

  test("of analytics deletes reports, viewers and sums that are older, of this tenant alone", async () => {
    const tenant = await app.tenant();
    const other = await app.tenant();
    const ours = await film(app, tenant.id, 100);
    const theirs = await film(app, other.id, 100);
    const view = async (asset: { id: number }, session_id: string) => {
      const occurred_at = new Date(now() - HOUR).toISOString();
      const events = ["play", "heartbeat"].map((event, n) => ({
        asset_id: asset.id,
        session_id,
        viewer_id: "ann",
        event,
        occurred_at,
        position_seconds: n * 50,
        watched_seconds: n * 10,
      }));
      expect((await app.as().recordPlaybackEvents({ events })).status).toBe(202);
      await app.runTask("record-views");
    };
    const sums = async (id: number) =>
      (await app.as({ admin: app.admin }).getAnalytics({ tenant_id: id, from: "2000-01-01T00:00:00Z" })).body;
    const rows = async (tenantId: number) =>
      Promise.all(
        ["playback_events", "playback_sessions", "analytics_viewers", "analytics_hours", "analytics_returns"].map(
          async (table) =>
            (
              await app.opened.app.db.all<{ n: number }>(
                sql`SELECT count(*) AS n FROM ${sql.raw(table)} WHERE tenant_id = ${tenantId}`,
              )
            )[0]?.n,
        ),
      );
    await view(ours, "old");
    await view(theirs, "old");
    app.advance(6 * DAY);
    await view(ours, "young");
    app.advance(2 * DAY);
    const before = await rows(other.id);
    await keep(tenant.id, { delete_analytics_after_days: 7 });
    expect(await rows(tenant.id)).toEqual([4, 2, 4, 4, 4]);
    await app.runTask("delete-old-analytics");
    expect(await rows(tenant.id)).toEqual([2, 1, 2, 2, 2]);
    expect(await rows(other.id)).toEqual(before);
    expect(await sums(tenant.id)).toMatchObject({ play_count: 1, unique_viewers: 1, watch_time_seconds: 10 });
    expect(await sums(other.id)).toMatchObject({ play_count: 1, unique_viewers: 1, watch_time_seconds: 10 });
    expect([await recorded(tenant.id), await recorded(other.id)]).toEqual([
      ["delete-old-analytics analytics_rows=7"],
      [],
    ]);
    const reach = await app.opened.app.db.all(sql`SELECT asset_id FROM analytics_reach ORDER BY asset_id`);
    expect(reach).toEqual([{ asset_id: ours.id }, { asset_id: theirs.id }]);
    await app.runTask("delete-old-analytics");
    expect(await recorded(tenant.id)).toHaveLength(1);

    app.advance(10 * DAY);
    await app.runTask("delete-old-analytics");
    expect(await rows(tenant.id)).toEqual([0, 0, 0, 0, 0]);
    expect(await rows(other.id)).toEqual(before);
  });
});
