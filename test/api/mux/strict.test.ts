import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";
import { METHODS } from "#test/support/mux/shapes.ts";

/** Nothing in a request is ignored, nothing is done by half, and every refusal has Mux's shape. */
let app: TestApp;
let key: string;
let asset: { id: number; title: string };
/** In place of a body that is too large to be part of the name of a test. */
const LARGE = "of a MiB";
const SOURCE = "https://example.com/a/film.mp4";

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  const tenant = await app.tenant();
  key = await app.key(tenant.id);
  asset = await ready();
  return app.close;
});

async function ready(): Promise<{ id: number; title: string }> {
  const { asset } = await readyAsset(app, key);
  const { id } = asset;
  return (await app.as(key).getAsset(id)).body;
}

type Sent = { status: number; body: { data: never; error: { type: string; messages: string[] } } };
async function send(method: string, path: string, body?: unknown): Promise<Sent> {
  const headers = { authorization: `Basic ${btoa(`any:${key}`)}`, "content-type": "application/json" };
  const text =
    body === LARGE
      ? `{"passthrough": "${"x".repeat(2 ** 20)}"}`
      : typeof body === "string"
        ? body
        : JSON.stringify(body);
  const { status, body: answer } = await app.call(method, `/mux${path}`, {
    headers,
    ...(body !== undefined && { raw: text }),
  });
  return { status, body: answer };
}
const refused = async (method: string, path: string, body?: unknown) => {
  const { status, body: answer } = await send(method, path, body);
  return [status, answer.error?.type, ...(answer.error?.messages ?? [])];
};
const data = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
  const { status, body: answer } = await send(method, path, body);
  expect([path, status]).toEqual([path, method === "POST" ? 201 : 200]);
  return answer.data;
};
/** A path of a method, with an id for each of its parameters. */
const filled = ({ source }: RegExp) =>
  source
    .replace(/^\^|\$$/g, "")
    .replaceAll("\\/", "/")
    .replace("metrics/[^/]+", "metrics/views")
    .replaceAll("[^/]+", "1");

/** These are not here: 404, whatever the parameters. */
const MISSING = [
  ...["video/assets.retrieveShots", "video/assets.generateShots", "data/metrics.list", "data/metrics.getInsights"],
  "video/live-streams.updateNewAssetSettingsStaticRenditions",
];
const covered = METHODS.filter(({ name }) => !MISSING.includes(name));

test.each(covered.map(({ name, method, path }) => [name, method, filled(path)] as const))(
  "%s refuses a parameter that it does not have",
  async (_, method, path) => {
    const answer = await refused(method, `${path}?colour=blue`);
    expect(answer).toEqual([400, "invalid_parameters", "colour: is not a parameter of this request"]);
  },
);

test.each([
  "/video/v1/assets",
  "/video/v1/uploads",
  "/video/v1/live-streams",
  "/system/v1/signing-keys",
  "/video/v1/playback-restrictions",
  "/video/v1/delivery-usage",
])("%s refuses a repeated parameter", async (path) => {
  expect(await refused("GET", `${path}?limit=5&limit=7`)).toEqual([
    400,
    "invalid_parameters",
    "limit: must be given once",
  ]);
});

test.each([
  ["PUT", "/video/v1/uploads/1/cancel"],
  ["POST", "/video/v1/live-streams/1/reset-stream-key"],
  ["PUT", "/video/v1/live-streams/1/complete"],
  ["POST", "/system/v1/signing-keys"],
  ["DELETE", "/video/v1/assets/1"],
])("%s %s refuses fields in its body", async (method, path) => {
  const answer = await refused(method, path, { stream_key: "mine" });
  expect(answer).toEqual([400, "invalid_parameters", "stream_key: is not a parameter of this request"]);
});

test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "a.b", "", "名前"])(
  "a field that is called %j is refused by its name",
  async (name) => {
    const text = `{${JSON.stringify(name)}: {"a": 1}}`;
    for (const path of ["/video/v1/assets", "/video/v1/live-streams", "/system/v1/signing-keys"]) {
      const [status, type, ...messages] = await refused("POST", path, text);
      expect([path, status, type]).toEqual([path, 400, "invalid_parameters"]);
      expect(messages).toContain(`${name}: is not a parameter of this request`);
    }
  },
);

describe("two names of a setting", () => {
  const inputs = [{ url: SOURCE }];
  const stream = "/video/v1/live-streams";
  test.each<[path: string, body: object, field: string, other: string]>([
    ["/video/v1/assets", { inputs, input: [{ url: `${SOURCE}?2` }] }, "input", "inputs"],
    [
      "/video/v1/assets",
      { inputs, playback_policies: ["public"], playback_policy: ["signed"] },
      "playback_policy",
      "playback_policies",
    ],
    [
      "/video/v1/assets",
      { inputs, playback_policy: ["signed"], advanced_playback_policies: [{ policy: "public" }] },
      "advanced_playback_policies",
      "playback_policy",
    ],
    ["/video/v1/assets", { inputs, video_quality: "basic", encoding_tier: "smart" }, "encoding_tier", "video_quality"],
    [
      "/video/v1/uploads",
      { cors_origin: "*", new_asset_settings: { playback_policies: ["public"], playback_policy: "signed" } },
      "playback_policy",
      "playback_policies",
    ],
    [
      "/video/v1/uploads",
      { cors_origin: "*", new_asset_settings: { inputs: [{}], input: [{ name: "a" }] } },
      "input",
      "inputs",
    ],
    [stream, { playback_policies: ["public"], playback_policy: ["signed"] }, "playback_policy", "playback_policies"],
    [stream, { latency_mode: "low", low_latency: false }, "low_latency", "latency_mode"],
    [stream, { latency_mode: "standard", reduced_latency: true }, "reduced_latency", "latency_mode"],
    [stream, { low_latency: true, reduced_latency: true }, "reduced_latency", "low_latency"],
  ])("%s %j is refused", async (path, body, field, other) => {
    expect(await refused("POST", path, body)).toEqual([400, "invalid_parameters", `${field}: contradicts ${other}`]);
  });

  test.each<[object[], string]>([
    [[{ url: SOURCE, name: "a" }], "inputs.0.name of a video"],
    [[{ url: SOURCE, language_code: "en" }], "inputs.0.language_code of a video"],
    [[{ url: SOURCE, closed_captions: true }], "inputs.0.closed_captions of a video"],
    [[{ url: SOURCE, text_type: "subtitles" }], "inputs.0.text_type of a video"],
    [
      [{ url: SOURCE }, { type: "text", url: SOURCE, language_code: "en", start_time: 1 }],
      "inputs.start_time and end_time of a text",
    ],
  ])("what an input has and vodbox does not use is refused: %j", async (given, field) => {
    const answer = [422, "not_supported", `${field}: is not supported by vodbox`];
    expect(await refused("POST", "/video/v1/assets", { inputs: given })).toEqual(answer);
  });

  test.each<[string, object]>([
    ["/video/v1/assets", { inputs, input: inputs, playback_policies: ["public"], playback_policy: "public" }],
    ["/video/v1/assets", { inputs, playback_policies: [], advanced_playback_policies: [{ policy: "public" }] }],
    ["/video/v1/assets", { inputs, video_quality: "plus", encoding_tier: "smart" }],
    [stream, { latency_mode: "low", low_latency: true, reduced_latency: false }],
    [stream, { latency_mode: "reduced", low_latency: false, reduced_latency: true }],
  ])("%s %j is accepted", async (path, body) => {
    expect((await send("POST", path, body)).status).toBe(201);
  });
});

describe("a change", () => {
  test.each<[body: object, message: string]>([
    [{ passthrough: "new", thumbnail_time: 99_999 }, "thumbnail_time: must be at most"],
    [{ passthrough: "new", meta: { title: "x".repeat(513) } }, "meta.title: must have at most 512 characters"],
    [{ passthrough: "new", meta: { title: "New", external_id: "a\0" } }, "meta.external_id: must not contain a NUL"],
    [{ passthrough: "\ud800", meta: { title: "New" } }, "passthrough: must be well-formed Unicode"],
  ])("of an asset that is refused for a part of it changes nothing: %#", async (body, message) => {
    const path = `/video/v1/assets/${asset.id}`;
    const before = await data("GET", path);
    expect(await refused("PATCH", path, body)).toEqual([400, "invalid_parameters", expect.stringContaining(message)]);
    expect(await data("GET", path)).toEqual(before);
  });

  test("of an asset that has all tags it may have changes nothing", async () => {
    const { id } = await ready();
    const path = `/video/v1/assets/${id}`;
    const tags = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`t${index}`, 1]));
    expect((await app.as(key).updateTags(id, tags)).status).toBe(200);
    const before = await data("GET", path);
    const answer = await refused("PATCH", path, { passthrough: "one more", meta: { title: "New" } });
    expect(answer).toEqual([400, "invalid_parameters", "meta: adds more tags than an asset may have"]);
    expect(await data("GET", path)).toEqual(before);
  });

  test("of a native channel that is refused for its passthrough changes nothing", async () => {
    const made = await app.as(key).createChannel({ channel: "native", name: "Before" });
    const path = `/video/v1/live-streams/${made.body.id}`;
    const answer = await refused("PATCH", path, { meta: { title: "After" }, reconnect_window: 7, passthrough: "x" });
    expect(answer.slice(0, 2)).toEqual([422, "not_supported"]);
    expect(await data("GET", path)).toMatchObject({ meta: { title: "Before" } });
  });

  test("to an empty title gives an asset the name of its file, and a live stream none", async () => {
    const path = `/video/v1/assets/${asset.id}`;
    await data("PATCH", path, { meta: { title: "Named" } });
    expect(await data("PATCH", path, { meta: { title: " " } })).toMatchObject({ meta: { title: asset.title } });
    const stream = await data<{ id: string; meta: object }>("POST", "/video/v1/live-streams", {});
    expect(stream.meta).toEqual({});
    const own = `/video/v1/live-streams/${stream.id}`;
    expect(await data("PATCH", own, { meta: { title: "Named" } })).toMatchObject({ meta: { title: "Named" } });
    expect(await data("PATCH", own, { meta: { title: "" } })).toMatchObject({ meta: {} });
  });
});

test("limits count characters, not units of UTF-16", async () => {
  const emoji = (count: number) => "😀".repeat(count);
  const path = `/video/v1/assets/${asset.id}`;
  const meta = { title: emoji(512), creator_id: emoji(128), external_id: emoji(128) };
  expect(await data("PATCH", path, { meta, passthrough: emoji(255) })).toMatchObject({
    meta,
    passthrough: emoji(255),
  });
  expect(await refused("PATCH", path, { passthrough: emoji(256) })).toEqual([
    400,
    "invalid_parameters",
    "passthrough: must have at most 255 characters",
  ]);
  const stream = await data<{ id: string }>("POST", "/video/v1/live-streams", { meta: { title: emoji(512) } });
  const target = { url: "rtmp://live.example.com/app", stream_key: "k", passthrough: emoji(255) };
  const added = await data("POST", `/video/v1/live-streams/${stream.id}/simulcast-targets`, target);
  expect(added).toMatchObject({ passthrough: target.passthrough });
});

test("a simulcast target without passthrough has none", async () => {
  const { id } = await data<{ id: string }>("POST", "/video/v1/live-streams", {});
  const target = { url: "rtmps://live.example.com:443/app", stream_key: "k" };
  const added = await data<object>("POST", `/video/v1/live-streams/${id}/simulcast-targets`, target);
  expect(added).not.toHaveProperty("passthrough");
});

test.each<[method: string, path: string, body: object, message: string]>([
  ["POST", "/video/v1/assets", { inputs: [{ url: "ftp://example.com/a" }] }, "inputs.0.url: "],
  ["POST", "/video/v1/assets/:id/tracks", { type: "text", url: SOURCE, language_code: "english" }, "language_code: "],
  ["POST", "/video/v1/assets/:id/tracks", { type: "text", url: SOURCE, language_code: "" }, "language_code: "],
  ["POST", "/video/v1/assets/:id/tracks", { type: "audio", url: SOURCE, language_code: "e" }, "language_code: "],
  [
    "POST",
    "/video/v1/playback-restrictions",
    { referrer: { allowed_domains: ["example.com", "https://example.com/"] } },
    "referrer.allowed_domains.1: ",
  ],
])("%s %s names the field as Mux does: %j", async (method, path, body, message) => {
  const answer = await refused(method, path.replace(":id", String(asset.id)), body);
  expect(answer).toEqual([400, "invalid_parameters", expect.stringMatching(`^${message}`)]);
});

test.each<[method: string, path: string, body: string | undefined, status: number, type: string]>([
  ["GET", "", undefined, 404, "not_found"],
  ["GET", "/", undefined, 404, "not_found"],
  ["POST", "/video/v1/nothing", "{}", 404, "not_found"],
  ["OPTIONS", "/video/v1/assets", undefined, 405, "method_not_allowed"],
  ["POST", "/video/v1/assets", LARGE, 413, "payload_too_large"],
  ["POST", "/video/v1/assets", "{", 400, "invalid_parameters"],
  ["POST", "/video/v1/assets", "[]", 400, "invalid_parameters"],
  ["GET", "/stream/nothing.m3u8", undefined, 404, "not_found"],
  ["GET", "/image/nothing/thumbnail.jpg", undefined, 404, "not_found"],
  ["PUT", "/upload/a/b", "x", 404, "not_found"],
  ["GET", "/upload/a/b", undefined, 405, "method_not_allowed"],
])("%s /mux%s %j is refused in Mux's shape", async (method, path, body, status, type) => {
  expect((await refused(method, path, body)).slice(0, 2)).toEqual([status, type]);
});
