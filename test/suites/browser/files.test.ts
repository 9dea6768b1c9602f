import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import { compressed } from "#scripts/build/compressed.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { readyAsset } from "#test/support/flow.ts";

let app: TestApp;
beforeEach(async () => {
  app = await testApp({ base_url: "http://vodbox.test/video" });
});
const get = (path: string, headers: Record<string, string> = {}) =>
  app.opened.server.fetch(new Request(`http://vodbox.test${path}`, { headers }));

const FILES = [
  ["/svc-player.js", ["br", "gzip"]],
  ["/svc-transcript.js", ["br", "gzip"]],
  ["/docs/start.js", ["br", "gzip"]],
  ["/docs/scalar.js", ["br", "gzip"]],
  ["/docs/guide/guide.js", ["br", "gzip"]],
  ["/docs/guide/player.html", ["br", "gzip"]],
  ["/docs/guide/search.json", ["br", "gzip"]],
] as const;

test("the program's own files are sent compressed to clients that accept it, and once to clients that have them", async () => {
  for (const [path, codings] of FILES) {
    const plain = await get(path);
    const text = await plain.text();
    expect(plain.headers.get("content-encoding"), path).toBeNull();
    const tags = new Set([plain.headers.get("etag")]);
    for (const coding of codings) {
      const accepted = { "accept-encoding": coding === "br" ? "gzip, br" : "gzip, br;q=0.1" };
      const packed = await get(path, accepted);
      expect(packed.headers.get("content-encoding")).toBe(coding);
      expect(packed.headers.get("vary")).toBe("Accept-Encoding");
      const bytes = Buffer.from(await packed.arrayBuffer());
      expect(bytes.length).toBeLessThan(text.length / 2);
      expect((coding === "br" ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString()).toBe(text);
      const etag = packed.headers.get("etag") as string;
      tags.add(etag);
      expect((await get(path, { ...accepted, "if-none-match": etag })).status).toBe(304);
    }
    expect(tags.size).toBe(codings.length + 1);
    expect((await get(path, { "accept-encoding": "br, gzip" })).headers.get("content-encoding")).toBe(codings[0]);
    expect((await get(path, { "accept-encoding": "br;q=0, gzip;q=0" })).headers.get("content-encoding")).toBeNull();
  }
});

test.each([
  ["gzip", 254_000],
  ["br", 210_000],
])("the player stays within its size budget, sent with %s: %i bytes", async (coding, budget) => {
  const answer = await get("/svc-player.js", { "accept-encoding": coding });
  expect(answer.headers.get("content-encoding")).toBe(coding);
  const sent = Buffer.from(await answer.arrayBuffer());
  // Other builds than releases compress less with brotli.
  const released = coding === "br" ? await compressed(brotliDecompressSync(sent), "release") : sent;
  expect(released.length).toBeLessThanOrEqual(budget);
  // Other sites load it, also as a module.
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
});

test("a page below a proxy's path uses that path in all its URLs, and its script by content hash", async () => {
  const key = await app.key((await app.tenant()).id);
  // What the proxy does with every request.
  const call: TestApp["call"] = (method, address, options) =>
    app.call(method, address.replace("/video/", "/"), options);
  const { asset } = await readyAsset({ call, worker: app.worker }, key, { playback_policy: "public" });
  const page = await (await get(`/watch/${asset.external_id}`)).text();
  const data: any = await (await get(`/embed/${asset.external_id}/player.json`)).json();
  expect(data.hls_url).toBe(`/video/media/${asset.external_id}/master.m3u8`);
  const [script = ""] = /\/svc-player\.js\?v=\w+/.exec(page) ?? [];
  expect(page).toContain(`src="/video${script}"`);
  expect((await get(script)).headers.get("cache-control")).toContain("immutable");
  // A guess, or a page of an older version: a cached response must not outlive this one.
  for (const path of ["/svc-player.js", "/svc-player.js?v=0"])
    expect((await get(path)).headers.get("cache-control")).toBe("public, no-cache");
});
