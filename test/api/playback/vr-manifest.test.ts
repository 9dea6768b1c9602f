import { beforeEach, describe, expect, test } from "vitest";
import { tracks } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { CallOptions } from "#test/support/client.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const manifestOf = async (id: number) => {
  const reader = await app.key(tenant.id, ["billing:write"]);
  return app.call("GET", `/api/v1/assets/${id}/vr_manifest.json`, { key: reader });
};

describe("the manifest for VR players", () => {
  test("with signed playback contains media that play, with a token, under both spellings", async () => {
    const { asset } = await readyAsset(app, key, { tags: { vr_projection: "180", vr_stereo: "sbs" }, title: "Dive" });
    const { status, body } = await manifestOf(asset.id);
    expect(status).toBe(200);
    expect(body).toEqual({
      authorized: "1",
      fullAccess: true,
      title: "Dive",
      id: asset.id,
      videoLength: 4,
      is3d: true,
      screenType: "dome",
      stereoMode: "sbs",
      thumbnailUrl: expect.stringContaining("thumbnail.jpg?token="),
      encodings: [
        {
          name: "h264",
          "video-sources": [{ resolution: 360, url: expect.any(String) }],
          videoSources: body.encodings[0]["video-sources"],
        },
      ],
    });
    const { url } = body.encodings[0]["video-sources"][0];
    expect(new URL(url).searchParams.get("token")).toMatch(/^ey/);
    const playlist = await app.call("GET", url);
    expect([playlist.status, playlist.text.slice(0, 7)]).toEqual([200, "#EXTM3U"]);
    expectError(await app.call("GET", url.split("?")[0]), 403, "playback_token_required");
    app.advance(3_700_000);
    expectError(await app.call("GET", url), 403, "playback_token_invalid");
  });

  test("contains a single file where the server creates one", async () => {
    const maker = await testApp({ static_mp4: true });
    const owner = await maker.key((await maker.tenant()).id);
    const { asset } = await readyAsset(maker, owner);
    const { body: playback } = await maker.call("GET", `/api/v1/playback/${asset.id}`, { key: owner });
    const { body } = await maker.call("GET", `/api/v1/assets/${asset.id}/vr_manifest.json`, { key: owner });
    const [source] = body.encodings[0].videoSources;
    expect(source.resolution).toBe(360);
    for (const address of [playback.mp4_url, source.url]) {
      expect(new URL(address).pathname).toBe(`/media/${asset.external_id}/video.mp4`);
      const part = await maker.call("GET", address, { headers: { range: "bytes=6-9" } });
      expect([part.status, part.text, part.headers.get("content-type")]).toEqual([206, "file", "video/mp4"]);
    }
    expectError(await maker.call("GET", playback.mp4_url.split("?")[0]), 403, "playback_token_required");

    const { asset: plain } = await readyAsset(app, key);
    const { body: without } = await app.as(key).getPlayback(plain.id);
    expect(without).not.toHaveProperty("mp4_url");
    expectError(await app.call("GET", without.hls_url.replace("master.m3u8", "video.mp4")), 404, "not_found");
  });

  test("of a public asset contains no token", async () => {
    const { asset } = await readyAsset(app, key, { playback_policy: "public" });
    const { url } = (await manifestOf(asset.id)).body.encodings[0].videoSources[0];
    expect(url).not.toContain("token");
    expect((await app.call("GET", url)).status).toBe(200);
  });

  test.for<[unknown, unknown, string, string, boolean]>([
    [undefined, undefined, "flat", "off", false],
    ["flat", "mono", "flat", "off", false],
    [180, "left-right", "dome", "sbs", true],
    ["equirectangular", "Top Bottom", "sphere", "tb", true],
    ["360", "tb", "sphere", "tb", true],
    ["fisheye", "sbs", "fisheye", "sbs", true],
    ["MKX200", "sbs", "mkx200", "sbs", true],
    ["rf52", "cuv", "rf52", "cuv", true],
    ["toString", true, "flat", "off", false],
  ])(
    "has the projection %j and stereo %j in DeoVR's terms",
    async ([projection, stereo, screenType, stereoMode, is3d]) => {
      const tags = {
        ...(projection !== undefined && { vr_projection: projection }),
        ...(stereo !== undefined && { vr_stereo: stereo }),
      };
      const { asset } = await readyAsset(app, key, { tags });
      expect((await manifestOf(asset.id)).body).toMatchObject({ screenType, stereoMode, is3d });
    },
  );

  test("has the chapters of the asset's tracks", async () => {
    const { asset } = await readyAsset(app, key);
    const common = { tenantId: tenant.id, assetId: asset.id, createdAt: 1, updatedAt: 1 };
    const cue = (start_ms: number, payload: Record<string, unknown>) => ({ start_ms, payload });
    await app.opened.app.write(async (tx) =>
      tx.insert(tracks).values([
        {
          ...common,
          kind: "chapter",
          name: "main",
          status: "ready",
          cues: [cue(0, { title: "Start" }), cue(61_900, { name: "Reef" })],
        },
        { ...common, kind: "chapter", name: "more", status: "ready", cues: [cue(2000, { title: " " })] },
        { ...common, kind: "chapter", name: "later", status: "pending", cues: [cue(1, { title: "no" })] },
        { ...common, kind: "scene", name: "s", status: "ready", cues: [cue(1, { title: "no" })] },
        { ...common, kind: "chapter", name: "far", status: "ready", cues: null, storageKey: "k" },
      ]),
    );
    expect((await manifestOf(asset.id)).body.timeStamps).toEqual([
      { ts: 0, name: "Start" },
      { ts: 2, name: "more" },
      { ts: 61, name: "Reef" },
    ]);
  });

  test("is 422 before the asset is ready, 404 for an unknown or another tenant's asset", async () => {
    const { asset } = await uploaded(app, key);
    expectError(await manifestOf(asset.id), 422, "asset_not_ready");
    expectError(await manifestOf(999), 404, "not_found");
    const theirs = await uploaded(app, await app.key((await app.tenant()).id));
    expectError(await manifestOf(theirs.asset.id), 404, "not_found");
  });
});

describe("an asset of several renditions", () => {
  const SIZES = { "2160p": [4320, 2160], "1080p": [2160, 1080], "4096p-hevc": [8192, 4096] } as const;
  const codecsOf = (name: string) => `${name.endsWith("hevc") ? "hvc1.1.6.L180.90" : "avc1.640033"},mp4a.40.2`;

  async function several(fields: Record<string, unknown> = {}) {
    const { asset } = await uploaded(app, key, { encoding_profile: "vr", ...fields });
    const { body: contract } = await next(app);
    const variants = Object.keys(SIZES).map(
      (name) => `#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="${codecsOf(name)}",AUDIO="audio"\n${name}/playlist.m3u8\n`,
    );
    const master = [
      '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="a",DEFAULT=YES,URI="audio/playlist.m3u8"\n',
      ...variants,
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=10,URI="2160p/iframes.m3u8"\n',
    ].join("");
    const paths = await putArtifacts(app, contract, { [contract.outputs.manifest_path]: master });
    const renditions = Object.entries(SIZES).map(([name, [width, height]]) => ({
      name,
      width,
      height,
      bandwidth: 1000,
      codecs: codecsOf(name),
      playlist_path: `${contract.outputs.prefix}${name}/playlist.m3u8`,
    }));
    const media = { duration_seconds: 4, width: 8192, height: 4096, frame_rate: 30, renditions };
    expect((await callback(app, contract, "complete", { ...paths, media })).status).toBe(200);
    return asset;
  }
  const listed = ({ encodings }: any) =>
    encodings.map((one: any) => [one.name, one.videoSources.map((source: any) => source.resolution)]);

  test("has every resolution of each codec, the original among them", async () => {
    const { body } = await manifestOf((await several()).id);
    // The MP4 file of 1080 lines precedes the others.
    expect(listed(body)).toEqual([
      ["h264", [1080, 2160]],
      ["h265", [4096]],
    ]);
    const [, hevc] = body.encodings;
    expect(hevc["video-sources"]).toEqual(hevc.videoSources);
    const { text } = await app.call("GET", hevc.videoSources[0].url);
    expect(text.match(/^[^#].*$/gm)).toEqual([expect.stringMatching(/\/4096p-hevc\/playlist\.m3u8$/)]);
    expect(text).toContain("#EXT-X-MEDIA:TYPE=AUDIO");
    expect(text).not.toContain("I-FRAME");
  });

  test("has them for HereSphere too", async () => {
    const { id } = await several({ playback_policy: "public" });
    const { body } = await app.call("GET", `/api/v1/assets/${id}/vr_manifest.json?format=heresphere`, { key });
    const names = body.media.map(({ name, sources }: any) => [name, sources.map((one: any) => one.resolution)]);
    expect(names).toEqual([
      ["h264", [1080]],
      ["HLS", [4096]],
      ["HLS h264", [2160, 1080]],
      ["HLS h265", [4096]],
    ]);
    const { sources } = body.media[3];
    expect(sources[0]).toMatchObject({ width: 8192, height: 4096, size: 0 });
    expect((await app.call("GET", sources[0].url)).text).toContain("4096p-hevc/playlist.m3u8");
  });

  test("has a playlist of one rendition, with an entity tag of its own", async () => {
    const { external_id } = await several({ playback_policy: "public" });
    const master = `/media/${external_id}/master.m3u8`;
    const all = await app.call("GET", master);
    const one = await app.call("GET", `${master}?rendition=1080p`);
    expect(all.text.match(/^[^#].*$/gm)).toHaveLength(3);
    expect(one.text.match(/^[^#].*$/gm)).toEqual([expect.stringMatching(/\/1080p\/playlist\.m3u8$/)]);
    expect(one.headers.get("etag")).not.toBe(all.headers.get("etag"));
    for (const name of ["720p", "", "__proto__"])
      expectError(await app.call("GET", `${master}?rendition=${name}`), 422, "validation_failed");
  });
});

describe("its other form, for HereSphere", () => {
  const path = (id: number, query = "") => `/api/v1/assets/${id}/vr_manifest.json${query}`;

  test("is selected by query, header, user agent or POST, with any key", async () => {
    const { asset } = await readyAsset(app, key);
    const anyKey = await app.key(tenant.id, ["webhooks:read"]);
    const agent = { "user-agent": "HereSphere/0.9 UE4" };
    const version = { "heresphere-json-version": "1" };
    const login = JSON.stringify({ username: "", password: "", needsMediaSource: true });
    const rows: [method: string, query: string, options: CallOptions, isHereSphere: boolean][] = [
      ["GET", "", {}, false],
      ["GET", "?format=deovr", { headers: { ...agent, ...version } }, false],
      ["GET", "?format=heresphere", {}, true],
      ["GET", "", { headers: agent }, true],
      ["GET", "", { headers: version }, true],
      ["POST", "", { raw: login, headers: { "content-type": "application/json" } }, true],
      ["POST", "", { raw: "\0 no JSON", headers: { "content-type": "text/plain" } }, true],
      ["POST", "?format=deovr", {}, false],
    ];
    for (const [method, query, options, isHereSphere] of rows) {
      const { status, body, headers } = await app.call(method, path(asset.id, query), { ...options, key: anyKey });
      const found = [status, body.access, body.authorized, headers.get("heresphere-json-version")];
      expect(found, `${method} ${query}`).toEqual(
        isHereSphere ? [200, 1, undefined, "1"] : [200, undefined, "1", null],
      );
    }
    expectError(await app.as(key).getVrManifest(asset.id, { format: "quest" }), 422, "validation_failed");
    expectError(await app.as().requestVrManifest(asset.id), 401, "unauthorized");
    const theirs = await app.key((await app.tenant()).id);
    expectError(await app.as(theirs).requestVrManifest(asset.id), 404, "not_found");
    const { asset: draft } = await uploaded(app, key);
    expectError(await app.as(key).requestVrManifest(draft.id), 422, "asset_not_ready");
    expect(await app.newEvents()).not.toContainEqual(expect.objectContaining({ type: "video.asset.errored" }));
  });

  test("has everything that the player shows, with working URLs", async () => {
    const maker = await testApp({ static_mp4: true });
    const owner = await maker.key((await maker.tenant()).id);
    const tags = { vr_projection: "mkx200", vr_stereo: "sbs" };
    const { asset } = await readyAsset(maker, owner, { tags, title: "Dive", description: "Deep" });
    await subtitled(maker, owner, asset.id, { label: "English" });
    const cues = [0, 1500].map((start_ms, index) => ({ start_ms, payload: { title: `Part ${index}` } }));
    const chapters = { kind: "chapter", name: "c", cues };
    await maker.as(owner).setTrack(asset.id, chapters);
    const { body } = await maker.call("POST", path(asset.id), { key: owner });
    const file = { resolution: 360, height: 360, width: 640, url: expect.stringContaining("/video.mp4?token=ey") };
    const list = { ...file, size: 0, url: expect.stringContaining("/master.m3u8?token=ey") };
    const today = expect.stringMatching(/^\d{4}-\d\d-\d\d$/);
    expect(body).toEqual({
      access: 1,
      title: "Dive",
      description: "Deep",
      duration: 4000,
      dateReleased: today,
      dateAdded: today,
      rating: 0,
      favorites: 0,
      comments: 0,
      isFavorite: false,
      projection: "fisheye",
      fov: 200,
      lens: "MKX200",
      stereo: "sbs",
      isEyeSwapped: false,
      cameraIPD: 6.5,
      thumbnailImage: expect.stringContaining("/thumbnail.jpg?token=ey"),
      subtitles: [{ name: "English", language: "en", url: expect.stringContaining(".vtt?token=ey") }],
      tags: [
        { name: "Chapter:Part 0", start: 0, end: 1500 },
        { name: "Chapter:Part 1", start: 1500, end: 4000 },
      ],
      media: [
        { name: "h264", sources: [{ ...file, size: "whole file".length }] },
        { name: "HLS", sources: [list] },
      ],
      writeFavorite: false,
      writeRating: false,
      writeTags: false,
      writeHSP: false,
    });
    const found = [body.thumbnailImage, body.subtitles[0].url, ...body.media.map((each: any) => each.sources[0].url)];
    for (const address of found) {
      expect((await maker.call("GET", address)).status, address).toBe(200);
      expectError(await maker.call("GET", address.split("?")[0]), 403, "playback_token_required");
    }
  });

  test.for<[unknown, unknown, string, number, string, string]>([
    [undefined, undefined, "perspective", 180, "Linear", "mono"],
    ["180", "tb", "equirectangular", 180, "Linear", "tb"],
    [360, "mono", "equirectangular360", 360, "Linear", "mono"],
    ["fisheye", "lr", "fisheye", 180, "Linear", "sbs"],
    ["rf52", "cuv", "fisheye", 190, "Linear", "sbs"],
    ["VRCA220", "sbs", "fisheye", 220, "VRCA220", "sbs"],
    ["mkx220", "sbs", "fisheye", 220, "MKX220", "sbs"],
    ["cubemap", "ou", "cubemap", 360, "Linear", "tb"],
    ["EAC", "off", "equiangularCubemap", 360, "Linear", "mono"],
  ])("has the projection %j and stereo %j", async ([vr_projection, vr_stereo, projection, fov, lens, stereo]) => {
    const tags = {
      ...(vr_projection !== undefined && { vr_projection }),
      ...(vr_stereo !== undefined && { vr_stereo }),
    };
    const { asset } = await readyAsset(app, key, { tags, playback_policy: "public" });
    const { body } = await app.as(key).getVrManifest(asset.id, { format: "heresphere" });
    expect(body).toMatchObject({ projection, fov, lens, stereo, subtitles: [], tags: [] });
    expect(JSON.stringify(body)).not.toContain("token");
  });
});

describe("duplicates", () => {
  const sum = "ab".repeat(32);
  const ask = (query: string, options: Record<string, string> = { key }) =>
    app.call("GET", `/api/v1/assets/duplicates?${query}`, options);

  test("are found by checksum, or by name and size, in the tenant", async () => {
    const { asset: first } = await uploaded(app, key, { sha256: sum, filename: "a b.mp4", bytes: "12345" });
    const { asset: second } = await uploaded(app, key, { filename: "a b.mp4", bytes: "54321", title: "Other" });
    await uploaded(app, await app.key((await app.tenant()).id), { sha256: sum, filename: "a b.mp4", bytes: "12345" });
    const found = (asset: any, match: string) => ({
      asset_id: asset.id,
      external_id: asset.external_id,
      title: asset.title,
      match,
    });
    expect((await ask(`sha256=${sum.toUpperCase()}`)).body).toEqual({ duplicates: [found(first, "sha256")] });
    const byName = [found(second, "name_size"), found(first, "name_size")];
    expect((await ask("filename=a%20b.mp4&bytes=5")).body).toEqual({ duplicates: byName });
    const both = [found(first, "sha256"), found(second, "name_size")];
    expect((await ask(`sha256=${sum}&filename=a+b.mp4&bytes=5`)).body).toEqual({ duplicates: both });
    expect((await ask("filename=a+b.mp4&bytes=6")).body).toEqual({ duplicates: [] });
    expect((await ask(`sha256=${sum}&tenant_id=${tenant.id}`, { admin: app.admin })).body.duplicates).toHaveLength(1);
  });

  test("need a criterion", async () => {
    for (const query of ["", "filename=a", "bytes=5"]) expectError(await ask(query), 422, "parameter_missing", query);
    expectError(await ask("sha256=xyz"), 422, "validation_failed");
    expectError(await ask("filename=a&bytes=-1"), 422, "validation_failed");
    expectError(await ask(`sha256=${sum}`, { admin: app.admin }), 422, "parameter_missing");
    expectError(await ask(`sha256=${sum}&tenant_id=99`), 404, "not_found");
  });
});

describe("what a worker reads of the source", () => {
  async function encodedWith(tags: Record<string, unknown>, read: Record<string, unknown>) {
    const { asset } = await uploaded(app, key, { tags });
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    const media = { duration_seconds: 4, width: 640, height: 320, frame_rate: 30, renditions: [], ...read };
    const done = await callback(app, contract, "complete", { ...paths, media });
    const { body } = await app.as(key).getAsset(asset.id);
    return { done, asset: body };
  }

  test("becomes tags, and so part of the manifests", async () => {
    const { asset } = await encodedWith({ genre: "dive" }, { vr_projection: "180", vr_stereo: "sbs" });
    expect(asset.tags).toEqual({ genre: "dive", vr_projection: "180", vr_stereo: "sbs" });
    expect((await manifestOf(asset.id)).body).toMatchObject({ screenType: "dome", stereoMode: "sbs", is3d: true });
    const { body } = await app.as(key).getVrManifest(asset.id, { format: "heresphere" });
    expect(body).toMatchObject({ projection: "equirectangular", stereo: "sbs", fov: 180 });
  });

  test.for([
    [{ vr_projection: "flat" }, { vr_projection: "360", vr_stereo: "tb" }, { vr_projection: "flat", vr_stereo: "tb" }],
    [{ vr_stereo: "mono" }, { vr_projection: "360", vr_stereo: "tb" }, { vr_projection: "360", vr_stereo: "mono" }],
    [{}, { vr_projection: null, vr_stereo: "mono" }, { vr_stereo: "mono" }],
    [{}, {}, {}],
  ])("%j with %j has the tags %j", async ([tags, read, expected]) => {
    expect((await encodedWith(tags ?? {}, read ?? {})).asset.tags).toEqual(expected);
  });

  test("is left out of a map that is full, and refused when it is unknown", async () => {
    const full = Object.fromEntries(Array.from({ length: 99 }, (_, index) => [`t${index}`, index]));
    const { asset } = await encodedWith(full, { vr_projection: "360", vr_stereo: "tb" });
    expect(asset.tags).toEqual(full);
    const { done } = await encodedWith({}, { vr_projection: "torus" });
    expectError(done, 422, "validation_failed");
  });
});
