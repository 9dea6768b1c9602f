import { eq, sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { assets, subtitles, tracks } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";

let app: TestApp;
let tenant: { id: number; slug: string };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const external = async (fields: Record<string, unknown>) => {
  const video_asset = {
    title: "x",
    input_status: "pending",
    playback_status: "ready",
    provider: "external_serve",
    source_bytes: 0,
    storage_bytes: 0,
    duration_seconds: 0,
    source_key: `tenants/${tenant.id}/x`,
    manifest_url: "https://cdn.example/a.m3u8",
    ...fields,
  };
  return (await app.as(key).createAsset({ tenant_id: tenant.id, video_asset })).body.asset;
};

describe("the graph export", () => {
  test("has everything to play an asset elsewhere, and no credentials", async () => {
    const folder = await app.as(key).createCollection({ tenant_id: tenant.id, collection: { name: "F", slug: "f" } });
    const { asset } = await readyAsset(app, key, { title: "One", tags: { a: 1 }, collection_id: folder.body.id });
    const common = { tenantId: tenant.id, assetId: asset.id, createdAt: 1, updatedAt: 1 };
    await app.opened.app.write(async (tx) => {
      const text = { ...common, label: "English", source: "upload" as const, bytes: 1 };
      await tx.insert(subtitles).values([
        { ...text, language: "en", position: 1, objectKey: "tenants/1/en.vtt" },
        { ...text, language: "de", label: "Deutsch", objectKey: "tenants/1/de.vtt" },
        { ...text, language: "fr", status: "pending", objectKey: "tenants/1/fr.vtt" },
      ]);
      const cues = [{ start_ms: 5, payload: { title: "Start" } }];
      await tx.insert(tracks).values({ ...common, kind: "chapter", name: "main", status: "ready", cues });
    });
    const { body: now } = await app.as(key).getAsset(asset.id);
    const answer = await app.as(await app.key(tenant.id, ["assets:read"])).exportGraph();
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      schema_version: 1,
      exported_at: expect.stringMatching(/^\d{4}-.*Z$/),
      tenant: tenant.slug,
      assets: [
        {
          id: asset.id,
          external_id: asset.external_id,
          title: "One",
          description: null,
          tags: { a: 1 },
          duration_seconds: 4,
          ownership: {
            tenant_id: tenant.id,
            tenant: tenant.slug,
            collection: { id: folder.body.id, name: "F", slug: "f" },
          },
          provider: "managed",
          source_key: now.source_key,
          hls: { manifest_path: now.manifest_path, renditions: [] },
          shared_media: null,
          dash: { manifest_path: now.dash_manifest_path },
          thumbnails: [
            { kind: "thumbnail", path: now.thumbnail_path },
            { kind: "storyboard", path: now.storyboard_path },
          ],
          subtitles: [
            { language: "de", label: "Deutsch", path: "tenants/1/de.vtt" },
            { language: "en", label: "English", path: "tenants/1/en.vtt" },
          ],
          tracks: [
            {
              kind: "chapter",
              name: "main",
              status: "ready",
              source: null,
              producer: null,
              storage_key: null,
              cues: [{ start_ms: 5, payload: { title: "Start" } }],
            },
          ],
          delivery: { policy: "signed", auth: "playback_token" },
        },
      ],
    });
    expect(answer.text).not.toMatch(/token=|sig=|signature|secret|https?:/i);
  });

  test("contains the URL of external public media, and none of signed ones", async () => {
    await external({ playback_policy: "public" });
    // From before these were refused.
    const { id } = await external({});
    await app.opened.app.write((tx) => tx.update(assets).set({ playbackPolicy: "signed" }).where(eq(assets.id, id)));
    const [signed, open] = (await app.as(key).exportGraph()).body.assets;
    expect([open.manifest_url, open.delivery]).toEqual([
      "https://cdn.example/a.m3u8",
      { policy: "public", auth: "none" },
    ]);
    expect([signed.manifest_url, signed.delivery.auth]).toEqual([undefined, "playback_token"]);
  });

  test("is for one tenant, which the admin token must name", async () => {
    await external({});
    const other = await app.tenant();
    expect((await app.as(await app.key(other.id)).exportGraph()).body).toMatchObject({
      tenant: other.slug,
      assets: [],
    });
    expectError(await app.as({ admin: app.admin }).exportGraph(), 422, "parameter_missing");
    expectError(await app.as({ admin: app.admin }).exportGraph({ tenant_id: 99 }), 404, "not_found");
    expectError(await app.as(key).exportGraph({ tenant_id: other.id }), 404, "not_found");
    expect((await app.as({ admin: app.admin }).exportGraph({ tenant_id: tenant.id })).body.assets).toHaveLength(1);
  });

  test("has every asset once, over all its pages", async () => {
    await app.opened.app.write(async (tx) =>
      tx.run(sql`
        with recursive n (i) as (values (1) union all select i + 1 from n where i < 105)
        insert into assets (tenant_id, external_id, title, input_status, playback_status, playback_policy, source_key,
          created_at, updated_at)
        select ${tenant.id}, 'vid_' || i, 't' || i, 'pending', 'draft', 'signed', 'k', 1, 1 from n`),
    );
    const { body } = await app.as(key).exportGraph();
    expect(body.assets.map((each) => each.title)).toEqual(Array.from({ length: 105 }, (_, i) => `t${105 - i}`));
  });
});
