import type Mux from "@mux/mux-node";
import { beforeEach, expect, expectTypeOf, test } from "vitest";
import type { toMuxUpload } from "#features/mux/uploads/record.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";

let app: TestApp;
let key: string;
let mux: Mux;
beforeEach(async () => {
  app = await testApp({ max_upload_bytes: MAX_BYTES });
  key = await app.key((await app.tenant()).id);
  mux = muxClient(app, key);
});
const MAX_BYTES = 100_000;
const ORIGIN = "https://www.example.com";
const bytes = "0123456789".repeat(30);
const put = (url: string, raw: string, headers: Record<string, string> = {}) =>
  app.call("PUT", url, { raw, headers: { "content-length": String(raw.length), ...headers } });
/** As upchunk does. */
const chunk = (url: string, from: number, to: number, headers: Record<string, string> = {}) =>
  put(url, bytes.slice(from, to), { ...headers, "content-range": `bytes ${from}-${to - 1}/${bytes.length}` });
const settings = {
  playback_policies: ["public" as const, "signed" as const],
  passthrough: "up",
  meta: { title: "Up" },
};

test("an upload has Mux's type", () => {
  expectTypeOf<Awaited<ReturnType<typeof toMuxUpload>>>().toExtend<Omit<Mux.Video.Upload, "new_asset_settings">>();
});

test("a direct upload becomes an asset, in chunks", async () => {
  const made = await mux.video.uploads.create({ cors_origin: ORIGIN, new_asset_settings: settings });
  expect(made).toMatchObject({ status: "waiting", cors_origin: ORIGIN, new_asset_settings: settings });
  expect(made.timeout).toBe(3600);
  const url = made.url as string;
  expect(await mux.video.uploads.retrieve(made.id)).toEqual(made);
  const first = await chunk(url, 0, 100, { origin: ORIGIN });
  expect([first.status, first.headers.get("range")]).toEqual([308, "bytes=0-99"]);
  expect(first.headers.get("access-control-allow-origin")).toBe("*");
  expect((await mux.video.uploads.retrieve(made.id)).status).toBe("waiting");
  expect((await chunk(url, 100, 200)).status).toBe(308);
  expect((await chunk(url, 200, 300)).status).toBe(200);
  expect((await chunk(url, 200, 300)).status).toBe(200);
  const done = await mux.video.uploads.retrieve(made.id);
  expect(done).toMatchObject({ status: "asset_created", asset_id: expect.any(String) });
  expect(done.url).toBeUndefined();
  const asset = await mux.video.assets.retrieve(done.asset_id as string);
  expect(asset).toMatchObject({ passthrough: "up", meta: { title: "Up" }, upload_id: made.id, status: "preparing" });
  expect(asset.playback_ids?.map(({ policy }) => policy)).toEqual(["public", "signed"]);
  expect((await mux.video.assets.list({ upload_id: made.id })).data).toEqual([asset]);
  const native = await app.as(key).getAsset(asset.id);
  expect(native.body).toMatchObject({ playback_status: "processing", source_bytes: bytes.length });
  expect((await put(url, "other")).status).toBe(403);
});

test("the whole file in one request, with or without a range", async () => {
  for (const headers of [undefined, { "content-range": `bytes 0-${bytes.length - 1}/${bytes.length}` }]) {
    const made = await mux.video.uploads.create({ cors_origin: "*" });
    expect((await put(made.url as string, bytes, headers)).status).toBe(200);
    expect(await mux.video.uploads.retrieve(made.id)).toMatchObject({ status: "asset_created" });
  }
});

test("a file of unknown length, as fetch sends a stream, is limited while it arrives", async () => {
  const send = (url: string, raw: RequestInit["body"]) => app.call("PUT", url, { raw });
  const [made, empty, large] = await Promise.all([1, 2, 3].map(() => mux.video.uploads.create({ cors_origin: "*" })));
  const sent = await send(made?.url as string, bytes);
  expect(sent.status, sent.text).toBe(200);
  const done = await mux.video.uploads.retrieve(made?.id as string);
  expect(done).toMatchObject({ status: "asset_created" });
  const native = await app.as(key).getAsset(done.asset_id);
  expect(native.body).toMatchObject({ playback_status: "processing", source_bytes: bytes.length });
  expect((await send(made?.url as string, bytes)).status).toBe(403);

  expect((await send(empty?.url as string, "")).status).toBe(400);
  const tooMuch = await send(large?.url as string, "1".repeat(MAX_BYTES + 1));
  expect([tooMuch.status, tooMuch.body.error?.type], tooMuch.text).toEqual([413, "payload_too_large"]);
  // Another attempt may be in chunks, or announce its length.
  for (const one of [empty, large]) {
    expect((await mux.video.uploads.retrieve(one?.id as string)).status).toBe("waiting");
    expect((await put(one?.url as string, bytes)).status).toBe(200);
  }
});

test("an upload that is canceled, has timed out, or is for another origin takes no bytes", async () => {
  const [canceled, begun, late, foreign] = await Promise.all(
    [1, 2, 3, 4].map(() => mux.video.uploads.create({ cors_origin: ORIGIN, timeout: 60 })),
  );
  expect((await mux.video.uploads.cancel(canceled?.id as string)).status).toBe("cancelled");
  expect((await put(canceled?.url as string, bytes)).status).toBe(403);
  expect((await chunk(begun?.url as string, 0, 100)).status).toBe(308);
  expect((await mux.video.uploads.cancel(begun?.id as string)).status).toBe("cancelled");
  expect((await chunk(begun?.url as string, 100, 200)).status).toBe(403);
  expect((await mux.video.assets.list()).data).toEqual([]);
  expect(await refusal(mux.video.uploads.cancel(begun?.id as string))).toMatchObject({ status: 400 });
  expect((await put(foreign?.url as string, bytes, { origin: "https://evil.example" })).status).toBe(403);
  expect((await put(`${foreign?.url}x`, bytes)).status).toBe(404);
  expect((await put(foreign?.url as string, "")).status).toBe(400);
  app.advance(61_000);
  expect((await mux.video.uploads.retrieve(late?.id as string)).status).toBe("timed_out");
  expect((await put(late?.url as string, bytes)).status).toBe(403);
  const ids = (await mux.video.uploads.list({ limit: 3 })).data.map(({ id }) => id);
  expect(ids).toHaveLength(3);
  expect((await mux.video.uploads.list({ limit: 3, page: 2 })).data).toHaveLength(1);
  const stranger = muxClient(app, await app.key((await app.tenant()).id));
  expect((await stranger.video.uploads.list()).data).toEqual([]);
  expect(await refusal(stranger.video.uploads.retrieve(late?.id as string))).toMatchObject({ status: 404 });
  expect(await refusal(stranger.video.uploads.cancel(late?.id as string))).toMatchObject({ status: 404 });
});

test.each<[string, object, number]>([
  ["without an origin", {}, 400],
  ["with a short timeout", { cors_origin: "*", timeout: 10 }, 400],
  ["with an unknown field", { cors_origin: "*", colour: 1 }, 400],
  ["with a URL", { cors_origin: "*", new_asset_settings: { inputs: [{ url: "https://example.com/a.mp4" }] } }, 422],
  ["with DRM", { cors_origin: "*", new_asset_settings: { playback_policies: ["drm"] } }, 422],
])("an upload %s is refused", async (_, body, status) => {
  expect(await refusal(mux.video.uploads.create(body as never))).toMatchObject({ status });
});
