import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StorageFull } from "#storage/objects/store.ts";
import type { SwitchingStore } from "#storage/objects/switching.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Files } from "#test/support/batches.ts";
import { completeRest, publishedEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { colouredFilm, delivered } from "#test/support/films.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { seen, tool } from "#test/support/pixels.ts";

let app: TestApp;
let tenant: number;
let key: string;
let poster: Uint8Array;
let assets: Record<
  "ours" | "ts" | "ranges" | "private" | "still" | "lies" | "locked",
  { id: number; external_id: string }
>;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  tenant = (await app.tenant()).id;
  key = await app.key(tenant);
  const files = await colouredFilm();
  const copied = (from: string, to: string) => {
    for (const [name, bytes] of Object.entries(files))
      if (name.startsWith(`${from}/`)) files[name.replace(from, to)] = bytes;
  };
  copied("ours", "private");
  copied("ts", "lies");
  copied("ts", "locked");
  const text = (name: string) => Buffer.from(files[name] as Uint8Array).toString();
  files["lies/low.ts"] = Buffer.alloc((files["ts/low.ts"] as Uint8Array).length, "no stream ");
  files["locked/low.m3u8"] = text("ts/low.m3u8").replace("#EXTINF", '#EXT-X-KEY:METHOD=AES-128,URI="key.bin"\n#EXTINF');
  files["locked/key.bin"] = "sixteen bytes ok";
  poster = files["ours/thumbnail.jpg"] as Uint8Array;
  Object.assign(files, soundOnly("still"));
  const ours = { thumbnail_path: "ours/thumbnail.jpg", storyboard_path: "ours/storyboard.vtt" };
  assets = await delivered(app, key, {
    files,
    assets: {
      ours,
      private: { thumbnail_path: "private/thumbnail.jpg", playback_policy: "signed" },
      ts: {},
      ranges: {},
      still: { thumbnail_path: "still/poster.jpg" },
      lies: {},
      locked: {},
    },
  });
});
afterAll(() => app.close());

/** With a poster. */
const soundOnly = (folder: string): Files => ({
  [`${folder}/master.m3u8`]: '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=90000,CODECS="mp4a.40.2"\nlow.m3u8\n',
  [`${folder}/low.m3u8`]: "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n1.aac\n#EXT-X-ENDLIST\n",
  [`${folder}/1.aac`]: "sound",
  [`${folder}/poster.jpg`]: poster,
});

const address = (name: keyof typeof assets, file: string) => `http://vodbox.test/media/${assets[name].id}/${file}`;
async function get(name: keyof typeof assets, file: string, init: RequestInit = {}) {
  const response = await app.opened.server.fetch(new Request(address(name, file), init));
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
}

const RED = "255 0 0";
const LIME = "0 255 0";
const BLUE = "0 0 255";
const BLACK = "0 0 0";
const WHITE = "255 255 255";
const YELLOW = "255 255 0";

describe("an on-demand image", () => {
  test.each([
    ["ours", "thumbnail.jpg?time=0", "640,360", RED],
    ["ours", "thumbnail.png?time=1.5&width=320", "320,180", LIME],
    ["ours", "thumbnail.webp?time=0.94", "640,360", RED],
    ["ours", "thumbnail.webp?time=1", "640,360", LIME],
    // In the second segment.
    ["ours", "thumbnail.jpg?time=4.5&height=90", "160,90", BLACK],
    ["ours", "thumbnail.jpg?time=5.5&width=200&height=200", "200,112", YELLOW],
    // Beyond the end: the last frame.
    ["ours", "thumbnail.jpg?time=9999", "640,360", YELLOW],
    ["ours", "thumbnail.jpg?time=2.5&width=100&height=100&fit_mode=smartcrop", "100,100", BLUE],
    ["ours", "thumbnail.jpg?time=2.5&width=100&height=300&fit_mode=crop", "100,300", BLUE],
    ["ours", "thumbnail.jpg?time=2.5&width=101&height=100&fit_mode=stretch", "100,100", BLUE],
    ["ours", "thumbnail.png?time=2.5&width=1000&height=1000&fit_mode=pad", "1000,1000", BLUE],
    // Width and height are those of the turned image.
    ["ours", "thumbnail.jpg?time=2.5&rotate=90", "360,640", BLUE],
    ["ours", "thumbnail.png?time=2.5&rotate=270&height=320&flip_v=true", "180,320", BLUE],
    // Never larger than the video.
    ["ours", "thumbnail.jpg?time=2.5&width=1920", "640,360", BLUE],
    // MPEG-TS starts its clock at 1.4 s; both are byte ranges of one file.
    ["ts", "thumbnail.jpg?time=0.5", "640,360", RED],
    ["ts", "thumbnail.jpg?time=4.5", "640,360", BLACK],
    ["ranges", "thumbnail.jpg?time=2.5", "640,360", BLUE],
    ["ranges", "thumbnail.jpg?time=5.9", "640,360", YELLOW],
  ] as const)("of %s, %s, has its size and shows its time", async (name, file, size, colour) => {
    const answer = await get(name, file);
    expect(answer.status, answer.bytes.toString("latin1").slice(0, 200)).toBe(200);
    const extension = /\.(\w+)/.exec(file)?.[1] as string;
    expect(answer.headers.get("content-type")).toBe(`image/${extension === "jpg" ? "jpeg" : extension}`);
    expect(await seen(answer.bytes, extension)).toEqual([size, colour]);
  });

  test("without a time is the poster, also for audio-only assets", async () => {
    const plain = await get("ours", "thumbnail.jpg");
    const [size] = await seen(plain.bytes, "jpg");
    expect((await seen((await get("ours", "thumbnail.webp")).bytes, "webp"))[0]).toBe(size);
    expect((await seen((await get("ours", "thumbnail.png?width=64")).bytes, "png"))[0]).toBe("64,36");
    expect((await seen((await get("still", "thumbnail.webp?time=3&width=64")).bytes, "webp"))[0]).toBe("64,36");
    expect((await get("ts", "thumbnail.webp")).status).toBe(404);
  });

  test("of the storyboard has all of its tiles, in every format", async () => {
    const sheet = await get("ours", "storyboard.jpg");
    expect([sheet.status, sheet.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
    const [size] = await seen(sheet.bytes, "jpg");
    for (const extension of ["png", "webp"])
      expect((await seen((await get("ours", `storyboard.${extension}`)).bytes, extension))[0]).toBe(size);
    const [width = 0, height = 0] = String(size).split(",").map(Number);
    const [small] = await seen((await get("ours", "storyboard.png?width=64")).bytes, "png");
    const [smallWidth, smallHeight] = String(small).split(",").map(Number);
    expect(smallWidth).toBe(64);
    expect(smallHeight).toBeCloseTo((64 * height) / width, -1);
    expect((await seen((await get("ours", "storyboard.webp?width=1920")).bytes, "webp"))[0]).toBe(size);
    expect((await get("ours", "storyboard.png?width=8")).status).toBe(422);
    expect((await get("ts", "storyboard.jpg")).status).toBe(404);
  });

  test("is animated with the requested duration, rate and size", async () => {
    const gif = await get("ours", "animated.gif?start=0.5&end=2.5&width=160&fps=5");
    expect([gif.status, gif.headers.get("content-type")]).toEqual([200, "image/gif"]);
    const file = join(emptyFolder(), "a.gif");
    writeFileSync(file, gif.bytes);
    const shown = await tool(
      "ffprobe",
      "-count_frames",
      "-show_entries",
      "stream=nb_read_frames,width:format=duration",
      "-of",
      "csv=p=0",
      file,
    );
    expect(shown.toString().trim().split("\n")).toEqual(["160,10", "2.000000"]);
    expect(await seen(gif.bytes, "gif")).toEqual(["160,90", RED]);
    // Across the boundary of two segments.
    const webp = await get("ours", "animated.webp?start=3&end=5&fps=4");
    expect([webp.status, webp.headers.get("content-type")]).toEqual([200, "image/webp"]);
    // WebP Container Specification, "Extended File Format" and "Animation": VP8X with its size, then the frames.
    expect(webp.bytes.toString("latin1", 12, 16)).toBe("VP8X");
    expect([webp.bytes.readUIntLE(24, 3) + 1, webp.bytes.readUIntLE(27, 3) + 1]).toEqual([320, 180]);
    expect(durationsOf(webp.bytes).reduce((sum, ms) => sum + ms, 0)).toBe(2000);
    expect((await get("still", "animated.webp")).status).toBe(404);
    const high = await get("ours", "animated.gif?end=0.5&fps=4&height=90");
    expect((await seen(high.bytes, "gif"))[0]).toBe("160,90");
  });

  test("supports conditions, HEAD, ranges and other origins like all media", async () => {
    const file = "thumbnail.jpg?time=3.3";
    // The second time it is read from storage.
    for (let turn = 0; turn < 2; turn++) {
      const answer = await get("ours", file);
      expect(answer.headers.get("cache-control")).toBe("public, max-age=86400");
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      const etag = answer.headers.get("etag") as string;
      expect((await get("ours", file, { headers: { "if-none-match": etag } })).status).toBe(304);
      const head = await get("ours", file, { method: "HEAD" });
      expect([head.status, head.bytes.length]).toEqual([200, 0]);
      expect(head.headers.get("content-length")).toBe(String(answer.bytes.length));
      const part = await get("ours", file, { headers: { range: "bytes=0-1", "if-range": etag } });
      expect([part.status, part.bytes.toString("hex")]).toEqual([206, "ffd8"]);
    }
    expect((await get("ours", `${file}1`)).headers.get("etag")).toBe((await get("ours", file)).headers.get("etag"));
    expect((await get("ours", "thumbnail.jpg?time=3.4")).headers.get("etag")).not.toBe(
      (await get("ours", file)).headers.get("etag"),
    );
  });

  test("with signed playback needs its token, in the query or the path", async () => {
    expectError(await app.call("GET", address("private", "thumbnail.jpg?time=1")), 403, "playback_token_required");
    expectError(await app.call("GET", address("private", "animated.webp?token=x")), 403, "playback_token_invalid");
    const { token } = (await app.as(key).getPlayback(assets.private.id)).body;
    const answer = await get("private", `thumbnail.webp?time=1&width=64&token=${token}`);
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "private, max-age=86400"]);
    expect((await get("private", `~${token}/thumbnail.webp?time=1&width=64`)).status).toBe(200);
  });

  test.each([
    ["thumbnail.jpg?time=", "time"],
    ["thumbnail.jpg?time=-1", "time"],
    ["thumbnail.jpg?time=1e3", "time"],
    ["thumbnail.jpg?time=NaN", "time"],
    ["thumbnail.jpg?time=1%00", "time"],
    ["thumbnail.webp?width=15", "width"],
    ["thumbnail.png?height=1921", "height"],
    ["thumbnail.png?width=1.5", "width"],
    ["thumbnail.jpg?width=99999999999", "width"],
    ["thumbnail.jpg?width=100&fit_mode=cover", "fit_mode"],
    ["thumbnail.jpg?rotate=45", "rotate"],
    ["thumbnail.jpg?flip_h=1", "flip_h"],
    ["animated.gif?height=700", "height"],
    ["animated.gif?start=6", "start"],
    ["animated.gif?start=3&end=3", "end"],
    ["animated.gif?start=3&end=2", "end"],
    ["animated.webp?width=641", "width"],
    ["animated.webp?fps=31", "fps"],
    ["animated.webp?fps=0", "fps"],
  ])("%s is refused", async (file, field) => {
    const answer = await app.call("GET", address("ours", file));
    expectError(answer, 422, "validation_failed");
    expect(Object.keys(answer.body.details)).toEqual([field]);
  });

  test("of media that are audio-only, encrypted, or external does not exist", async () => {
    for (const [name, file] of [
      ["lies", "thumbnail.jpg?time=1"],
      ["lies", "animated.gif"],
      ["locked", "thumbnail.jpg?time=1"],
      ["still", "thumbnail.jpeg"],
      ["ours", "animated.mp4"],
    ] as const)
      expectError(await app.call("GET", address(name, file)), 404, "not_found");
    const body = {
      title: "Theirs",
      provider: "external_serve",
      manifest_url: "https://cdn.example.com/a.m3u8",
      input_status: "pending",
      playback_status: "ready",
      duration_seconds: 6,
      source_key: `tenants/${tenant}/none.mp4`,
      source_bytes: 0,
      storage_bytes: 0,
    };
    const made = await app
      .as(key)
      .createAsset({ tenant_id: tenant, video_asset: { ...body, playback_policy: "public" } });
    expect(made.status, made.text).toBe(201);
    expectError(await app.call("GET", `/media/${made.body.asset.id}/thumbnail.jpg?time=1`), 404, "not_found");
  });
});

describe("a generated image", () => {
  const kept = async (id: number) => {
    const { objects = [] } = (await app.opened.app.objects?.list(`tenants/${tenant}/assets/${id}/pictures/`)) ?? {};
    return objects.map(({ key }) => key.split("/").at(-1)).sort();
  };

  test("is stored, generated once for concurrent requests, and rate limited where it is generated", async () => {
    const small = await testApp({ rate_limit_pictures: "2/60" });
    const own = await small.key((await small.tenant()).id);
    const { only } = await delivered(small, own, {
      files: soundOnly("only"),
      assets: { only: { thumbnail_path: "only/poster.jpg" } },
    });
    let sent = 0;
    const ask = async (width: number, rest = "") => {
      const answer = await small.call("GET", `/media/${only.id}/thumbnail.jpg?width=${width}${rest}`);
      if (answer.status === 200) sent += Number(answer.headers.get("content-length"));
      return answer;
    };
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(64)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await ask(64)).status).toBe(200);
    // An equivalent request.
    expect((await ask(65, "&fit_mode=pad")).status).toBe(200);
    expect((await ask(80)).status).toBe(200);
    const refused = await ask(96);
    expectError(refused, 429, "rate_limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask(80)).status).toBe(200);
    await small.runTask("count-egress");
    const [{ egress_bytes }] = (await small.as(own).listTenants()).body;
    expect(egress_bytes).toBe(sent);
  });

  /** Puts fail while `work` runs. */
  async function whileFull(work: () => Promise<void>): Promise<void> {
    const objects = app.opened.app.objects as SwitchingStore;
    const inner = await app.opened.app.openStore("local");
    objects.use({ ...inner, put: () => Promise.reject(new StorageFull()) });
    await work().finally(() => objects.use(inner));
  }

  test("is delivered when storage is full, and not stored", async () => {
    const before = await kept(assets.ts.id);
    await whileFull(async () => {
      for (let turn = 0; turn < 2; turn++) {
        const answer = await get("ts", "thumbnail.jpg?time=3.5&width=64");
        expect(await seen(answer.bytes, "jpg")).toEqual(["64,36", WHITE]);
        expect(answer.headers.get("etag")).toMatch(/^"\w{32}"$/);
      }
    });
    expect(await kept(assets.ts.id)).toEqual(before);
    expect((await get("ts", "thumbnail.jpg?time=3.5&width=64")).status).toBe(200);
    expect(await kept(assets.ts.id)).toEqual([...before, "at-3.5-w64-h.jpg"].sort());
  });

  test("is stored a thousand times at most", async () => {
    const objects = app.opened.app.objects as SwitchingStore;
    const { id } = assets.ranges;
    expect((await get("ranges", "thumbnail.jpg?time=0&width=16")).status).toBe(200);
    const { objects: made } = await objects.list(`tenants/${tenant}/assets/${id}/pictures/`);
    const folder = dirname(objects.localPath(made[0]?.key as string) as string);
    for (let more = made.length; more < 1000; more++) writeFileSync(join(folder, `at-0.7-w${more}-h.jpg`), poster);
    // After a failure it is counted again, as after a start.
    await whileFull(async () => void (await get("ranges", "thumbnail.jpg?time=3&width=18")));
    const before = await kept(id);
    expect(before).toHaveLength(1000);
    for (const time of ["1", "2"])
      expect((await get("ranges", `thumbnail.jpg?time=${time}&width=18`)).status).toBe(200);
    expect(await kept(id)).toEqual(before);
  });

  test("is deleted when another version is published, which has its own", async () => {
    const { id } = await publishedEarly(app, key, { thumbnail: poster });
    const ask = () => app.call("GET", `/media/${id}/thumbnail.webp?width=64`);
    const first = (await ask()).headers.get("etag");
    expect((await kept(id)).length).toBe(1);
    await completeRest(app, poster);
    await app.runTask("sweep-objects");
    expect(await kept(id)).toEqual([]);
    const second = (await ask()).headers.get("etag");
    expect([typeof second, second === first]).toEqual(["string", false]);
  });

  test("is deleted with the asset", async () => {
    expect((await get("ours", "animated.webp?end=1&width=64&fps=2")).status).toBe(200);
    expect(await kept(assets.ours.id)).toContain("animated-0-1-w64-r2.webp");
    expect((await app.as(key).deleteAsset(assets.ours.id)).status).toBe(204);
    expect(await kept(assets.ours.id)).toEqual([]);
    expect((await get("ours", "thumbnail.jpg?time=1")).status).toBe(404);
  });

  test("is refused when too many are waiting", async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => get("still", `thumbnail.jpg?width=${16 + 2 * index}`)),
    );
    const refused = answers.filter(({ status }) => status === 503);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
    for (const { headers, bytes } of refused)
      expect([headers.get("retry-after"), JSON.parse(bytes.toString()).code]).toEqual(["2", "busy"]);
  });
});

/** Duration of the frames of an animated WebP, in ms: in each ANMF chunk it follows position and size. */
function durationsOf(webp: Buffer): number[] {
  const found: number[] = [];
  for (let at = 12; at < webp.length; ) {
    const size = webp.readUInt32LE(at + 4);
    if (webp.toString("latin1", at, at + 4) === "ANMF") found.push(webp.readUIntLE(at + 8 + 12, 3));
    at += 8 + size + (size % 2);
  }
  return found;
}
