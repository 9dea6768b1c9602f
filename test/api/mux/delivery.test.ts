import { beforeEach, describe, expect, test, vi } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { film, filmAsset } from "#test/support/clips.ts";
import { readyAsset } from "#test/support/flow.ts";
import { muxClient } from "#test/support/mux/client.ts";

let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
beforeEach(async () => {
  app = await testApp({ mux_domain: "video.example.com" });
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key));
});
const open = async () => (await app.as(key).createPlaybackId(asset.id, { policy: "public" })).body.id as string;
const get = (path: string) => app.call("GET", path);
/** A request to a host of the domain. */
const at = (host: string, path: string) =>
  app.opened.server.fetch(new Request(`http://${host}.video.example.com${path}`));

/** The references of a playlist, each of which can be read. */
async function everyReferenceOf(playlist: string): Promise<string[]> {
  const read = (url: string) => app.opened.server.fetch(new Request(url));
  const text = await (await read(playlist)).text();
  const inAttributes = [...text.matchAll(/URI="([^"]+)"/g)].map(([, uri]) => uri as string);
  const urls = [...text.split("\n").filter((line) => line !== "" && !line.startsWith("#")), ...inAttributes];
  expect(urls.length).toBeGreaterThan(0);
  for (const url of urls) expect([url, (await read(new URL(url, playlist).href)).status]).toEqual([url, 200]);
  return urls;
}

describe("the URLs of players", () => {
  test("play a public playback id, by path and by host", async () => {
    const id = await open();
    const manifest = await get(`/mux/stream/${id}.m3u8?redundant_streams=true`);
    expect([manifest.status, manifest.headers.get("content-type")]).toEqual([200, "application/vnd.apple.mpegurl"]);
    expect(manifest.headers.get("access-control-allow-origin")).toBe("*");
    const [variant] = manifest.text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    // @mux/mux-background-video does not resolve a path that begins with a slash.
    expect(variant).toMatch(new RegExp(`^../../media/${id}/`));
    expect((await get(new URL(variant as string, `http://vodbox.test/mux/stream/${id}.m3u8`).href)).status).toBe(200);
    for (const path of [
      `/mux/image/${id}/thumbnail.jpg`,
      `/mux/image/${id}/storyboard.vtt?format=webp`,
      `/mux/image/${id}/storyboard.json`,
    ])
      expect([path, (await get(path)).status]).toEqual([path, 200]);
    const storyboard = `http://vodbox.test/mux/image/${id}/storyboard.vtt`;
    const sheet = /^\S+\/media\S+jpg/m.exec((await get(storyboard)).text)?.[0];
    expect((await get(new URL(sheet as string, storyboard).href)).status).toBe(200);
    expect((await get(`/mux/image/${id}/storyboard.vtt?format=gif`)).status).toBe(422);
    expect((await at("stream", `/${id}.m3u8`)).status).toBe(200);
    await everyReferenceOf(`http://stream.video.example.com/${id}.m3u8`);
    expect((await at("image", `/${id}/thumbnail.jpg`)).status).toBe(200);
    expect((await at("other", `/${id}.m3u8`)).status).toBe(404);
    expect((await at("stream", "/healthz")).status).toBe(200);
    expect((await at("stream", "/nothing")).status).toBe(404);
  });

  test("are complete where the server has a base URL with https", async () => {
    const id = await open();
    const base = vi.spyOn(app.opened.app, "baseUrl").mockReturnValue("https://video.example.com");
    const urls = await everyReferenceOf(`https://stream.video.example.com/${id}.m3u8`);
    base.mockRestore();
    for (const url of urls) expect(url).toMatch(/^https:\/\/stream\.video\.example\.com\/media\//);
  });

  test("deliver static renditions, with the name of a download", async () => {
    const whole = await filmAsset(app, key, await film(), { playback_policy: "public" });
    const mux = muxClient(app, key);
    const read = (file: string) => get(`/mux/stream/${whole.external_id}/${file}`);
    for (const file of ["highest.mp4", "audio.m4a", "capped-1080p.mp4"]) expect((await read(file)).status).toBe(404);
    await mux.video.assets.updateMP4Support(String(whole.id), { mp4_support: "audio-only,capped-1080p" });
    await mux.video.assets.createStaticRendition(String(whole.id), { resolution: "highest" });
    for (const file of ["highest.mp4", "audio.m4a", "capped-1080p.mp4"]) expect((await read(file)).status).toBe(200);
    const download = await read("audio.m4a?download=Song");
    expect(download.headers.get("content-disposition")).toBe("attachment; filename=Song.m4a");
    expect((await read("highest.mp4?width=100")).status).toBe(422);
  });

  test("storyboards refer to the sheet in the requested format", async () => {
    const { external_id: id } = await filmAsset(app, key, await film(), { playback_policy: "public" });
    for (const format of ["png", "webp"]) {
      const { text } = await get(`/mux/image/${id}/storyboard.vtt?format=${format}`);
      const [tile, ...others] = text.split("\n").filter((line) => line.includes("#xywh="));
      // Complete URLs: the plugin of Strapi serves the text at a URL of its own.
      const sheet = `http://vodbox.test/media/${id}/storyboard.${format}#xywh=`;
      expect(tile?.startsWith(`${sheet}0,0,`), tile).toBe(true);
      expect(others.every((line) => line.startsWith(sheet))).toBe(true);
      const image = await get(new URL(tile as string, `http://vodbox.test/mux/image/${id}/`).href);
      expect([image.status, image.headers.get("content-type")]).toEqual([200, `image/${format}`]);
      const { body } = await get(`/mux/image/${id}/storyboard.json?format=${format}`);
      expect(body.url).toMatch(new RegExp(`/media/${id}/storyboard\\.${format}$`));
      // As the helpers of @mux/ai request it.
      const small = await get(`/mux/image/${id}/storyboard.${format}?width=640`);
      expect([small.status, small.headers.get("content-type")]).toEqual([200, `image/${format}`]);
    }
  });

  test("manifests have the requested resolutions, in the requested order", async () => {
    const { external_id: id } = await filmAsset(app, key, await film(), { playback_policy: "public" });
    const heights = async (query: string) => {
      const { text } = await get(`/mux/stream/${id}.m3u8?${query}`);
      return [...text.matchAll(/^#EXT-X-STREAM-INF:.*RESOLUTION=\d+x(\d+)/gm)].map(([, height]) => Number(height));
    };
    const all = await heights("");
    expect(all).toEqual(all.toSorted((a, b) => b - a));
    expect(await heights("rendition_order=asc")).toEqual(all.toReversed());
    expect(await heights("max_resolution=2160p&min_resolution=270p")).toEqual(all);
    expect(await heights("min_resolution=1080p")).toEqual([Math.max(...all)]);
    for (const query of ["max_resolution=100p", "min_resolution=x", "rendition_order=up"])
      expect((await get(`/mux/stream/${id}.m3u8?${query}`)).status).toBe(422);
    expect((await get(`/mux/stream/${id}.m3u8?min_resolution=1080p&max_resolution=720p`)).status).toBe(400);
  });

  test("need a token of Mux's form for a signed one", async () => {
    const mux = muxClient(app, key);
    const made = await app.as(key).createSigningKey({});
    const own = { keyId: made.body.key_id, keySecret: made.body.private_key };
    const id = asset.external_id;
    const sign = (type: "video" | "thumbnail" | "storyboard", params?: Record<string, string>) =>
      mux.jwt.signPlaybackId(id, { ...own, type, ...(params && { params }) });
    expect((await get(`/mux/stream/${id}.m3u8`)).status).toBe(403);
    const manifest = await get(`/mux/stream/${id}.m3u8?token=${await sign("video")}`);
    expect(manifest.status).toBe(200);
    const [variant] = manifest.text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect((await get((variant as string).replace("../..", ""))).status).toBe(200);
    expect((await get(`/mux/image/${id}/thumbnail.jpg?token=${await sign("thumbnail")}`)).status).toBe(200);
    expect((await get(`/mux/image/${id}/storyboard.vtt?token=${await sign("storyboard")}`)).status).toBe(200);
    expect((await get(`/mux/stream/${id}.m3u8?token=${await sign("thumbnail")}`)).status).toBe(403);
    const restricted = await sign("video", { playback_restriction_id: "1" });
    expect((await get(`/mux/stream/${id}.m3u8?token=${restricted}`)).status).toBe(403);
    // Parameters are claims.
    const wrong = await get(`/mux/image/${id}/thumbnail.jpg?token=${await sign("thumbnail", { width: "1" })}`);
    expect([wrong.status, wrong.body.error.messages.join()]).toEqual([400, expect.stringContaining("width")]);
  });

  test("refuse what has no counterpart", async () => {
    const id = await open();
    for (const path of [
      `stream/${id}.m3u8?roku_trick_play=true`,
      `image/${id}/thumbnail.jpg?program_time=1`,
      `image/${id}/thumbnail.jpg?latest=true`,
    ]) {
      const { status, body } = await get(`/mux/${path}`);
      expect([path, status, body.error.type]).toEqual([path, 422, "not_supported"]);
    }
    for (const path of [
      `stream/${id}`,
      `stream/${id}/`,
      `stream/${id}/low.mp4`,
      `stream/${id}/text/1.vtt`,
      "stream/vid_x.m3u8",
      `image/${id}.m3u8`,
    ])
      expect([path, (await get(`/mux/${path}`)).status]).toEqual([path, 404]);
  });
});
