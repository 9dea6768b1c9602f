import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { streamSource, TestStream } from "#test/support/live-stream.ts";

const path = "/api/v1/live/channels";
let messages: Message[];
beforeAll(async () => {
  messages = await streamSource(3);
});

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const create = (body: Record<string, unknown>) => app.as(key).unchecked.createChannel(body);
const read = async (id: number) => (await app.as(key).getChannel(id)).body;

test("a channel has the URLs for encoders, with the host of the base URL", async () => {
  const flags = { base_url: "https://video.example.com/prefix", rtmp_port: 1935, srt_port: 9000 };
  const own = await testApp(flags);
  const tenantKey = await own.key((await own.tenant()).id);
  const { body } = await own.as(tenantKey).createChannel({ channel: "main-stage" });
  expect(body.ingest).toEqual({
    rtmp_url: "rtmp://video.example.com:1935/live",
    rtmps_url: null,
    srt_url: "srt://video.example.com:9000",
    whip_url: null,
  });
});

describe("the fields of a channel for streams", () => {
  const DEFAULTS = {
    record: true,
    dvr_seconds: 3600,
    low_latency: true,
    takeover: false,
    encoding_profile: null,
    captions: [],
    captions_live: [],
    starts_at: null,
    reconnect_seconds: 30,
    max_duration_seconds: null,
    enabled: true,
  };
  const OTHERS = {
    record: false,
    dvr_seconds: 0,
    low_latency: false,
    takeover: true,
    encoding_profile: "fast",
    captions: ["en", "pt-BR"],
    reconnect_seconds: 0,
    max_duration_seconds: 60,
    enabled: false,
  };

  test("have defaults, are set and changed, one by one", async () => {
    const { body: plain } = await create({ channel: "plain" });
    expect(plain).toMatchObject(DEFAULTS);
    const { body: other } = await create({ channel: "other", ...OTHERS });
    expect(other).toMatchObject(OTHERS);
    expect(await read(other.id)).toMatchObject(OTHERS);
    let expected: Record<string, unknown> = { ...DEFAULTS };
    for (const [field, value] of Object.entries(OTHERS)) {
      const changed = await app.as(key).updateChannel(plain.id, { [field]: value });
      expected = { ...expected, [field]: value };
      expect([changed.status, changed.body], field).toEqual([200, expect.objectContaining(expected)]);
      const { warnings: _, ...record } = changed.body;
      expect(await read(plain.id), field).toEqual(record);
    }
    const cleared = await app.as(key).updateChannel(plain.id, { encoding_profile: null });
    expect(cleared.body.encoding_profile).toBe(null);
  });

  test("with invalid values are refused, and nothing changes", async () => {
    const { body: made } = await create({ channel: "stage" });
    const before = await read(made.id);
    const rows: [Record<string, unknown>, string][] = [
      [{ dvr_seconds: -1 }, "validation_failed"],
      [{ dvr_seconds: 43_201 }, "validation_failed"],
      [{ dvr_seconds: 1.5 }, "validation_failed"],
      [{ dvr_seconds: "60" }, "validation_failed"],
      [{ dvr_seconds: null }, "validation_failed"],
      [{ reconnect_seconds: 1801 }, "validation_failed"],
      [{ max_duration_seconds: 59 }, "validation_failed"],
      [{ max_duration_seconds: 43_201 }, "validation_failed"],
      [{ enabled: null }, "validation_failed"],
      [{ record: 1 }, "validation_failed"],
      [{ low_latency: "yes" }, "validation_failed"],
      [{ takeover: null }, "validation_failed"],
      [{ encoding_profile: "No Name" }, "validation_failed"],
      [{ captions: "en" }, "validation_failed"],
      [{ captions: ["english"] }, "validation_failed"],
      [{ captions: Array(21).fill("en") }, "validation_failed"],
      [{ encoding_profile: "nothing" }, "encoding_profile_unknown"],
    ];
    for (const [body, code] of rows) {
      const about = JSON.stringify(body);
      expectError(await app.as(key).updateChannel(made.id, body), 422, code, about);
      expectError(await create({ channel: "new", ...body }), 422, code, about);
    }
    expect(await read(made.id)).toEqual(before);
    expect((await app.as(key).listChannels()).body).toEqual([before]);
  });

  test("have captions as uploads have them: canonical, once, and with a warning when no service is configured", async () => {
    const { body } = await create({ channel: "stage", captions: ["EN", "pt-br", "en"] });
    expect(body.captions).toEqual(["en", "pt-BR"]);
    expect(body.warnings).toMatchObject([{ code: "captions_not_configured" }]);
    const change = async (captions: string[]) => (await app.as(key).updateChannel(body.id, { captions })).body;
    expect((await change(["de"])).warnings).toEqual(body.warnings);
    const none = await change([]);
    expect([none.captions, none.warnings]).toEqual([[], undefined]);
  });

  test("name a profile of the tenant or of the operator, and of no other tenant", async () => {
    const other = await app.tenant();
    const theirs = await app.key(other.id);
    const profile = (name: string, credentials: object) => app.as({ ...credentials }).createEncodingProfile({ name });
    expect((await profile("foreign", { key: theirs })).status).toBe(201);
    expect((await profile("own", { key })).status).toBe(201);
    expect((await profile("shared", { admin: app.admin })).status).toBe(201);
    const { body: made } = await create({ channel: "stage", encoding_profile: "own" });
    const set = (encoding_profile: string, credentials: object) =>
      app.call("PATCH", `${path}/${made.id}`, { ...credentials, body: { encoding_profile } });
    expect((await set("shared", { key })).body.encoding_profile).toBe("shared");
    expectError(await set("foreign", { key }), 422, "encoding_profile_unknown");
    // With the admin token too, those of the channel's tenant count.
    expectError(await set("foreign", { admin: app.admin }), 422, "encoding_profile_unknown");
    expectError(await set("own", { key: theirs }), 404, "not_found");
  });
});

describe("the state of a channel", () => {
  const IDLE = { status: "idle", started_at: null, viewers: 0, dash_url: null };

  test("is idle until someone publishes, and after the end", async () => {
    const { body: made } = await create({ channel: "stage", playback_policy: "public" });
    const { body: beside } = await create({ channel: "beside" });
    const hls_url = "http://vodbox.test/live/stage/master.m3u8";
    expect(made).toMatchObject({ ...IDLE, hls_url });
    const testStream = await TestStream.start(app, made, { messages });
    const dash_url = "http://vodbox.test/live/stage/manifest.mpd";
    const startedAt = new Date(testStream.stream.startedAt).toISOString();
    const live = { status: "live", started_at: startedAt, viewers: 0, hls_url, dash_url };
    expect(await read(made.id)).toMatchObject(live);
    expect((await app.as(key).listChannels()).body).toEqual([
      expect.objectContaining({ id: beside.id, ...IDLE }),
      expect.objectContaining({ id: made.id, ...live }),
    ]);
    const renamed = await app.as(key).updateChannel(made.id, { name: "Stage" });
    expect(renamed.body).toMatchObject({ name: "Stage", ...live });
    await testStream.end();
    expect(await read(made.id)).toMatchObject(IDLE);
    const again = await TestStream.start(app, made, { messages });
    expect((await read(made.id)).started_at).toBe(new Date(again.stream.startedAt).toISOString());
    expect((await app.as(key).listChannels()).body).toHaveLength(2);
  });

  test("is that of this channel, not of an earlier one of the same name", async () => {
    const { body: first } = await create({ channel: "stage" });
    const testStream = await TestStream.start(app, first, { messages });
    testStream.stream.viewers.see("someone", app.opened.app.clock.now());
    await app.as(key).revokeChannel(first.id);
    const { body: second } = await create({ channel: "stage" });
    expect(await read(second.id)).toMatchObject(IDLE);
    expect(await read(first.id)).toMatchObject({ status: "live", viewers: 1 });
  });
});

describe("playback of a channel", () => {
  test("is what a player needs, while the channel is live", async () => {
    const { body: made } = await create({ channel: "stage", playback_policy: "signed" });
    const ask = (query = "") => app.call("GET", `${path}/${made.id}/playback${query}`, { key });
    expectError(await ask(), 422, "channel_idle");
    const testStream = await TestStream.start(app, made, { messages });
    expect((await ask()).body.renditions).toEqual([]);
    await testStream.publishUntil(2.3);
    const { status, body } = await ask();
    expect(status).toBe(200);
    expect(body).toEqual({
      channel_id: made.id,
      channel: "stage",
      playback_policy: "signed",
      started_at: new Date(testStream.stream.startedAt).toISOString(),
      hls_url: `http://vodbox.test/live/stage/master.m3u8?token=${body.token}`,
      embed_url: `http://vodbox.test/embed/live/stage?token=${body.token}`,
      dash_url: `http://vodbox.test/live/stage/manifest.mpd?token=${body.token}`,
      thumbnail_url: `http://vodbox.test/live/stage/thumbnail.jpg?token=${body.token}`,
      storyboard_url: null,
      subtitles: [],
      renditions: [
        {
          name: "180p",
          width: 320,
          height: 180,
          frame_rate: null,
          codecs: expect.stringMatching(/^avc1\.[0-9a-f]{6},mp4a\.40\.2$/),
          bandwidth: expect.any(Number),
          average_bandwidth: expect.any(Number),
        },
      ],
      token: expect.any(String),
      token_expires_at: expect.any(String),
    });
    expect((await app.call("GET", body.hls_url)).status).toBe(200);
    const hours = (Date.parse(body.token_expires_at) - app.opened.app.clock.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(11.9);
    const short = (await ask("?expires_in=60")).body;
    app.advance(61_000);
    expectError(await app.call("GET", short.hls_url), 403, "playback_token_invalid");
    for (const wrong of ["59", "43201", "x"])
      expectError(await ask(`?expires_in=${wrong}`), 422, "validation_failed", wrong);

    const open = await app.as(key).updateChannel(made.id, { playback_policy: "public" });
    expect((await ask()).body.hls_url).toBe(open.body.hls_url);
    await testStream.end();
    expectError(await ask(), 422, "channel_idle");
    await app.as(key).revokeChannel(made.id);
    expectError(await ask(), 409, "channel_revoked");
  });

  test("needs its scope, and a channel of the caller", async () => {
    const { body: made } = await create({ channel: "stage" });
    const ask = (caller: string) => app.as(caller).getChannelPlayback(made.id);
    expectError(await ask(await app.key(tenant.id, ["assets:write"])), 403, "forbidden_scope");
    expectError(await ask(await app.key(tenant.id, ["playback:read"])), 422, "channel_idle");
    const other = await app.tenant();
    expectError(await ask(await app.key(other.id)), 404, "not_found");
  });
});
