import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SwitchingStore } from "#storage/objects/switching.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { checkup } from "#test/support/doctor.ts";
import { completeRest, publishedEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { colouredFilm, delivered } from "#test/support/films.ts";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { seen, tool } from "#test/support/pixels.ts";

const RED = "255 0 0";
const LIME = "0 255 0";
const BLUE = "0 0 255";
/** No color of the film, whose automatic poster may be any of its own. */
const MAGENTA = "255 0 255";
const WHITE = "255 255 255";
const MIB = 2 ** 20;
/** After the end of the image, where a decoder does not look. */
const SECRET = Buffer.from("<script>alert('stored as it was sent')</script>");

let app: TestApp;
let tenantId: number;
let key: string;
let film: { id: number; external_id: string };
let sound: { id: number };
let objects: SwitchingStore;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  objects = app.opened.app.objects as SwitchingStore;
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
  const files = await colouredFilm();
  Object.assign(files, {
    "sound/master.m3u8": '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=90000,CODECS="mp4a.40.2"\nlow.m3u8\n',
    "sound/low.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n1.aac\n#EXT-X-ENDLIST\n",
    "sound/1.aac": "sound",
  });
  ({ ours: film, sound } = await delivered(app, key, {
    files,
    assets: { ours: { thumbnail_path: "ours/thumbnail.jpg", storyboard_path: "ours/storyboard.vtt" }, sound: {} },
  }));
});
afterAll(() => app.close());
const get = (id: number) => app.as(key).getAsset(id);
const put = (id: number, type: string, raw: Uint8Array, as = key) =>
  app.as({ key: as, headers: { "content-type": type } }).setPoster(id, raw as Uint8Array<ArrayBuffer>);
const frame = (id: number, time_seconds: unknown) => app.as(key).unchecked.setPoster(id, { time_seconds });
const automatic = (id: number) => app.as(key).deletePoster(id);

async function media(id: number, file: string) {
  const response = await app.opened.server.fetch(new Request(`http://vodbox.test/media/${id}/${file}`));
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}
const shown = async (id: number, file = "thumbnail.jpg") =>
  seen((await media(id, file)).bytes, /\.(\w+)/.exec(file)?.[1] as string);

async function image(extension: string, color: string, size: string): Promise<Buffer> {
  const file = join(emptyFolder(), `image.${extension}`);
  await tool("ffmpeg", "-f", "lavfi", "-i", `color=${color}:s=${size}`, "-frames:v", "1", file);
  return readFileSync(file);
}
const stored = async (id: number) =>
  (await objects.list(`tenants/${tenantId}/assets/${id}/`)).objects.map((one) => one.key);

async function collect() {
  app.advance(70_000);
  await app.runTask("sweep-objects");
}

describe("a poster", () => {
  test.each([
    ["image/jpeg", "jpg", "640x480", "640,480"],
    ["image/png", "png", "801x601", "800,600"],
    ["image/webp", "webp", "3000x1000", "1920,640"],
  ])(
    "sent as %s is encoded again and shown everywhere, until the automatic one returns",
    async (type, extension, size, fitted) => {
      const { body: before } = await get(film.id);
      const sent = Buffer.concat([await image(extension, "magenta", size), SECRET]);
      const { status, body, text } = await put(film.id, type, sent);
      expect(status, text).toBe(200);
      expect(body.poster_path).toMatch(new RegExp(`^tenants/${tenantId}/assets/${film.id}/poster/\\w{24}\\.jpg$`));
      expect(body.thumbnail_path).toBe(body.poster_path);
      const { bytes, ...served } = await media(film.id, "thumbnail.jpg");
      expect(served).toEqual({ status: 200, type: "image/jpeg" });
      expect(bytes.includes(SECRET)).toBe(false);
      expect(body.storage_bytes).toBe(before.storage_bytes + bytes.length);
      expect(await seen(bytes, "jpg")).toEqual([fitted, MAGENTA]);
      expect((await shown(film.id, "thumbnail.webp?width=64"))[1]).toBe(MAGENTA);
      const url = encodeURIComponent(`http://vodbox.test/watch/${film.id}`);
      const { body: oembed } = await app.call("GET", `/oembed?url=${url}`);
      expect(`${oembed.thumbnail_width},${oembed.thumbnail_height}`).toBe(fitted);
      // A time still shows the video.
      expect((await shown(film.id, "thumbnail.png?time=1.5&width=64"))[1]).toBe(LIME);

      const returned = await automatic(film.id);
      expect(returned.body).toMatchObject({
        poster_path: null,
        thumbnail_path: before.thumbnail_path,
        storage_bytes: before.storage_bytes,
      });
      expect(await shown(film.id)).not.toContain(MAGENTA);
      expect((await shown(film.id, "thumbnail.webp?width=64"))[1]).not.toBe(MAGENTA);
      expect((await automatic(film.id)).status).toBe(200);
      await collect();
      expect((await stored(film.id)).filter((name) => name.includes("/poster/"))).toEqual([]);
    },
  );

  test("can be a frame of the video", async () => {
    for (const [time, color] of [
      [0, RED],
      [2.5, BLUE],
      [3, WHITE],
    ] as const) {
      const { status, text } = await frame(film.id, time);
      expect(status, text).toBe(200);
      expect(await shown(film.id)).toEqual(["640,360", color]);
    }
    await collect();
    // Each one replaces the last one.
    expect((await stored(film.id)).filter((name) => name.includes("/poster/"))).toHaveLength(1);
    for (const time of [-1, 6.5, 1e9, "1", null, Number.NaN])
      expect((await frame(film.id, time)).status, String(time)).toBe(422);
    expectError(await frame(sound.id, 1), 422, "invalid_image");
    const body = { filename: "x.mp4", bytes_expected: 1 };
    const { asset_id: draft } = (await app.as(key).initiateUpload(body)).body;
    expectError(await frame(draft, 0), 422, "asset_not_ready");
    expect(await shown(film.id)).toEqual(["640,360", WHITE]);
    await automatic(film.id);
  });

  test("that is no image, or a hostile one, is refused, and nothing is stored or changed", async () => {
    const { body: before } = await get(film.id);
    const listed = await stored(film.id);
    const png = await image("png", "red", "64x64");
    const bomb = Buffer.from(png);
    // IHDR: width and height.
    bomb.writeUInt32BE(60_000, 16);
    bomb.writeUInt32BE(60_000, 20);
    const webp = await image("webp", "red", "64x64");
    for (const [what, type, bytes] of [
      ["nothing", "image/png", Buffer.alloc(0)],
      ["text", "image/png", Buffer.from("hello")],
      ["SVG", "image/png", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
      ["a GIF", "image/webp", await image("gif", "red", "64x64")],
      ["a playlist", "image/jpeg", Buffer.from("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n")],
      ["3.6 gigapixels", "image/png", bomb],
      ["a header", "image/png", png.subarray(0, 40)],
      ["a RIFF without an image", "image/webp", Buffer.concat([webp.subarray(0, 12), Buffer.alloc(100)])],
    ] as const)
      expect([what, (await put(film.id, type, bytes)).error.code]).toEqual([what, "invalid_image"]);
    for (const type of ["image/gif", "image/svg+xml", "text/plain", "video/mp4"])
      expectError(await put(film.id, type, png), 415, "unsupported_media_type");
    expectError(await put(film.id, "image/png", Buffer.alloc(10 * MIB + 1)), 413, "payload_too_large");
    expectError(await put(film.id, "application/json", Buffer.from("{")), 400, "invalid_json");
    const { body: after } = await get(film.id);
    expect([after, await stored(film.id)]).toEqual([before, listed]);
  });

  test("belongs to its tenant, and needs assets:write", async () => {
    const png = await image("png", "red", "64x64");
    const other = await app.key((await app.tenant()).id);
    expectError(await put(film.id, "image/png", png, other), 404, "not_found");
    expectError(await app.as(other).deletePoster(film.id), 404, "not_found");
    const reader = await app.key(tenantId, ["assets:read"]);
    expect((await put(film.id, "image/png", png, reader)).status).toBe(403);
  });

  test("chosen while an asset is encoded is kept by that encode and by later ones", async () => {
    const asset = await publishedEarly(app, key);
    expect((await put(asset.id, "image/png", await image("png", "blue", "64x64"))).status).toBe(200);
    expect(await shown(asset.id)).toEqual(["64,64", BLUE]);
    const paths = await completeRest(app);
    expect(await shown(asset.id)).toEqual(["64,64", BLUE]);
    const { body } = await get(asset.id);
    const listed = (await objects.list(`tenants/${tenantId}/assets/${asset.id}/`)).objects;
    const bytes = listed
      .filter(({ key: name }) => !name.includes("/pictures/"))
      .reduce((sum, one) => sum + one.bytes, 0);
    expect(body.storage_bytes).toBe(body.source_bytes + bytes);
    expect((await automatic(asset.id)).body.thumbnail_path).toBe(paths.thumbnail_path);
  });

  test("sent while its asset is deleted leaves nothing", async () => {
    const png = await image("png", "blue", "64x64");
    const { asset } = await readyAsset(app, key);
    const [sent, deleted] = await Promise.all([put(asset.id, "image/png", png), app.as(key).deleteAsset(asset.id)]);
    expect([[200, 404].includes(sent.status), deleted.status]).toEqual([true, 204]);
    // Longer than an object may wait for its row.
    app.advance(3_700_000);
    await app.runTask("sweep-objects");
    expect(await stored(asset.id)).toEqual([]);
  });

  test("of an asset that another server delivers is refused", async () => {
    const video_asset = {
      title: "CDN",
      input_status: "uploaded",
      playback_status: "ready",
      source_bytes: 0,
      storage_bytes: 0,
      duration_seconds: 1,
      source_key: "",
      provider: "external_serve",
      manifest_url: "https://cdn.example.com/a.m3u8",
    };
    const external = await app.as(key).createAsset({ tenant_id: tenantId, video_asset });
    const png = await image("png", "blue", "64x64");
    expectError(await put(external.body.asset.id, "image/png", png), 409, "asset_conflict");
    expectError(await app.as(key).deleteSource(external.body.asset.id), 409, "asset_conflict");
  });

  test("is deleted with its asset", async () => {
    const { asset } = await readyAsset(app, key);
    await put(asset.id, "image/png", await image("png", "blue", "64x64"));
    expect((await stored(asset.id)).some((name) => name.includes("/poster/"))).toBe(true);
    await app.as(key).deleteAsset(asset.id);
    expect(await stored(asset.id)).toEqual([]);
  });

  test("is known to doctor, which returns to the automatic one when its object is lost", async () => {
    const { asset, contract } = await readyAsset(app, key);
    const { body } = await put(asset.id, "image/png", await image("png", "blue", "64x64"));
    expect((await checkup(app)).of("missing").ok).toBe(true);
    rmSync(objects.localPath(body.poster_path) as string);
    expect((await checkup(app)).of("missing").ok).toBe(false);
    await checkup(app, { fix: true });
    expect((await checkup(app)).of("missing").ok).toBe(true);
    const { body: left } = await get(asset.id);
    expect([left.poster_path, left.playback_status, left.thumbnail_path]).toEqual([
      null,
      "ready",
      contract.outputs.thumbnail_path,
    ]);
  });
});
