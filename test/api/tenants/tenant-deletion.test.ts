import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { TENANT_ROWS } from "#features/tenants/tenant-rows.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, readyAsset, uploaded } from "#test/support/flow.ts";
import { png } from "#test/support/png.ts";
import { signIn } from "#test/support/sessions.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { nextTask } from "#test/support/tasks.ts";

let app: TestApp;
let tenant: { id: number; slug: string };
let key: string;
beforeEach(async () => {
  // Nothing listens there: mail stays in the outbox.
  const mail = { smtp_url: "smtp://127.0.0.1:1", smtp_from: "films@example.com" };
  app = await testApp({ env: "development", payments: "simulated", ...mail });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

const admin = () => ({ admin: app.admin });
const at = (ref: string | number, confirm?: string) =>
  `/api/v1/admin/tenants/${ref}${confirm === undefined ? "" : `?confirm=${confirm}`}`;
const remove = (which = tenant) => app.call("DELETE", at(which.id, which.slug), admin());
/** At once; with a shared database within a second, because others may have changed it. */
const isDisabled = () =>
  expect
    .poll(async () => (await app.as(key).listAssets()).status, {
      timeout: process.env.VODBOX_TEST_DATABASE ? 5000 : 0,
    })
    .toBe(401);
const rows = (statement: string) => app.opened.app.db.all<Record<string, unknown>>(sql.raw(statement));
const insert = (statement: string) => app.opened.app.write(async (tx) => tx.run(sql.raw(statement)));
const post = async (path: string, body: unknown, token = key) => {
  const made = await app.call("POST", path, { key: token, body });
  expect([path, made.status < 300, made.status < 300 || made.text]).toEqual([path, true, true]);
  return made.body;
};
const objectsOf = async (id: number) =>
  (await app.opened.app.objects?.list(`tenants/${id}/`, { limit: 1000 }))?.objects.map((object) => object.key) ?? [];

/** The operator's log, kept for as long as its setting says. */
const KEPT = ["audit_entries"];
async function tablesWithTenant(): Promise<string[]> {
  const tables = await rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  const found: string[] = [];
  for (const { name } of tables) {
    const columns = await rows(`SELECT name FROM pragma_table_info('${name}') WHERE name = 'tenant_id'`);
    if (columns.length > 0) found.push(String(name));
  }
  return found.sort();
}
async function rowsOf(id: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of await tablesWithTenant())
    counts[table] = Number((await rows(`SELECT count(*) AS n FROM ${table} WHERE tenant_id = ${id}`))[0]?.n);
  return counts;
}

/** Something of every kind that a tenant can have. */
async function populate(owner: { id: number }, token: string) {
  const { asset } = await readyAsset(app, token, { playback_policy: "public" });
  await subtitled(app, token, asset.id);
  await post(`/api/v1/assets/${asset.id}/shares`, { name: "For Ann" }, token);
  await post(`/api/v1/assets/${asset.id}/tracks`, { kind: "scene", name: "scenes", cues: [] }, token);
  const collection = { name: "C", slug: `c-${owner.id}` };
  const parent = await post("/api/v1/collections", { tenant_id: owner.id, collection }, token);
  const child = { ...collection, slug: `d-${owner.id}`, parent_id: parent.id };
  await post("/api/v1/collections", { tenant_id: owner.id, collection: child }, token);
  await post("/api/v1/webhooks", { url: "https://example.com/" }, token);
  await post("/api/v1/signing_keys", { name: "k", algorithm: "EdDSA" }, token);
  await post("/api/v1/encoding_profiles", { name: "own" }, token);
  await post("/api/v1/playback_restrictions", { allowed_domains: [] }, token);
  await post(`/api/v1/assets/${asset.id}/static_renditions`, { name: "highest" }, token);
  const channel = await post("/api/v1/live/channels", { channel: `channel-${owner.id}` }, token);
  await insert(
    `INSERT INTO live_streams (tenant_id, channel_id, name, recorded, started_at, created_at, updated_at) VALUES (${owner.id}, ${channel.id}, 'stream-${owner.id}', 1, 1, 1, 1)`,
  );
  await insert(
    `INSERT INTO live_reports (stream_id, number, end_seconds, reports) SELECT id, 1, 2, '[]' FROM live_streams WHERE tenant_id = ${owner.id}`,
  );
  await post(`/api/v1/assets/${asset.id}/playback_ids`, { policy: "signed" }, token);
  await insert(`INSERT INTO mux_masters VALUES (${asset.id}, ${owner.id}, 1)`);
  await insert(`INSERT INTO mux_streams VALUES (${channel.id}, ${owner.id}, 'sealed', NULL, 0)`);
  await insert(
    `INSERT INTO mux_uploads (tenant_id, name, cors_origin, timeout_seconds, expires_at, settings, created_at, updated_at) VALUES (${owner.id}, 'upload-${owner.id}', '*', 1, 1, '{}', 1, 1)`,
  );
  await post(`/api/v1/live/channels/${channel.id}/targets`, { url: "rtmp://example.com/app/key" }, token);
  await insert(`INSERT INTO watermarks (sha256, image, used_at) VALUES ('image-${owner.id}', 'AAAA', 1)`);
  await insert(`INSERT INTO tenant_watermarks VALUES (${owner.id}, 'image-${owner.id}', 3)`);
  await insert(`INSERT INTO live_minutes VALUES (${owner.id}, ${channel.id}, 1, 1, 1, 1)`);
  await uploaded(app, token);
  await post("/api/v1/uploads/initiate", { filename: "b.mp4", bytes_expected: 3 }, token);
  const batch = await leased(app, token);
  await batch.want("a.m4s", "abc");
  const headers = { "idempotency-key": `order-${owner.id}` };
  const plan_name = "starter";
  const order = await app.as({ key: token, headers }).createOrder({ plan_name });
  expect(order.status).toBe(201);
  const user = { tenant_id: owner.id, email_address: `u${owner.id}@example.com`, name: "U", password: "long enough 1" };
  for (const [what, body] of [
    ["users", user],
    ["pairing_codes", { tenant_id: owner.id }],
  ] as const)
    expect((await app.call("POST", `/api/v1/admin/${what}`, { ...admin(), body })).status).toBe(201);
  const invited = { tenant_id: owner.id, email: `i${owner.id}@example.com`, role: "viewer" };
  expect((await app.as({ ...admin() }).createInvitation(invited)).status).toBe(201);
  const logo = { ...admin(), raw: png(8, 8), headers: { "content-type": "image/png" } };
  expect((await app.call("PUT", `/api/v1/tenants/${owner.id}/logo`, logo)).status).toBe(200);
  await signIn(app, { api_key: token });
  await post("/api/v1/uploads/from_url", { url: "https://example.com/a.mp4" }, token);
  // An import that a crash interrupted, and the result of a scheduled task.
  await insert(
    `INSERT INTO imports (id, tenant_id, owner, renewed_at, created_at) VALUES (${owner.id}, ${owner.id}, '', 1, 1)`,
  );
  await insert(`INSERT INTO import_rows (import_id, asset_id, row, change) VALUES (${owner.id}, ${asset.id}, 1, '{}')`);
  await insert(
    `INSERT INTO notifications (tenant_id, kind, occurrence, data, created_at) VALUES (${owner.id}, 'quota', 'a', '{}', 1)`,
  );
  await insert(`INSERT INTO traffic_anomalies VALUES (${owner.id}, 'egress', 1, 1, 1)`);
  await watch(asset.id);
  await nextTask(app);
  await app.runTask("record-views");
  return asset;
}
const watch = async (assetId: number) => {
  const event = (name: string, seconds: number) => ({
    asset_id: assetId,
    session_id: `s-${assetId}`,
    referrer: "https://news.example/",
    event: name,
    position_seconds: seconds,
    watched_seconds: seconds,
  });
  const body = { events: [event("play", 0), { ...event("heartbeat", 2), startup_ms: 200 }] };
  expect((await app.as().recordPlaybackEvents(body)).status).toBe(202);
};

describe("DELETE /api/v1/admin/tenants/{ref}", () => {
  test("requires the slug as confirmation", async () => {
    for (const confirm of [undefined, "", "other", String(tenant.id), tenant.slug.toUpperCase()]) {
      const answer = await app.call("DELETE", at(tenant.id, confirm), admin());
      expectError(answer, 422, "confirmation_required", confirm);
    }
    expectError(await app.call("DELETE", at(987_654, "x"), admin()), 404, "not_found");
    expectError(await app.call("DELETE", at(tenant.id, tenant.slug), { key }), 401, "unauthorized");
    expect((await app.as(key).listAssets()).status).toBe(200);
  });

  test("disables the tenant at once, and lists it as deleting until it is done", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const answer = await remove();
    expect([answer.status, answer.body]).toEqual([202, { id: tenant.id, slug: tenant.slug, status: "deleting" }]);
    expect((await remove()).status).toBe(202);
    await isDisabled();
    expectError(await app.call("GET", `/media/${asset.external_id}/master.m3u8`), 403, "tenant_suspended");
    for (const status of ["active", "suspended"])
      expectError(await app.call("PATCH", at(tenant.id), { ...admin(), body: { status } }), 409, "tenant_deleting");
    const body = { tenant_id: tenant.id, scopes: ["assets:read"] };
    expectError(await app.as({ ...admin() }).createApiKey(body), 404, "not_found");
    const again = { name: "Again", slug: tenant.slug };
    expectError(await app.as({ ...admin() }).createTenant(again), 422, "validation_failed");
    expect((await app.call("GET", at(tenant.slug), admin())).body.status).toBe("deleting");
    const listed = (await app.call("GET", "/api/v1/tenants", admin())).body;
    expect(listed.find((one: { id: number }) => one.id === tenant.id).status).toBe("deleting");
    expect((await app.call("GET", "/metrics", admin())).text).toMatch(/^vodbox_tenants_deleting 1$/m);

    await app.runTask("delete-tenants");
    expectError(await app.call("GET", at(tenant.slug), admin()), 404, "not_found");
    expect((await app.as({ ...admin() }).createTenant(again)).status).toBe(201);
    expect((await app.call("GET", "/metrics", admin())).text).toMatch(/^vodbox_tenants_deleting 0$/m);
  });

  test("removes every row and object, and nothing of another tenant", async () => {
    const other = await app.tenant();
    const otherKey = await app.key(other.id);
    await populate(tenant, key);
    const kept = await populate(other, otherKey);
    for (const token of [key, otherKey]) {
      // Indexes what is there; the upload waits to be indexed.
      expect((await app.as(token).searchAssets({ q: "a" })).status).toBe(200);
      await uploaded(app, token);
    }
    for (const { id } of [tenant, other]) {
      await insert(`INSERT INTO audio_tracks (tenant_id, asset_id, name, role, status, created_at, updated_at)
        SELECT tenant_id, id, 'a', 'main', 'ready', 1, 1 FROM assets WHERE tenant_id = ${id} LIMIT 1`);
      await insert(`INSERT INTO caption_jobs (tenant_id, asset_id, subtitle_id, status, available_at, created_at, updated_at)
        SELECT tenant_id, asset_id, id, 'failed', 1, 1, 1 FROM subtitles WHERE tenant_id = ${id} LIMIT 1`);
      await insert(`INSERT INTO caption_parts (job_id, tenant_id, asset_id, number, start_ms, end_ms, status, queue_position,
        available_at, created_at, updated_at)
        SELECT id, tenant_id, asset_id, 0, 0, 1, 'queued', 0, 1, 1, 1 FROM caption_jobs WHERE tenant_id = ${id} LIMIT 1`);
      await insert(`INSERT INTO analytics_referrers (tenant_id, asset_id, day, referrer)
        VALUES (${id}, 0, 1, 'example.com')`);
      await insert(`INSERT INTO import_runs (tenant_id, provider, total, created_at, updated_at)
        VALUES (${id}, 'mux', 1, 1, 1)`);
      await insert(`INSERT INTO subtitle_words (object_key, tenant_id, words)
        SELECT object_key, tenant_id, x'00' FROM subtitles WHERE tenant_id = ${id} LIMIT 1`);
    }
    const before = await rowsOf(other.id);
    const theirs = await rowsOf(tenant.id);
    const empty = Object.keys(theirs).filter((table) => theirs[table] === 0);
    expect(empty).toEqual([]);
    const objects = await objectsOf(other.id);
    const reach = await rows("SELECT asset_id FROM analytics_reach");
    expect(reach).toHaveLength(2);
    await app.newEvents();

    await remove();
    await app.runTask("delete-tenants");
    expect(await rows("SELECT import_id FROM import_rows")).toEqual([{ import_id: other.id }]);
    expect(
      await rows("SELECT s.tenant_id FROM live_reports AS r LEFT JOIN live_streams AS s ON s.id = r.stream_id"),
    ).toEqual([{ tenant_id: other.id }]);
    expect(await rows(`SELECT 1 FROM idempotency_records WHERE caller = 'tenant:${tenant.id}'`)).toEqual([]);
    const left = Object.entries(await rowsOf(tenant.id)).filter(([table, n]) => n > 0 && !KEPT.includes(table));
    expect(left).toEqual([]);
    expect(await rows(`SELECT 1 FROM tenants WHERE id = ${tenant.id}`)).toEqual([]);
    expect(await rows("SELECT asset_id FROM analytics_reach")).toEqual([{ asset_id: kept.id }]);
    expect(await objectsOf(tenant.id)).toEqual([]);
    expect(await rowsOf(other.id)).toEqual(before);
    expect(await objectsOf(other.id)).toEqual(objects);
    expect((await app.call("GET", `/media/${kept.external_id}/master.m3u8`)).status).toBe(200);
    expect(await rows("PRAGMA foreign_key_check")).toEqual([]);
    const audit = (await app.call("GET", "/api/v1/admin/audit", admin())).body;
    expect(audit).toContainEqual(
      expect.objectContaining({ method: "DELETE", target_type: "tenants", target_id: String(tenant.id) }),
    );
  });

  test("covers every table that belongs to tenants", async () => {
    const covered = TENANT_ROWS.map(({ table }) => table);
    expect(await tablesWithTenant()).toEqual([...new Set(covered.filter(hasTenant)), ...KEPT].sort());
    const unguarded: string[] = [];
    for (const table of await tablesWithTenant()) {
      const keys = await rows(`SELECT 1 FROM pragma_foreign_key_list('${table}') WHERE "table" = 'tenants'`);
      if (keys.length === 0 && !KEPT.includes(table)) unguarded.push(table);
    }
    expect(unguarded).toEqual(TENANT_ROWS.flatMap(({ table, isLoose }) => (isLoose ? [table] : [])).sort());
  });
  /** These are found by the row that they belong to. */
  const hasTenant = (table: string) =>
    ![
      ...["idempotency_records", "billing_events", "import_rows", "live_reports", "share_plays"],
      ...["notification_reads", "password_resets", "recovery_codes", "user_identities"],
    ].includes(table);

  test("stops a running encode: its results are not accepted, and nothing of it is left", async () => {
    await uploaded(app, key);
    const { body: contract } = await next(app);
    const [output] = (
      await app.call("POST", contract.artifacts.sign_url, {
        worker: app.worker,
        lease: contract.lease.token,
        body: { paths: [contract.outputs.manifest_path] },
      })
    ).body;
    await remove();
    await isDisabled();
    expectError(await app.call("PUT", output.url, { raw: "#EXTM3U" }), 404, "not_found");
    await app.runTask("delete-tenants");
    expectError(await app.call("PUT", output.url, { raw: "#EXTM3U" }), 404, "not_found");
    expect(await objectsOf(tenant.id)).toEqual([]);
    expect((await callback(app, contract, "heartbeat", { progress: 1 })).status).toBe(404);
    expect((await callback(app, contract, "fail", { message: "gone" })).status).toBe(404);
  });

  test("stores no playback events that were accepted before, and counts bytes sent for others", async () => {
    const other = await app.tenant();
    const otherKey = await app.key(other.id);
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const kept = (await readyAsset(app, otherKey, { playback_policy: "public" })).asset;
    for (const { id, external_id } of [asset, kept]) {
      await watch(id);
      expect((await app.call("GET", `/media/${external_id}/master.m3u8`)).status).toBe(200);
    }
    app.opened.egress.add(tenant.id, 1000);
    app.opened.egress.add(other.id, 1000);
    await remove();
    await app.runTask("delete-tenants");
    await app.runTask("record-views");
    await app.runTask("count-egress");
    expect(await rows("SELECT DISTINCT tenant_id FROM playback_sessions")).toEqual([{ tenant_id: other.id }]);
    expect(await rows("SELECT DISTINCT tenant_id FROM playback_events")).toEqual([{ tenant_id: other.id }]);
    expect(Number((await app.call("GET", at(other.id), admin())).body.egress_bytes)).toBeGreaterThanOrEqual(1000);
  });

  test("waits with the objects while a backup copies them", async () => {
    await readyAsset(app, key);
    const hold = await app.call("POST", "/api/v1/admin/removal_holds", admin());
    expect(hold.status).toBe(201);
    const objects = await objectsOf(tenant.id);
    await remove();
    await app.runTask("delete-tenants");
    expect(await objectsOf(tenant.id)).toEqual(objects);
    expect((await app.call("GET", at(tenant.id), admin())).body.status).toBe("deleting");
    await app.call("DELETE", `/api/v1/admin/removal_holds/${hold.body.id}`, admin());
    await app.runTask("delete-tenants");
    expect(await objectsOf(tenant.id)).toEqual([]);
    expectError(await app.call("GET", at(tenant.id), admin()), 404, "not_found");
  });
});
