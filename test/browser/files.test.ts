import { gunzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { readyAsset } from "../support/flow.ts";

let app: TestApp;
beforeEach(async () => {
  app = await testApp({ base_url: "http://vodbox.test/video" });
});
const get = (path: string, headers: Record<string, string> = {}) =>
  app.opened.server.fetch(new Request(`http://vodbox.test${path}`, { headers }));

test("the program's own files come zipped to whoever takes that, and once to whoever has them", async () => {
  for (const path of ["/svc-player.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"]) {
    const plain = await get(path);
    const text = await plain.text();
    expect(plain.headers.get("content-encoding"), path).toBeNull();
    const zipped = await get(path, { "accept-encoding": "br, gzip" });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(zipped.headers.get("vary")).toBe("accept-encoding");
    const bytes = Buffer.from(await zipped.arrayBuffer());
    expect(bytes.length).toBeLessThan(text.length / 2);
    expect(gunzipSync(bytes).toString()).toBe(text);
    const again = await get(path, { "accept-encoding": "gzip", "if-none-match": zipped.headers.get("etag") as string });
    expect(again.status).toBe(304);
    expect((await get(path, { "accept-encoding": "gzip;q=0" })).headers.get("content-encoding")).toBeNull();
  }
});

test("the player stays within its budget of 250 kB, as it is sent", async () => {
  const answer = await get("/svc-player.js", { "accept-encoding": "gzip" });
  expect((await answer.arrayBuffer()).byteLength).toBeLessThanOrEqual(250_000);
  // Other sites load it, also as a module.
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
});

test("a page below a path of a proxy names everything below that path, and its script by content", async () => {
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
  // Somebody who guesses, or a page of an older version: what is kept must not outlive this one.
  for (const path of ["/svc-player.js", "/svc-player.js?v=0"])
    expect((await get(path)).headers.get("cache-control")).toBe("public, no-cache");
});
