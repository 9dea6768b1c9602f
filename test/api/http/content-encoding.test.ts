import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
/** Path below the asset -> the text without encoding. */
let texts: Record<string, string>;
let id: number;

const long = (line: (index: number) => string) => Array.from({ length: 300 }, (_, index) => line(index)).join("");
const tile = (index: number) => {
  const sheet = index < 150 ? "storyboard-1.jpg" : "storyboard-2.jpg";
  const time = (second: number) => `00:0${Math.floor(second / 60)}:${String(second % 60).padStart(2, "0")}.000`;
  return `${time(index)} --> ${time(index + 1)}\n${sheet}#xywh=${(index % 10) * 160},${90 * Math.floor((index % 150) / 10)},160,90\n\n`;
};

beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  const { asset } = await uploaded(app, key, { playback_policy: "public" });
  id = asset.id;
  const { body: contract } = await next(app);
  const { prefix, manifest_path, dash_manifest_path, storyboard_path } = contract.outputs;
  const paths = await putArtifacts(app, contract, {
    [manifest_path]: `#EXTM3U\n${long((index) => `#EXT-X-STREAM-INF:BANDWIDTH=${1000 + index}\nlow/playlist.m3u8\n`)}`,
    [dash_manifest_path]: `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>${long((index) => `<!-- ${index} -->`)}</Period></MPD>`,
    [storyboard_path]: `WEBVTT\n\n${long(tile)}`,
    [`${prefix}storyboard-2.jpg`]: "second sheet",
    [`${prefix}low/playlist.m3u8`]: `#EXTM3U\n${long(() => "#EXTINF:4,\n1.m4s\n")}#EXT-X-ENDLIST\n`,
  });
  const done = await callback(app, contract, "complete", { ...paths, media: { duration_seconds: 300 } });
  expect(done.status, done.text).toBe(200);
  const cues = `WEBVTT\n\n${long((index) => `00:0${Math.floor(index / 60)}:${String(index % 60).padStart(2, "0")}.000 --> 00:10:00.000\nWord ${index}\n\n`)}`;
  const track = await subtitled(app, key, id, {}, cues);
  for (const language of ["de", "fr", "es", "it"])
    await subtitled(app, key, id, { language, label: "Words ".repeat(20).trim() });
  const version = prefix.split("/").at(-2);
  const names = [
    "master.m3u8",
    "manifest.mpd",
    "storyboard.vtt",
    "storyboard.json",
    `subtitles/${track.id}.vtt`,
    `${version}/low/playlist.m3u8`,
  ];
  texts = {};
  for (const name of names) texts[name] = (await ask(name)).bytes.toString();
});
afterAll(() => app.close());

async function ask(path: string, headers: Record<string, string> = {}, method = "GET") {
  const address = path.startsWith("/") ? path : `/media/${id}/${path}`;
  const response = await app.opened.server.fetch(new Request(`http://vodbox.test${address}`, { method, headers }));
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
}
const decoded = (coding: string | null, bytes: Buffer) =>
  (coding === "br" ? brotliDecompressSync(bytes) : coding === "gzip" ? gunzipSync(bytes) : bytes).toString();

describe("texts", () => {
  test.each([
    ["br, gzip", "br"],
    ["gzip, deflate, br, zstd", "br"],
    ["gzip", "gzip"],
    ["GZIP", "gzip"],
    ["br;q=0.5, gzip;q=0.9", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["*", "br"],
    ["*, br;q=0", "gzip"],
    ["gzip;q=0", null],
    ["identity, gzip;q=0.5", null],
    ["deflate", null],
    ["", null],
    ["identity;q=0", null],
    ["gzip;q=2", null],
    [", ;q=1,,", null],
  ])("requested with Accept-Encoding %j are sent as %j", async (header, coding) => {
    for (const [name, text] of Object.entries(texts)) {
      const answer = await ask(name, { "accept-encoding": header });
      expect([answer.status, answer.headers.get("content-encoding")], name).toEqual([200, coding]);
      expect(answer.headers.get("vary")).toBe("Accept-Encoding");
      expect(decoded(coding, answer.bytes)).toBe(text);
      expect(answer.headers.get("content-length")).toBe(String(answer.bytes.length));
      if (coding) expect(answer.bytes.length).toBeLessThan(text.length / 3);
    }
  });

  test("have an ETag for each coding, and match it", async () => {
    for (const name of Object.keys(texts)) {
      const tags = new Set<string>();
      for (const coding of ["br", "gzip", "identity"]) {
        const headers = { "accept-encoding": coding };
        const etag = (await ask(name, headers)).headers.get("etag") as string;
        tags.add(etag);
        const again = await ask(name, { ...headers, "if-none-match": `"other", W/${etag}` });
        expect([again.status, again.headers.get("etag"), again.bytes.length], name).toEqual([304, etag, 0]);
        expect((await ask(name, { ...headers, "if-none-match": '"other"' })).status).toBe(200);
      }
      expect(tags.size, name).toBe(3);
    }
  });

  test("have ranges of the unencoded text, and HEAD equals GET", async () => {
    const [name = "", text = ""] = Object.entries(texts).find(([each]) => each.endsWith("playlist.m3u8")) ?? [];
    const part = await ask(name, { "accept-encoding": "br", range: "bytes=0-6" });
    expect([part.status, part.headers.get("content-encoding"), part.bytes.toString()]).toEqual([
      206,
      null,
      text.slice(0, 7),
    ]);
    expect(part.headers.get("vary")).toBe("Accept-Encoding");
    const head = await ask(name, { "accept-encoding": "br" }, "HEAD");
    const whole = await ask(name, { "accept-encoding": "br" });
    expect([head.bytes.length, head.headers.get("content-length")]).toEqual([0, String(whole.bytes.length)]);
    expect(
      (await ask(`${name.split("/")[0]}/storyboard-1.jpg`, { "accept-encoding": "br" })).headers.get(
        "content-encoding",
      ),
    ).toBeNull();
  });

  test("that are short are not compressed; the player's data are", async () => {
    const plain = (await ask(`/embed/${id}/player.json`)).bytes.toString();
    const { headers, bytes } = await ask(`/embed/${id}/player.json`, { "accept-encoding": "br" });
    expect([headers.get("content-encoding"), headers.get("vary")]).toEqual(["br", "Accept-Encoding"]);
    expect(decoded("br", bytes)).toBe(plain);
    const list = Object.keys(texts)
      .find((name) => name.startsWith("subtitles/"))
      ?.replace(".vtt", ".m3u8") as string;
    const short = await ask(list, { "accept-encoding": "br" });
    expect([short.status, short.headers.get("content-encoding")]).toEqual([200, null]);
  });

  test("are counted as sent", async () => {
    await app.runTask("count-egress");
    const sum = async () => (await app.as(key).listTenants()).body[0].egress_bytes;
    const before = await sum();
    const { bytes } = await ask("master.m3u8", { "accept-encoding": "br" });
    await ask("master.m3u8", { "accept-encoding": "br" }, "HEAD");
    await app.runTask("count-egress");
    expect((await sum()) - before).toBe(bytes.length);
  });
});

describe("storyboard.json", () => {
  test("has the tiles of the WebVTT, each with its sheet when there are several", async () => {
    const board = JSON.parse(texts["storyboard.json"] as string);
    expect(board).toMatchObject({ tile_width: 160, tile_height: 90, duration: 300 });
    expect(board.tiles).toHaveLength(300);
    expect(board.tiles[0]).toEqual({ start: 0, x: 0, y: 0, url: board.url });
    expect(board.tiles[161]).toMatchObject({ start: 161, x: 160, y: 90 });
    expect((await ask(new URL(board.url).pathname)).bytes.toString()).toBe("sheet");
    expect((await ask(new URL(board.tiles[161].url).pathname)).bytes.toString()).toBe("second sheet");
  });

  test("with signed playback contains the token", async () => {
    const { asset } = await uploaded(app, key);
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    await callback(app, contract, "complete", { ...paths, media: { duration_seconds: 4 } });
    const { token } = (await app.as(key).getPlayback(asset.id)).body;
    for (const at of [`storyboard.json?token=${token}`, `~${token}/storyboard.json`]) {
      const { body } = await app.call("GET", `/media/${asset.id}/${at}`);
      expect(body.tiles).toEqual([{ start: 0, x: 0, y: 0 }]);
      expect((await ask(new URL(body.url).pathname)).bytes.toString()).toBe("sheet");
    }
    expect((await app.call("GET", `/media/${asset.id}/storyboard.json`)).status).toBe(403);
  });
});
