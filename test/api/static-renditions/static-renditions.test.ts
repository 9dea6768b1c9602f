import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { chosenBy, nameOfFile, STATIC_NAMES } from "#features/assets/static-names.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { downloaded, film, filmAsset, frameHashes } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, ffmpeg } from "#test/support/media/sources.ts";

let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
let path: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  asset = await filmAsset(app, key, await film(), { playback_policy: "public" });
  path = `/api/v1/assets/${asset.id}/static_renditions`;
  return app.close;
});
const create = (name: string) => app.call("POST", path, { key, body: { name } });
const get = (file: string, headers: Record<string, string> = {}) =>
  app.opened.server.fetch(new Request(`http://vodbox.test/media/${asset.external_id}/static/${file}`, { headers }));
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

describe("a static rendition", () => {
  test("is one file with all frames and the audio of the asset, from its creation to its deletion", async () => {
    expect((await get("180p.mp4")).status).toBe(404);
    expectError(await create("181p"), 422, "validation_failed");
    const made = await create("highest");
    expect([made.status, made.body]).toEqual([
      201,
      expect.objectContaining({ name: "highest", file: "highest.mp4", status: "ready", width: 320, height: 180 }),
    ]);
    expect((await app.call("GET", path, { key })).body).toEqual([made.body]);
    expectError(await create("highest"), 409, "asset_conflict");
    const response = await get("highest.mp4");
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "video/mp4"]);
    const bytes = await bytesOf(response);
    expect(response.headers.get("content-length")).toBe(String(bytes.length));
    const file = join(emptyFolder(), "highest.mp4");
    writeFileSync(file, bytes);
    const hls = await downloaded(app, `http://vodbox.test/media/${asset.external_id}/master.m3u8`);
    expect(await frameHashes(file)).toEqual(await frameHashes(hls));
    const samples = await ffmpeg("-v", "error", "-i", file, "-map", "0:a:0", "-f", "s16le", "-");
    expect(samples.length / 4 / 48_000).toBeCloseTo(18, 0);
    expect(await complaints("-i", file, "-f", "null", "-")).toBe("");
    // Any range is that part of the whole.
    for (const [from, to] of [
      [0, 10],
      [500, 2000],
      [100_000, 200_000],
      [bytes.length - 7, bytes.length - 1],
    ] as const) {
      const part = await get("highest.mp4", { range: `bytes=${from}-${to}` });
      expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes ${from}-${to}/${bytes.length}`]);
      expect((await bytesOf(part)).equals(bytes.subarray(from, to + 1)), `${from}-${to}`).toBe(true);
    }
    const etag = response.headers.get("etag") as string;
    expect((await get("highest.mp4", { "if-none-match": etag })).status).toBe(304);
    expectError(await get416(bytes.length), 416, "range_not_satisfiable");
    expect((await app.call("DELETE", `${path}/${made.body.id}`, { key })).status).toBe(204);
    expectError(await app.call("DELETE", `${path}/${made.body.id}`, { key }), 404, "not_found");
    expect((await get("highest.mp4")).status).toBe(404);
  });
  const get416 = (from: number) =>
    app.call("GET", `/media/${asset.external_id}/static/highest.mp4`, { headers: { range: `bytes=${from}-` } });

  test("of audio alone is an M4A file, and one that the asset does not have is skipped", async () => {
    expect((await create("audio-only")).body).toMatchObject({ file: "audio.m4a", width: null });
    const response = await get("audio.m4a");
    expect(response.headers.get("content-type")).toBe("audio/mp4");
    const file = join(emptyFolder(), "audio.m4a");
    writeFileSync(file, await bytesOf(response));
    const samples = await ffmpeg("-v", "error", "-i", file, "-f", "s16le", "-");
    expect(samples.length / 4 / 48_000).toBeCloseTo(18, 0);
    expect((await create("1080p")).body).toMatchObject({ status: "skipped", width: null });
    expect((await get("1080p.mp4")).status).toBe(404);
    expect((await create("capped-720p")).body.status).toBe("ready");
    expect((await get("capped-720p.mp4", { range: "bytes=0-3" })).status).toBe(206);
  });

  test("of a signed asset needs a token; another tenant's asset does not exist", async () => {
    const signed = await filmAsset(app, key, await film(), { playback_policy: "signed" });
    const made = await app.as(key).createStaticRendition(signed.id, { name: "highest" });
    expect((await app.call("GET", made.body.url)).status).toBe(403);
    const { token } = (await app.as(key).getPlayback(signed.id)).body;
    expect((await app.call("GET", `${made.body.url}?token=${token}`, { headers: { range: "bytes=0-9" } })).status).toBe(
      206,
    );
    const stranger = await app.key((await app.tenant()).id);
    expectError(await app.call("POST", path, { key: stranger, body: { name: "720p" } }), 404, "not_found");
    expectError(await app.call("GET", path, { key: stranger }), 404, "not_found");
    const reader = await app.key(1, ["assets:read"]);
    expect((await app.call("POST", path, { key: reader, body: { name: "720p" } })).status).toBe(403);
  });

  test("of an asset that is being encoded is preparing", async () => {
    const { asset: draft } = await uploaded(app, key);
    const made = await app.as(key).createStaticRendition(draft.id, { name: "720p" });
    expect(made.body).toMatchObject({ status: "preparing", height: null });
  });
});

test("a name means a rendition by its short side", () => {
  const all = [1080, 720, 480].map((side) => ({ width: side, height: (side * 16) / 9 }));
  const side = (name: string) => chosenBy(name, all)?.width ?? null;
  const rows: [string, number | null][] = [
    ["highest", 1080],
    ["high", 1080],
    ["medium", 480],
    ["low", 480],
    ["720p", 720],
    ["540p", null],
    ["capped-540p", 480],
    ["capped-2160p", 1080],
  ];
  for (const [name, expected] of rows) expect([name, side(name)]).toEqual([name, expected]);
  expect(chosenBy("highest", [{ width: null, height: null }])).toBeUndefined();
  expect(STATIC_NAMES).toContain(nameOfFile("capped-1080p.mp4"));
  for (const file of ["audio-only.mp4", "audio.mp4", "../x.mp4", "constructor.mp4"])
    expect(nameOfFile(file)).toBeNull();
});
