import type Mux from "@mux/mux-node";
import { beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import { toMuxAsset, toTextTrack } from "#features/mux/assets/record.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
let mux: Mux;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  mux = muxClient(app, key);
});

/** What the types of Mux's client say. */
test("generated subtitles may be described as tracks, as the plugin of Strapi does", async () => {
  const track = {
    language_code: "en",
    name: "English (CC)",
    type: "text",
    text_type: "subtitles",
    closed_captions: true,
  };
  const inputs = [{ url: SOURCE, generated_subtitles: [track] }] as never;
  const made = await mux.video.assets.create({ inputs, playback_policies: ["public"] });
  expect(made.status).toBe("preparing");
  const wrong = [{ url: SOURCE, generated_subtitles: [{ ...track, type: "audio" }] }] as never;
  expect(await refusal(mux.video.assets.create({ inputs: wrong }))).toMatchObject({ status: 400 });
});

test("an asset has Mux's type", () => {
  expectTypeOf(toMuxAsset).returns.resolves.toExtend<Mux.Video.Asset>();
  expectTypeOf(toTextTrack).returns.toExtend<Mux.Video.Track>();
});

const SOURCE = "https://example.com/a/film.mp4";

describe("an asset", () => {
  test("that is created from a URL has what was requested, in both APIs", async () => {
    const made = await mux.video.assets.create({
      inputs: [{ url: SOURCE, generated_subtitles: [{ language_code: "en", name: "English CC" }] }],
      playback_policies: ["public", "signed"],
      meta: { title: "A film", creator_id: "c-1", external_id: "e-1" },
      passthrough: "mine",
      video_quality: "basic",
      max_resolution_tier: "1080p",
    });
    expect(made).toMatchObject({
      status: "preparing",
      progress: { state: "ingesting", progress: 0 },
      meta: { title: "A film", creator_id: "c-1", external_id: "e-1" },
      passthrough: "mine",
      video_quality: "basic",
      encoding_tier: "baseline",
      max_resolution_tier: "1080p",
      master_access: "none",
      ingest_type: "on_demand_url",
      static_renditions: { status: "disabled" },
    });
    expect(made.created_at).toMatch(/^\d{10}$/);
    expect(made.playback_ids?.map(({ policy }) => policy)).toEqual(["public", "signed"]);
    const { body } = await app.as(key).getAsset(made.id);
    expect(body).toMatchObject({
      title: "A film",
      playback_policy: "public",
      encoding_profile: "fast",
      tags: { passthrough: "mine", creator_id: "c-1", external_id: "e-1" },
      playback_ids: made.playback_ids,
    });
    expect(await mux.video.assets.retrieve(made.id)).toEqual(made);
  });

  test("that is made natively is complete", async () => {
    const tags = { passthrough: "p", creator_id: "c", year: 2026 };
    const { asset } = await readyAsset(app, key, { title: "Native", tags });
    const found = await mux.video.assets.retrieve(String(asset.id));
    expect(found).toMatchObject({
      status: "ready",
      duration: 4,
      aspect_ratio: "16:9",
      resolution_tier: "720p",
      max_stored_frame_rate: 30,
      progress: { state: "completed", progress: 100 },
      meta: { title: "Native", creator_id: "c" },
      passthrough: "p",
      playback_ids: [{ id: asset.external_id, policy: "signed" }],
    });
    expect(found.tracks?.[0]).toMatchObject({ type: "video", max_width: 640, max_height: 360 });
    const [info] = await mux.video.assets.retrieveInputInfo(String(asset.id));
    expect(info?.file?.tracks?.[0]).toMatchObject({ type: "video", width: 640, height: 360, frame_rate: 30 });
  });

  test("is changed and deleted", async () => {
    const { asset } = await readyAsset(app, key, { title: "Before" });
    const id = String(asset.id);
    const changed = await mux.video.assets.update(id, { meta: { title: "After", creator_id: "me" }, passthrough: "x" });
    expect(changed).toMatchObject({ meta: { title: "After", creator_id: "me" }, passthrough: "x" });
    const cleared = await mux.video.assets.update(id, { passthrough: "" });
    expect(cleared.passthrough).toBeUndefined();
    const added = await mux.video.assets.createPlaybackId(id, { policy: "public" });
    expect(await mux.video.assets.retrievePlaybackId(id, added.id)).toEqual(added);
    expect(await mux.video.playbackIds.retrieve(added.id)).toEqual({ ...added, object: { id, type: "asset" } });
    await mux.video.assets.deletePlaybackId(id, added.id);
    expect(await refusal(mux.video.assets.retrievePlaybackId(id, added.id))).toMatchObject({ status: 404 });
    expect(await refusal(mux.video.assets.deletePlaybackId(id, asset.external_id))).toMatchObject({ status: 400 });
    const open = await mux.video.assets.updateMasterAccess(id, { master_access: "temporary" });
    expect(open).toMatchObject({ master_access: "temporary", master: { status: "ready" } });
    expect((await app.call("GET", open.master?.url as string)).text).toBe("not really a video");
    app.advance(25 * 3_600_000);
    expect((await mux.video.assets.retrieve(id)).master_access).toBe("none");
    await mux.video.assets.deleteThumbnailTime(id);
    await mux.video.assets.delete(id);
    expect(await refusal(mux.video.assets.retrieve(id))).toMatchObject({ status: 404, type: "not_found" });
  });

  test("has static renditions, from its creation on", async () => {
    const made = await mux.video.assets.create({
      inputs: [{ url: SOURCE }],
      static_renditions: [{ resolution: "highest" }, { resolution: "audio-only" }],
    });
    expect(made.static_renditions).toMatchObject({
      status: "preparing",
      files: [
        { name: "highest.mp4", status: "preparing" },
        { name: "audio.m4a", ext: "m4a", resolution: "audio-only" },
      ],
    });
    const { asset } = await readyAsset(app, key);
    const id = String(asset.id);
    const small = await mux.video.assets.createStaticRendition(id, { resolution: "270p" });
    expectTypeOf(small).toEqualTypeOf<Mux.Video.StaticRendition>();
    expect(small).toMatchObject({ name: "270p.mp4", status: "skipped" });
    expect(await refusal(mux.video.assets.createStaticRendition(id, { resolution: "270p" }))).toMatchObject({
      status: 400,
    });
    const files = async () => {
      const { mp4_support: support, static_renditions: all } = await mux.video.assets.retrieve(id);
      return [support, all?.status, ...(all?.files ?? []).map(({ name }) => name)];
    };
    await mux.video.assets.updateMP4Support(id, { mp4_support: "audio-only,capped-1080p" });
    expect(await files()).toEqual(["audio-only,capped-1080p", "ready", "270p.mp4", "audio.m4a", "capped-1080p.mp4"]);
    await mux.video.assets.updateMP4Support(id, { mp4_support: "standard" });
    expect(await files()).toEqual(["standard", "ready", "270p.mp4", "low.mp4", "medium.mp4", "high.mp4"]);
    await mux.video.assets.updateMP4Support(id, { mp4_support: "none" });
    await mux.video.assets.deleteStaticRendition(id, small.id as string);
    expect(await files()).toEqual(["none", "disabled"]);
    expect(await refusal(mux.video.assets.deleteStaticRendition(id, small.id as string))).toMatchObject({
      status: 404,
    });
  });

  test("lists are paged by number and by cursor, and hold nothing of other tenants", async () => {
    const stranger = muxClient(app, await app.key((await app.tenant()).id));
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift((await mux.video.assets.create({ inputs: [{ url: SOURCE }] })).id);
    const seen: string[] = [];
    for await (const one of mux.video.assets.list({ limit: 2 })) seen.push(one.id);
    expect(seen).toEqual(ids);
    expect((await mux.video.assets.list({ limit: 2, page: 2 })).data.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    expect((await mux.video.assets.list({ limit: 2, page: 4 })).data).toEqual([]);
    expect((await stranger.video.assets.list()).data).toEqual([]);
    expect(await refusal(stranger.video.assets.retrieve(ids[0] as string))).toMatchObject({ status: 404 });
    expect(await refusal(stranger.video.assets.delete(ids[0] as string))).toMatchObject({ status: 404 });
  });
});

const create = (fields: object) => () => mux.video.assets.create({ inputs: [{ url: SOURCE }], ...fields } as never);
const input = (fields: object) => () => mux.video.assets.create({ inputs: [{ url: SOURCE, ...fields }] } as never);

describe("nothing is ignored", () => {
  test.each<[string, () => Promise<unknown>, number, string, string]>([
    ["an overlay", input({ overlay_settings: { vertical_align: "top" } }), 422, "not_supported", "overlay_settings"],
    ["DRM", create({ playback_policies: ["drm"] }), 422, "not_supported", "playback_policies"],
    [
      "the passthrough of a static rendition",
      create({ static_renditions: [{ resolution: "highest", passthrough: "x" }] }),
      422,
      "not_supported",
      "static_renditions",
    ],
    [
      "an unknown rendition",
      create({ static_renditions: [{ resolution: "9p" }] }),
      400,
      "invalid_parameters",
      "resolution",
    ],
    ["a test asset", create({ test: true }), 422, "not_supported", "test"],
    ["normalized audio", create({ normalize_audio: true }), 422, "not_supported", "normalize_audio"],
    [
      "a resolution tier that the quality does not have",
      create({ max_resolution_tier: "1440p" }),
      422,
      "not_supported",
      "max_resolution_tier",
    ],
    [
      "1080p of the default quality",
      create({ max_resolution_tier: "1080p" }),
      422,
      "not_supported",
      "max_resolution_tier",
    ],
    [
      "the language auto",
      input({ generated_subtitles: [{ language_code: "auto" }] }),
      422,
      "not_supported",
      "generated_subtitles",
    ],
    [
      "an audio track",
      create({ inputs: [{ url: SOURCE }, { url: SOURCE, type: "audio" }] }),
      422,
      "not_supported",
      "type",
    ],
    ["a part of a URL", input({ start_time: 1 }), 422, "not_supported", "start_time"],
    ["an unknown field", create({ colour: "red" }), 400, "invalid_parameters", "colour"],
    ["an unknown policy", create({ playback_policies: ["secret"] }), 400, "invalid_parameters", "playback_policies"],
    ["no inputs", create({ inputs: undefined }), 400, "invalid_parameters", "inputs"],
    ["a URL of no kind", create({ inputs: [{ url: "mux://live/1" }] }), 400, "invalid_parameters", "url"],
    ["a long passthrough", create({ passthrough: "x".repeat(256) }), 400, "invalid_parameters", "passthrough"],
    [
      "an unknown parameter of a list",
      () => mux.video.assets.list({ size: 3 } as never),
      400,
      "invalid_parameters",
      "size",
    ],
    [
      "a live stream and an upload of a list",
      () => mux.video.assets.list({ live_stream_id: "1", upload_id: "x" }),
      422,
      "not_supported",
      "live_stream_id",
    ],
    ["a page too far", () => mux.video.assets.list({ page: 999_999, limit: 100 }), 422, "not_supported", "page"],
    ["an endpoint that vodbox does not have", () => mux.video.drmConfigurations.list(), 404, "not_found", "endpoint"],
  ])("%s", async (_, send, status, type, named) => {
    const found = await refusal(send());
    expect([found.status, found.type]).toEqual([status, type]);
    expect(found.messages.join()).toContain(named);
    expect((await mux.video.assets.list()).data).toEqual([]);
  });
});

describe("credentials", () => {
  test("are keys with their scopes, as the password", async () => {
    expect(await refusal(muxClient(app, "svc_wrong").video.assets.list())).toMatchObject({
      status: 401,
      type: "unauthorized",
    });
    const reader = muxClient(app, await app.key(tenant.id, ["assets:read"]));
    expect((await reader.video.assets.list()).data).toEqual([]);
    expect(await refusal(reader.video.assets.create({ inputs: [{ url: SOURCE }] }))).toMatchObject({
      status: 403,
      type: "forbidden",
    });
    const bare = await app.call("GET", "/mux/video/v1/assets");
    expect([bare.status, bare.body.error.type, bare.headers.get("www-authenticate")]).toEqual([
      401,
      "unauthorized",
      'Basic realm="vodbox"',
    ]);
    const unknown = await app.call("DELETE", "/mux/nothing/here");
    expect([unknown.status, unknown.body.error.type]).toEqual([404, "not_found"]);
  });
});
