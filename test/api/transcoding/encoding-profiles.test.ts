import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { contractOf, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let tenantId: number;
let key: string;
/** A key of another tenant. */
let foreign: string;
let foreignId: number;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
  foreignId = (await app.tenant()).id;
  foreign = await app.key(foreignId);
  return app.close;
});

const path = "/api/v1/encoding_profiles";
const create = (body: Record<string, unknown>, credential: Record<string, unknown> = { key }) =>
  app.call("POST", path, { ...credential, body });

describe("encoding profiles", () => {
  test("the built-in ones are visible to everyone, and reserved", async () => {
    const { body } = await app.as(key).listEncodingProfiles();
    expect(body.map(({ name }: { name: string }) => name)).toEqual(["default", "fast", "quality", "audio", "vr"]);
    expect(body[0]).toMatchObject({
      id: null,
      tenant_id: null,
      built_in: true,
      version: 1,
      codecs: ["h264"],
      ladder: null,
      max_height: null,
      per_title: false,
      hdr: "tone_map",
      audio: { bitrate: 128_000, channels: 2, loudness: "keep" },
      watermark: null,
      static_mp4: false,
      segment_seconds: 4,
      created_at: null,
      updated_at: null,
    });
    expect((await app.as(key).getEncodingProfile("audio")).body).toMatchObject({ name: "audio", ladder: [] });
    for (const credential of [{ key }, { admin: app.admin }])
      expectError(await create({ name: "fast" }, credential), 409, "encoding_profile_exists");
    expectError(await app.as(key).updateEncodingProfile("fast", { max_height: 480 }), 404, "not_found");
    expectError(await app.as(key).deleteEncodingProfile("fast"), 404, "not_found");
  });

  test("are created, shown, updated and deleted", async () => {
    const created = await create({
      name: "small",
      description: "For phones",
      ladder: [
        { height: 360, max_bitrate: 700_000 },
        { height: 720, max_bitrate: 2_000_000 },
      ],
      audio: { bitrate: 96_000, loudness: { target_lufs: -16 } },
    });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      name: "small",
      tenant_id: tenantId,
      built_in: false,
      version: 1,
      description: "For phones",
      audio: { bitrate: 96_000, channels: 2, loudness: { target_lufs: -16 } },
    });
    expect((await app.as(key).getEncodingProfile("small")).body).toEqual(created.body);
    expectError(await create({ name: "small" }), 409, "encoding_profile_exists");
    const changed = await app.as(key).updateEncodingProfile("small", { max_height: 500 });
    expect(changed.body).toMatchObject({ version: 2, max_height: 500, description: "For phones" });
    expect(changed.body.ladder).toHaveLength(2);
    expect((await app.as(key).deleteEncodingProfile("small")).status).toBe(204);
    expectError(await app.as(key).getEncodingProfile("small"), 404, "not_found");
  });

  test("of a tenant are its own, and precede the operator's", async () => {
    await create({ name: "house", max_height: 720 }, { admin: app.admin });
    expect((await app.as(key).getEncodingProfile("house")).body).toMatchObject({ tenant_id: null, max_height: 720 });
    expectError(await app.as(key).deleteEncodingProfile("house"), 404, "not_found");
    await create({ name: "house", max_height: 360 });
    expect((await app.as(key).getEncodingProfile("house")).body.max_height).toBe(360);
    expect((await app.as(foreign).getEncodingProfile("house")).body.max_height).toBe(720);
    const mine = await app.as({ admin: app.admin }).listEncodingProfiles({ tenant_id: tenantId });
    expect(mine.body.filter(({ name }: { name: string }) => name === "house")).toHaveLength(2);
    await create({ name: "secret" });
    expectError(await app.as(foreign).getEncodingProfile("secret"), 404, "not_found");
    expectError(await app.as(foreign).updateEncodingProfile("secret", {}), 404, "not_found");
    expectError(await app.as(foreign).getEncodingProfile("secret", { tenant_id: tenantId }), 404, "not_found");
    expectError(await create({ name: "other", tenant_id: tenantId }, { key: foreign }), 404, "not_found");
    expect((await app.as({ admin: app.admin }).getEncodingProfile("secret", { tenant_id: tenantId })).status).toBe(200);
    const names = (await app.as(foreign).listEncodingProfiles()).body.map(({ name }: { name: string }) => name);
    expect(names).not.toContain("secret");
  });

  test("lists have pages", async () => {
    const all = (await app.as(key).listEncodingProfiles()).body;
    const seen: unknown[] = [];
    for (let url: string | undefined = `${path}?limit=2`; url; ) {
      const { body, headers }: { body: unknown[]; headers: Headers } = await app.call("GET", url, { key });
      expect(body.length).toBeLessThanOrEqual(2);
      seen.push(...body);
      url = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
    expect(seen).toEqual(all);
  });

  test.each([
    ["name", { name: "Big Name" }],
    ["codecs", { codecs: [] }],
    ["codecs", { codecs: ["h264", "h264"] }],
    ["codecs", { codecs: ["av1", "hevc"] }],
    ["codecs", { codecs: ["h264", "vp9"] }],
    ["codecs", { codecs: ["h264", "av1"], ladder: [] }],
    ["hdr", { hdr: "keep" }],
    ["per_title", { per_title: "yes" }],
    ["per_title", { per_title: true, ladder: [] }],
    ["audio.channels", { audio: { channels: 5 } }],
    ["audio.loudness", { audio: { loudness: { target_lufs: -9 } } }],
    ["audio.loudness", { audio: { loudness: "loud" } }],
    ["ladder", { ladder: [720, 720].map((height) => ({ height, max_bitrate: 1_000_000 })) }],
    [
      "ladder",
      {
        ladder: [
          { height: 720, max_bitrate: 1_000_000 },
          { height: 360, max_bitrate: 2_000_000 },
        ],
      },
    ],
    ["max_height", { max_height: 100 }],
    ["max_height", { ladder: [], max_height: 720 }],
    ["static_mp4", { ladder: [], static_mp4: true }],
    ["watermark", { ladder: [], watermark: {} }],
    ["watermark.opacity", { watermark: { opacity: 1.5 } }],
    ["watermark.position", { watermark: { position: "left" } }],
    ["segment_seconds", { segment_seconds: 6 }],
  ])("an impossible %s is refused with its reason", async (field, fields) => {
    const refused = await create({ name: "impossible", ...fields });
    expectError(refused, 422, "validation_failed");
    expect(
      Object.keys(refused.body.details).some((name) => name.startsWith(field)),
      refused.text,
    ).toBe(true);
  });
});

test.each([
  [{ audio: { bitrates: 1 } }, "audio.bitrates: is unknown; the fields are bitrate, channels, loudness"],
  [{ watermark: { image: "/a.png" } }, "watermark.image: is unknown; the fields are position, opacity, width_percent"],
  [{ ladder: [null] }, "ladder.0: must be an object"],
  [{ audio: null }, "audio: must be an object"],
  [{ audio: { loudness: { lufs: -20 } } }, "audio.loudness: must be keep, ebu_r128 or {target_lufs}"],
])("the error of %j says what is wrong", async (fields, message) => {
  const refused = await create({ name: "wrong", ...fields });
  expectError(refused, 422, "validation_failed");
  expect(refused.body.error).toBe(message);
});

test.each(["%00", "%F0%9F%8E%AC", "../default", "", "a".repeat(100)])(
  "there is no specification of %s",
  async (name) => {
    const answer = await app.as(key).getEncodingSpec({ profile: name });
    expectError(answer, 422, "encoding_profile_unknown");
  },
);

describe("a profile that is used", () => {
  test("reaches the worker, as it was when the job was queued", async () => {
    await create({
      name: "tiny",
      ladder: [{ height: 240, max_bitrate: 300_000 }],
      audio: { bitrate: 64_000, loudness: "ebu_r128" },
      static_mp4: true,
    });
    const { asset, job } = await uploaded(app, key, { encoding_profile: "tiny" });
    expect(asset.encoding_profile).toBe("tiny");
    expect(job.profile).toBe("tiny");
    await app.as(key).updateEncodingProfile("tiny", { audio: { bitrate: 32_000 } });
    const contract = await contractOf(app, job.id);
    expect(contract.job.profile).toBe("tiny");
    expect(contract.encoding_spec).toMatchObject({
      video: { enabled: true, ladder: [{ name: "240p", height: 240, width: 426, max_bitrate: 300_000 }] },
      audio: { bitrate: 64_000, loudness_lufs: -23 },
      static_mp4: { enabled: true },
    });
    expect(contract.outputs.mp4_path).toMatch(/video\.mp4$/);
    const served = await app.call("GET", "/api/v1/encoding_spec?profile=tiny", { key });
    expect(served.body.audio.bitrate).toBe(32_000);
  });

  test("states the settings of each additional codec, whose caps are lower", async () => {
    const ladder = [
      { height: 720, max_bitrate: 2_000_000 },
      { height: 360, max_bitrate: 1_000_000 },
    ];
    await create({ name: "modern", codecs: ["av1", "h264", "hevc"], ladder });
    const { video } = (await app.call("GET", "/api/v1/encoding_spec?profile=modern", { key })).body;
    expect(video).toMatchObject({ codec: "h264", preset: "veryfast", ladder: [{ max_bitrate: 2_000_000 }, {}] });
    expect(video.additional).toMatchObject([
      { codec: "hevc", preset: "fast", ladder: [{ name: "720p", max_bitrate: 1_300_000, crf: 26 }, { name: "360p" }] },
      { codec: "av1", preset: "8", ladder: [{ name: "720p", max_bitrate: 1_200_000, crf: 40 }, { name: "360p" }] },
    ]);
    const { job } = await uploaded(app, key, { encoding_profile: "modern" });
    expect((await contractOf(app, job.id)).encoding_spec.video).toEqual(video);
    expect((await app.as(key).getEncodingSpec()).body.video).not.toHaveProperty("additional");
  });

  test("states the originals that are copied, which only the profile for VR has", async () => {
    const videoOf = async (name: string) =>
      (await app.call("GET", `/api/v1/encoding_spec?profile=${name}`, { key })).body.video;
    const { original, ladder } = await videoOf("vr");
    expect(original).toEqual({
      codecs: ["h264", "hevc"],
      max_side: 8192,
      max_pixels: 8192 * 4096,
      max_bitrate: 100_000_000,
    });
    expect(ladder[0]).toMatchObject({ name: "2160p", max_bitrate: 40_000_000 });
    expect(await videoOf("quality")).not.toHaveProperty("original");
  });

  test("states HDR such that a worker that does not keep it refuses the job", async () => {
    const codecs = ["h264", "hevc", "av1"];
    await create({ name: "bright", codecs, hdr: "keep" });
    const { video } = (await app.call("GET", "/api/v1/encoding_spec?profile=bright", { key })).body;
    expect(video).toMatchObject({ profile: "high", pixel_format: "yuv420p" });
    // Earlier versions accept only yuv420p.
    expect(video.additional).toMatchObject([
      { codec: "hevc", profile: "main10", pixel_format: "yuv420p10le" },
      { codec: "av1", profile: "main", pixel_format: "yuv420p10le" },
    ]);
    const { job } = await uploaded(app, key, { encoding_profile: "bright" });
    expect((await contractOf(app, job.id)).encoding_spec.video).toEqual(video);
    await create({ name: "plain", codecs });
    const plain = (await app.call("GET", "/api/v1/encoding_spec?profile=plain", { key })).body.video;
    expect(plain.additional).toMatchObject([
      { profile: "main", pixel_format: "yuv420p" },
      { profile: "main", pixel_format: "yuv420p" },
    ]);
    // Without another codec there is nothing to keep it in.
    const refused = await app.call("PATCH", `${path}/bright`, { key, body: { codecs: ["h264"] } });
    expectError(refused, 422, "validation_failed");
    expect(refused.body.details.hdr[0]).toMatch(/hevc or av1/);
  });

  test("states 5.1 such that a worker without it refuses the job", async () => {
    await create({ name: "cinema", audio: { bitrate: 160_000, channels: 6 } });
    const { audio } = (await app.as(key).getEncodingSpec({ profile: "cinema" })).body;
    // Earlier versions accept only 2.
    expect(audio).toMatchObject({ channels: 6, bitrate: 160_000, surround_bitrate: 400_000 });
    const { job } = await uploaded(app, key, { encoding_profile: "cinema" });
    expect((await contractOf(app, job.id)).encoding_spec.audio).toEqual(audio);
    const plain = (await app.call("GET", "/api/v1/encoding_spec", { key })).body.audio;
    expect(plain.channels).toBe(2);
    expect(plain).not.toHaveProperty("surround_bitrate");
  });

  test("is the tenant's default for assets that name none", async () => {
    const patch = (name: string | null) =>
      app.as({ admin: app.admin }).updateTenant(tenantId, { default_encoding_profile: name });
    expectError(await patch("unknown"), 422, "encoding_profile_unknown");
    expect((await patch("audio")).body.default_encoding_profile).toBe("audio");
    const { job, asset } = await uploaded(app, key);
    expect(job.profile).toBe("audio");
    expect((await contractOf(app, job.id)).encoding_spec.video.enabled).toBe(false);
    expect((await app.call("GET", "/api/v1/encoding_spec", { key })).body.video.enabled).toBe(false);
    const named = await uploaded(app, key, { encoding_profile: "fast" });
    expect((await contractOf(app, named.job.id)).encoding_spec.video.preset).toBe("superfast");
    const registered = await app.as(key).createAsset({
      tenant_id: tenantId,
      video_asset: {
        title: "Registered",
        input_status: "uploaded",
        playback_status: "draft",
        source_bytes: 0,
        storage_bytes: 0,
        duration_seconds: 0,
        source_key: asset.source_key,
        encoding_profile: "quality",
      },
    });
    expect(registered.body.transcoding_job.profile).toBe("quality");
    expect(registered.body.worker_contract.encoding_spec.video).toMatchObject({ preset: "medium" });
    await create({ name: "usual" });
    await patch("usual");
    expectError(await app.as(key).deleteEncodingProfile("usual"), 409, "encoding_profile_in_use");
    await patch(null);
    expect((await app.as(key).deleteEncodingProfile("usual")).status).toBe(204);
    expect((await uploaded(app, key)).job.profile).toBe("default");
  });

  test("cannot be deleted while a live channel names it", async () => {
    await create({ name: "stage" });
    const body = { channel: "stage", encoding_profile: "stage" };
    const { id } = (await app.as(key).createChannel(body)).body;
    const remove = () => app.as(key).deleteEncodingProfile("stage");
    const refused = await remove();
    expectError(refused, 409, "encoding_profile_in_use");
    expect(refused.error?.error).toContain("the live channel stage");
    const other = { encoding_profile: null };
    expect((await app.as(key).updateChannel(id, other)).status).toBe(200);
    expect((await remove()).status).toBe(204);
    // A revoked channel needs none.
    await create({ name: "stage" });
    await app.as(key).updateChannel(id, { encoding_profile: "stage" });
    await app.as(key).revokeChannel(id);
    expect((await remove()).status).toBe(204);
  });

  test("must exist, for this tenant", async () => {
    const initiate = (encoding_profile: unknown) =>
      app.as(foreign).unchecked.initiateUpload({ filename: "a.mp4", bytes_expected: 1, encoding_profile });
    expectError(await initiate("nowhere"), 422, "encoding_profile_unknown");
    expectError(await initiate("secret"), 422, "encoding_profile_unknown");
    expectError(await initiate("Not a name"), 422, "validation_failed");
    expectError(await app.as(foreign).getEncodingSpec({ profile: "secret" }), 422, "encoding_profile_unknown");
    expect((await initiate(null)).status).toBe(201);
  });
});
