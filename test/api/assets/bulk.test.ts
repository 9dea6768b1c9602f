import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
let tenantId: number;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
});
const get = async (id: number) => (await app.as(key).getAsset(id)).body;
const bulk = (body: Record<string, unknown>, as: { key?: string; admin?: string } = { key }, headers = {}) =>
  app.as({ ...as, headers }).unchecked.changeAssets(body);

/** Drafts, written directly: a thousand uploads take too long. */
async function drafts(count: number, of = tenantId): Promise<number[]> {
  const rows = await app.opened.app.write((tx) =>
    tx.all<{
      id: number;
    }>(`INSERT INTO assets (tenant_id, external_id, title, input_status, playback_status, playback_policy,
      source_key, created_at, updated_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      SELECT ${of}, 'vid_' || hex(randomblob(11)), 'Draft ' || i, 'pending', 'draft', 'signed', '', 1, 1 FROM n RETURNING id`),
  );
  return rows.map(({ id }) => id).sort((a, b) => a - b);
}

describe("a bulk change", () => {
  test("applies each action to each asset, and reports the others with their errors", async () => {
    const [a = 0, b = 0] = await drafts(2);
    const [foreign = 0] = await drafts(1, (await app.tenant()).id);
    const collection = (
      await app.as(key).createCollection({ tenant_id: tenantId, collection: { name: "C", slug: "c" } })
    ).body;
    const missing = [foreign, 999_999].map((id) => ({ id, code: "not_found", message: "No such asset." }));
    const ids = [b, foreign, a, 999_999, b];
    for (const [change, field, value] of [
      [{ action: "move", collection_id: collection.id }, "collection_id", collection.id],
      [{ action: "tag", tags: { season: 1, draft: true } }, "tags", { season: 1, draft: true }],
      [{ action: "tag", tags: { draft: null } }, "tags", { season: 1 }],
      [{ action: "policy", playback_policy: "public" }, "playback_policy", "public"],
    ] as const) {
      const { status, body } = await bulk({ ids, ...change });
      expect([status, body]).toEqual([200, { applied: [b, a], errors: missing }]);
      for (const id of [a, b]) expect((await get(id))[field]).toEqual(value);
    }
    expect((await app.as(key).listCollections()).body[0].asset_count).toBe(2);
    // The collection of another tenant counts as none, as everywhere.
    expect((await bulk({ ids: [a], action: "move", collection_id: 77 })).body.applied).toEqual([a]);
    expect((await get(a)).collection_id).toBeNull();
    await app.newEvents();
    expect((await bulk({ ids, action: "delete" })).body).toEqual({ applied: [b, a], errors: missing });
    expect((await app.newEvents()).map(({ type }) => type)).toEqual(["video.asset.deleted", "video.asset.deleted"]);
    const other = (await app.as({ admin: app.admin }).getAsset(foreign)).body;
    expect([other.tags, other.playback_policy]).toEqual([{}, "signed"]);
  });

  test("retries errored assets, and says why others cannot be", async () => {
    const { asset } = await uploaded(app, key);
    const { body: contract } = await next(app);
    await callback(app, contract, "fail", { code: "x", message: "y", retryable: false });
    const [draft = 0] = await drafts(1);
    const { body } = await bulk({ ids: [draft, asset.id], action: "retry" });
    expect(body.applied).toEqual([asset.id]);
    expect(body.errors).toMatchObject([{ id: draft, code: "asset_conflict" }]);
    expect((await get(asset.id)).playback_status).toBe("processing");
  });

  test("refuses an asset that would get too many tags, and changes the others", async () => {
    const [full = 0, empty = 0] = await drafts(2);
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, index]));
    expect((await bulk({ ids: [full], action: "tag", tags: many })).body.applied).toEqual([full]);
    const { body } = await bulk({ ids: [full, empty], action: "tag", tags: { one: "more" } });
    expect(body).toMatchObject({ applied: [empty], errors: [{ id: full, code: "validation_failed" }] });
    expect(Object.keys((await get(full)).tags)).toHaveLength(100);
  });

  test("needs one to a thousand ids, an action and exactly its parameter", async () => {
    const [id = 0] = await drafts(1);
    const ids = [id];
    for (const body of [{}, { ids }, { action: "delete" }, { ids, action: "tag" }, { ids, action: "move" }])
      expectError(await bulk(body), 422, "parameter_missing");
    for (const body of [
      { ids: [], action: "delete" },
      { ids: Array.from({ length: 1001 }, (_, index) => index + 1), action: "delete" },
      { ids, action: "explode" },
      { ids, action: "delete", tags: {} },
      { ids, action: "policy", playback_policy: "open" },
      { ids, action: "tag", tags: { a: [1] } },
    ])
      expectError(await bulk(body), 422, "validation_failed");
    expect((await bulk({ ids, action: "delete" }, { key: await app.key(tenantId, ["assets:read"]) })).status).toBe(403);
    expect((await get(id)).id).toBe(id);
  });

  test("with an Idempotency-Key is applied once, also when the requests are concurrent", async () => {
    const ids = await drafts(60);
    const once = { "idempotency-key": "once" };
    const answers = await Promise.all([1, 2, 3].map(() => bulk({ ids, action: "delete" }, { key }, once)));
    for (const { status, body } of answers) expect([status, body]).toEqual([200, { applied: ids, errors: [] }]);
    expect(answers.filter(({ headers }) => headers.has("idempotent-replayed"))).toHaveLength(2);
    const other = await bulk({ ids, action: "retry" }, { key }, once);
    expectError(other, 422, "idempotency_key_reused");
    expect((await app.newEvents()).filter(({ type }) => type === "video.asset.deleted")).toHaveLength(60);
  });

  test("is one audit entry, for a key too", async () => {
    const ids = await drafts(30);
    await bulk({ ids: [999_999, ...ids], action: "policy", playback_policy: "public" });
    const entries = (await app.as({ admin: app.admin }).listAuditEntries({ tenant_id: tenantId })).body;
    const [entry, ...others] = entries.filter((one: { route: string }) => one.route === "/api/v1/assets/bulk");
    expect(entry).toMatchObject({ actor: "key", fields: ["ids", "action", "playback_policy"] });
    expect(others).toEqual([]);
  });

  test("of a thousand assets lets other requests continue", async () => {
    const ids = await drafts(1000);
    const [other = 0] = await drafts(1, (await app.tenant()).id);
    let isDone = false;
    const deletion = bulk({ ids, action: "delete" }).finally(() => {
      isDone = true;
    });
    let answered = 0;
    for (; !isDone; answered++) {
      const body = { video_asset: { title: `T${answered}` } };
      expect((await app.as({ admin: app.admin }).updateAsset(other, body)).status).toBe(200);
    }
    expect((await deletion).body).toEqual({ applied: ids, errors: [] });
    // Far more than one at the end.
    expect(answered).toBeGreaterThan(20);
  });
});
