import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
let tenantId: number;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
});

const at = (id: number) => `/api/v1/assets/${id}`;
const patch = (id: number, video_asset: Record<string, unknown>, as: { key?: string; admin?: string } = { key }) =>
  app.call("PATCH", at(id), { ...as, body: { video_asset } });
const audit = async () => (await app.as({ admin: app.admin }).listAuditEntries()).body;

describe("unpublishing", () => {
  test("applies to the next request of every media file, including segments in memory, and back", async () => {
    const { asset, contract } = await readyAsset(app, key, { playback_policy: "public" });
    const version = contract.outputs.prefix.split("/").at(-2);
    const files = ["master.m3u8", "manifest.mpd", "thumbnail.jpg", "storyboard.vtt", "storyboard.json"]
      .concat([`${version}/low/playlist.m3u8`, `${version}/low/1.m4s`])
      .map((file) => `/media/${asset.external_id}/${file}`);
    const pages = [`/embed/${asset.external_id}/player.json`, `/watch/${asset.id}`, `/embed/${asset.id}`];
    const statuses = (suffix = "") =>
      Promise.all([...files, ...pages].map(async (path) => (await app.call("GET", path + suffix)).status));
    const all = (status: number) => [...files, ...pages].map(() => status);
    // The second time, segments come from memory.
    expect([await statuses(), await statuses()]).toEqual([all(200), all(200)]);
    const etag = (await app.call("GET", files[6] as string)).headers.get("etag") as string;

    const hidden = await patch(asset.id, { playback_policy: "signed" });
    expect([hidden.status, hidden.body.playback_policy]).toEqual([200, "signed"]);
    expect(await statuses()).toEqual(all(403));
    expectError(await app.call("GET", files[6] as string), 403, "playback_token_required");
    const revalidated = await app.call("GET", files[6] as string, { headers: { "if-none-match": etag } });
    expectError(revalidated, 403, "playback_token_required");

    const playback = await app.as(key).getPlayback(asset.id);
    expect(playback.body.playback_policy).toBe("signed");
    expect(await statuses(`?token=${playback.body.token}`)).toEqual(all(200));
    const segment = await app.call("GET", `${files[6]}?token=${playback.body.token}`);
    expect(segment.headers.get("cache-control")).toBe("private, max-age=31536000, immutable");

    expect((await patch(asset.id, { playback_policy: "public" })).status).toBe(200);
    expect(await statuses()).toEqual(all(200));
  });

  test("is audited for a key and for the operator, like any other change", async () => {
    const { asset } = await readyAsset(app, key);
    await patch(asset.id, { title: "New" });
    const [title, ...earlier] = await audit();
    expect(title).toMatchObject({ actor: "key", fields: ["video_asset", "video_asset.title"] });
    const before = earlier.length + 1;
    await patch(asset.id, { playback_policy: "public" });
    await patch(asset.id, { playback_policy: "signed" }, { admin: app.admin });
    const [second, first, ...rest] = await audit();
    expect(rest.length).toBe(before);
    for (const [entry, actor] of [
      [first, "key"],
      [second, "admin"],
    ])
      expect(entry).toMatchObject({
        actor,
        tenant_id: tenantId,
        target_type: "assets",
        target_id: String(asset.id),
        fields: ["video_asset", "video_asset.playback_policy"],
      });
  });

  test("is refused for another policy, another tenant's asset and media that another server delivers", async () => {
    const { asset } = await uploaded(app, key);
    for (const playback_policy of ["private", null, 1, ""])
      expectError(await patch(asset.id, { playback_policy }), 422, "validation_failed");
    const other = await app.key((await app.tenant()).id);
    expectError(await patch(asset.id, { playback_policy: "public" }, { key: other }), 404, "not_found");
    const external = await app.as(key).createAsset({
      tenant_id: tenantId,
      video_asset: {
        title: "CDN",
        input_status: "uploaded",
        playback_status: "ready",
        source_bytes: 0,
        storage_bytes: 0,
        duration_seconds: 1,
        source_key: "",
        provider: "external_serve",
        manifest_url: "https://cdn.example.com/a.m3u8",
      },
    });
    expectError(await patch(external.body.asset.id, { playback_policy: "signed" }), 422, "validation_failed");
    expect((await patch(external.body.asset.id, { playback_policy: "public" })).status).toBe(200);
  });
});

describe("a field that cannot be changed", () => {
  test("is refused with another value and accepted with the current one", async () => {
    const { asset } = await readyAsset(app, key, { tags: { a: 1 } });
    const { body: whole } = await app.as(key).getAsset(asset.id);
    // What was read can be sent back with a change.
    const sent = await patch(asset.id, { ...whole, title: "Renamed" });
    expect([sent.status, sent.body.title]).toEqual([200, "Renamed"]);
    const { body: now } = await app.as(key).getAsset(asset.id);
    for (const [name, value] of Object.entries({
      id: 9,
      tenant_id: 9,
      external_id: "mine",
      playback_status: "draft",
      input_status: "pending",
      source_key: "tenants/1/x",
      source_bytes: 1,
      duration_seconds: 0,
      tags: { a: 2 },
      provider: "external_serve",
      error: { code: "x", message: "y" },
      ready_at: null,
      created_at: "2020-01-01T00:00:00Z",
      width: null,
    })) {
      const refused = await patch(asset.id, { title: "Never", [name]: value });
      expectError(refused, 422, "validation_failed");
      expect(refused.body.details, name).toHaveProperty([`video_asset.${name}`]);
    }
    expect((await app.as(key).getAsset(asset.id)).body).toEqual(now);
  });

  test("that no asset has is ignored, as before", async () => {
    const { asset } = await uploaded(app, key);
    const sent = await patch(asset.id, { title: "B", colour: "red", toString: 1, constructor: {} });
    expect([sent.status, sent.body.title, sent.body.colour]).toEqual([200, "B", undefined]);
  });
});

describe("an asset with expires_at", () => {
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

  test("is deleted after that time, with its event and its objects, and not before", async () => {
    const { asset } = await readyAsset(app, key);
    const kept = await readyAsset(app, key);
    const expires_at = inMs(600_000);
    const set = await patch(asset.id, { expires_at });
    expect([set.status, set.body.expires_at]).toEqual([200, expires_at]);
    await patch(kept.asset.id, { expires_at });
    expect((await patch(kept.asset.id, { expires_at: null })).body.expires_at).toBeNull();
    await app.newEvents();
    app.advance(590_000);
    await app.runTask("expire-assets");
    expect((await app.as(key).getAsset(asset.id)).body.expires_at).toBe(expires_at);
    app.advance(10_000);
    await app.runTask("expire-assets");
    expectError(await app.as(key).getAsset(asset.id), 404, "not_found");
    expect((await app.call("GET", `/media/${asset.external_id}/master.m3u8`)).status).toBe(404);
    expect(await app.newEvents()).toMatchObject([
      { type: "video.asset.deleted", data: { asset_id: String(asset.id), external_id: asset.external_id } },
    ]);
    app.advance(2 * 120_000);
    await app.runTask("sweep-objects");
    const left = (await app.opened.app.objects?.list(`tenants/${tenantId}/`))?.objects.map((one) => one.key) ?? [];
    expect(left.filter((name) => name.includes(`/assets/${asset.id}/`) || name === asset.source_key)).toEqual([]);
    expect(left.some((name) => name.includes(`/assets/${kept.asset.id}/`))).toBe(true);
  });

  test("needs a time in the future", async () => {
    const { asset } = await uploaded(app, key);
    for (const expires_at of [inMs(-1000), "2020-01-01T00:00:00Z", "tomorrow", 5, "", "9999-99-99T00:00:00Z"])
      expectError(await patch(asset.id, { expires_at }), 422, "validation_failed");
    const soon = inMs(60_000);
    expect((await patch(asset.id, { expires_at: soon })).status).toBe(200);
    app.advance(120_000);
    // What is there already is not a new time.
    expect((await patch(asset.id, { expires_at: soon, title: "B" })).status).toBe(200);
  });

  test("is one of thousands: they go in small transactions, and other requests continue", async () => {
    const many = 1000;
    const { asset } = await readyAsset(app, key);
    await app.opened.app.write(async (tx) => {
      await tx.run(`INSERT INTO assets (tenant_id, external_id, title, input_status, playback_status, playback_policy, source_key,
        expires_at, created_at, updated_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${many})
        SELECT ${tenantId}, 'vid_x' || i, 'Old ' || i, 'uploaded', 'ready', 'signed', '', ${Date.now() - 1000}, 1, 1 FROM n`);
    });
    await app.newEvents();
    let isDone = false;
    const waits: number[] = [];
    const task = app.runTask("expire-assets").finally(() => {
      isDone = true;
    });
    while (!isDone) {
      const from = performance.now();
      expect((await patch(asset.id, { title: `T${waits.length}` })).status).toBe(200);
      waits.push(performance.now() - from);
    }
    await task;
    expect((await app.newEvents()).filter(({ type }) => type === "video.asset.deleted")).toHaveLength(many);
    expect((await app.as(key).listAssets()).body).toHaveLength(1);
    expect(waits.length).toBeGreaterThan(many / 100);
  });
});
