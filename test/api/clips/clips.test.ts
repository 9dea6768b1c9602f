import { parse } from "mpd-parser";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { clipOf, createClip, downloaded, FPS, film, filmAsset, frameHashes, SECONDS } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { colouredFilm, delivered } from "#test/support/films.ts";
import { uploaded } from "#test/support/flow.ts";
import { seen } from "#test/support/pixels.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
let tenantId: number;
let files: Awaited<ReturnType<typeof film>>;
/** Signed, with everything that an asset can have. */
let parent: Awaited<ReturnType<typeof filmAsset>>;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
  files = await film();
  parent = await filmAsset(app, key, files, { title: "The film", playback_policy: "signed", tags: { place: "Rome" } });
  return app.close;
});

const fetched = (url: string) => app.opened.server.fetch(new Request(url));
const text = async (url: string) => (await fetched(url)).text();
const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const segmentsOf = (playlist: string) => playlist.split("\n").filter((line) => line.endsWith(".m4s"));

describe("an instant clip", () => {
  test("is a ready asset of whole segments, which inherits", async () => {
    const collection = await app
      .as(key)
      .createCollection({ tenant_id: tenantId, collection: { name: "Films", slug: "films" } });
    await app.as(key).updateAsset(parent.id, { video_asset: { collection_id: collection.body.id } });
    await app.newEvents();
    const { status, body } = await createClip(app, key, parent.id, { start_seconds: 5, end_seconds: 11.5 });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      title: "The film",
      playback_policy: "signed",
      tags: { place: "Rome" },
      collection_id: collection.body.id,
      playback_status: "ready",
      input_status: "uploaded",
      provider: "managed",
      parent_asset_id: parent.id,
      duration_seconds: 8,
      width: 320,
      height: 180,
      frame_rate: FPS,
      progress: 100,
      expires_at: null,
      source_key: "",
      source_bytes: 0,
      thumbnail_path: null,
    });
    expect(body.id).not.toBe(parent.id);
    expect(body.external_id).toMatch(/^vid_/);
    const events = await app.newEvents();
    expect(events).toMatchObject([{ type: "video.asset.ready", data: { asset_id: String(body.id) } }]);
    const named = await createClip(app, key, parent.id, { title: "Mine", start_seconds: 0, end_seconds: SECONDS });
    expect(named.body).toMatchObject({ title: "Mine", duration_seconds: SECONDS });
    expect((await app.as(key).getAsset(parent.id)).body.parent_asset_id).toBeNull();
  });

  test.each([
    [0, 0.1, 0, 4],
    [3.99, 4.01, 0, 8],
    [4, 8, 4, 8],
    [15.9, 18, 12, 18],
    [17.9, 18, 16, 18],
  ])("of %d to %d s begins at %d and ends at %d s", async (start, end, from, to) => {
    const clip = await clipOf(app, key, parent.id, start, end);
    expect(clip.duration_seconds).toBeCloseTo(to - from, 3);
    const { hls_url } = await playback(clip.id);
    const frames = await frameHashes(await downloaded(app, hls_url));
    const all = await frameHashes(await downloaded(app, (await playback(parent.id)).hls_url));
    expect(frames).toEqual(all.slice(from * FPS, to * FPS));
  });

  test("stores manifests only, in less than 100 ms of processor time", async () => {
    const { objects } = app.opened.app;
    await clipOf(app, key, parent.id, 4, 12);
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage();
      const clip = await clipOf(app, key, parent.id, 4, 12);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1000);
      const folder = (clip.manifest_path as string).replace(/[^/]*$/, "");
      const stored = (await objects?.list(folder))?.objects ?? [];
      expect(
        stored.map((one) => one.key.slice(folder.length)).filter((name) => !/\.(m3u8|mpd|vtt)$/.test(name)),
      ).toEqual([]);
      expect(clip.storage_bytes).toBe(stored.reduce((sum, { bytes }) => sum + bytes, 0));
    }
    expect(Math.min(...times), times.map(Math.round).join(", ")).toBeLessThan(100);
  });

  test("opens its own segments and no others, with its own token", async () => {
    const clip = await clipOf(app, key, parent.id, 4, 12);
    const { hls_url, token } = await playback(clip.id);
    const media = await playback(parent.id);
    const at = (id: string, token: string, path: string) => fetched(`http://vodbox.test/media/${id}/~${token}/${path}`);
    const version = (asset: { manifest_path: string }) => asset.manifest_path.split("/").at(-2) as string;
    const rendition = /^(.+)\/playlist\.m3u8$/m
      .exec(await text(hls_url))?.[1]
      ?.split("/")
      .at(-1) as string;
    const own = `${version(clip)}/${rendition}`;
    expect((await at(clip.external_id, token, `${own}/init.mp4`)).status).toBe(200);
    const statuses = [1, 2, 3, 4].map(
      async (number) => (await at(clip.external_id, token, `${own}/0000${number}.m4s`)).status,
    );
    expect(await Promise.all(statuses)).toEqual([404, 200, 200, 404]);
    const parents = `${version(parent as never)}/${rendition}/00002.m4s`;
    expect((await at(parent.external_id, token, parents)).status).toBe(403);
    expect((await at(clip.external_id, media.token, `${own}/00002.m4s`)).status).toBe(403);
    expect((await at(clip.external_id, token, parents)).status).toBe(404);
    expect((await fetched(`http://vodbox.test/media/${clip.external_id}/${own}/00002.m4s`)).status).toBe(403);
  });

  test("has cut playlists of frames, a DASH manifest that begins at 0, and a cut storyboard", async () => {
    const clip = await clipOf(app, key, parent.id, 4, 12);
    const { hls_url, dash_url, storyboard_url } = await playback(clip.id);
    const master = await text(hls_url);
    const frames = new URL(/I-FRAME-STREAM-INF.*URI="([^"]+)"/.exec(master)?.[1] as string, hls_url).href;
    expect([...new Set(segmentsOf(await text(frames)))]).toEqual(["00002.m4s", "00003.m4s"]);
    const [range = "", file = ""] = /^#EXT-X-BYTERANGE:(.+)\n(.+)$/m.exec(await text(frames))?.slice(1) ?? [];
    const [bytes = 0, offset = 0] = range.split("@").map(Number);
    const part = await fetched(new URL(file, frames).href);
    expect((await part.arrayBuffer()).byteLength).toBeGreaterThan(bytes + offset);

    const mpd = await text(dash_url);
    const manifest = parse(mpd, { manifestUri: dash_url });
    // Until the end of the last packet of audio.
    expect(manifest.duration).toBe(8.011);
    for (const playlist of [
      ...manifest.playlists,
      ...Object.values(manifest.mediaGroups.AUDIO.audio ?? {}).flatMap((one) => one.playlists),
    ]) {
      expect(playlist.segments.map((one) => one.uri.split("/").at(-1))).toEqual(["00002.m4s", "00003.m4s"]);
      expect(playlist.segments[0]?.presentationTime).toBeCloseTo(0, 1);
    }
    const tiles = [...(await text(storyboard_url)).matchAll(/^(\S+) --> (\S+)\n.*#xywh=(.*)$/gm)].map((one) =>
      one.slice(1),
    );
    const all = [
      ...(await text((await playback(parent.id)).storyboard_url)).matchAll(/^(\S+) --> (\S+)\n.*#xywh=(.*)$/gm),
    ];
    expect(tiles[0]?.[0]).toBe("00:00:00.000");
    expect(tiles.at(-1)?.[1]).toBe("00:00:08.000");
    expect(tiles.map(([, , area]) => area)).toEqual(all.slice(2, 6).map((one) => one[3]));
    const sheet = /^(\S+)#xywh/m.exec(await text(storyboard_url))?.[1] as string;
    expect((await fetched(new URL(sheet, storyboard_url).href)).status).toBe(200);
  });

  test("shows its first frame as poster, and images of its own range", async () => {
    const clip = await clipOf(app, key, parent.id, 8, 12);
    const shown = async (id: number, query: string) => {
      const url = new URL((await playback(id)).thumbnail_url);
      url.search += query;
      const response = await fetched(url.href);
      expect(response.status).toBe(200);
      return seen(Buffer.from(await response.arrayBuffer()), "jpg");
    };
    expect(await shown(clip.id, "")).toEqual(await shown(parent.id, "&time=8"));
    expect(await shown(clip.id, "&time=2&width=160")).toEqual(await shown(parent.id, "&time=10&width=160"));
  });

  test("of a clip plays the same media", async () => {
    const clip = await clipOf(app, key, parent.id, 4, 16);
    const inner = await clipOf(app, key, clip.id, 4, 8);
    expect(inner).toMatchObject({ parent_asset_id: clip.id, duration_seconds: 4 });
    const frames = await frameHashes(await downloaded(app, (await playback(inner.id)).hls_url));
    const all = await frameHashes(await downloaded(app, (await playback(parent.id)).hls_url));
    expect(frames).toEqual(all.slice(8 * FPS, 12 * FPS));
    expectError(await createClip(app, key, clip.id, { start_seconds: 0, end_seconds: 13 }), 422, "validation_failed");
  });

  test("of delivered media is possible, with the same result", async () => {
    const placed = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [`film/${name}`, bytes]));
    const dash = { dash: { manifest_path: "film/manifest.mpd" }, duration_seconds: SECONDS };
    const made = await delivered(app, key, { files: placed, assets: { film: dash } });
    const clip = await clipOf(app, key, made.film.id, 12, 18);
    const frames = await frameHashes(await downloaded(app, (await playback(clip.id)).hls_url));
    expect(frames).toHaveLength(6 * FPS);
  });

  test("is created once with an Idempotency-Key", async () => {
    const post = () =>
      app
        .as({ key, headers: { "idempotency-key": "the same clip" } })
        .createClip(parent.id, { start_seconds: 0, end_seconds: 4 });
    const first = await post();
    const again = await post();
    expect([first.status, again.status, again.body.id]).toEqual([201, 201, first.body.id]);
  });

  test("has no source, no job and no MP4 file", async () => {
    const clip = await clipOf(app, key, parent.id, 0, 4);
    expectError(await app.as(key).getDownload(clip.id), 410, "source_deleted");
    expect((await playback(clip.id)).mp4_url).toBeUndefined();
    const { body } = await app.as(key).exportGraph();
    const entry = body.assets.find(({ id }: { id: number }) => id === clip.id);
    expect(entry?.shared_media).toMatchObject({ prefix: parent.prefix, start_seconds: 0 });
    expect(entry?.shared_media.segments).toContainEqual(
      expect.objectContaining({ digits: 5, first: 1, last: 1, after: ".m4s" }),
    );
    const retried = await app.as(key).retryAsset(clip.id);
    expectError(retried, 409, "asset_conflict");
    expect(retried.error.error).toMatch(/^The asset is ready; /);
  });
});

test("subtitles, tracks and chapters are cut and moved", async () => {
  const { id } = await filmAsset(app, key, files, { playback_policy: "public" });
  const head = "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n";
  const cue = (times: string, words: string) => `${times}\n${words}\n\n`;
  await subtitled(
    app,
    key,
    id,
    { language: "en", label: "English", role: "caption" },
    [
      head.replace("\n", "\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n"),
      cue("1\n00:00.000 --> 00:03.000", "before"),
      cue("2\n00:03.000 --> 00:05.000 line:0", "across the start"),
      cue("00:06.000 --> 00:08.000", "in<00:07.000>side"),
      cue("00:11.000 --> 00:13.000", "across the end"),
      cue("00:12.000 --> 00:14.000", "behind"),
    ].join(""),
  );
  await subtitled(
    app,
    key,
    id,
    { language: "de", label: "Deutsch" },
    `WEBVTT\n\n${cue("00:00.000 --> 00:01.000", "vorher")}`,
  );
  const put = (body: unknown) => app.as(key).unchecked.setTrack(id, body);
  const payload = (title: string) => ({ payload: { title } });
  await put({
    kind: "chapter",
    name: "parts",
    cues: [0, 2000, 6000, 12_000].map((start_ms) => ({ start_ms, ...payload(String(start_ms)) })),
  });
  await put({
    kind: "scene",
    cues: [
      { start_ms: 1000, end_ms: 5000, payload: {} },
      { start_ms: 4000, payload: {} },
      { start_ms: 3000, payload: {} },
      { start_ms: 11_000, end_ms: 20_000, payload: {} },
    ],
  });
  await put({ kind: "index", name: "elsewhere", storage_key: "s3://mine/index" });
  await app.newEvents();

  const clip = await clipOf(app, key, id, 4, 12);
  const types = (await app.newEvents()).map(({ type }) => type);
  expect(types).toEqual(["video.asset.ready", "video.subtitle.ready", "video.track.ready", "video.track.ready"]);
  const { subtitles, hls_url, dash_url } = await playback(clip.id);
  expect(subtitles.map(({ language }: { language: string }) => language)).toEqual(["en"]);
  const { body: kept } = await app.as(key).listSubtitles(clip.id);
  expect(kept.map(({ role }: { role: string }) => role)).toEqual(["caption"]);
  expect(await text(subtitles[0].url)).toBe(
    `${head.trimEnd()}\n\n2\n00:00:00.000 --> 00:00:01.000 line:0\nacross the start\n\n00:00:02.000 --> 00:00:04.000\nin<00:00:03.000>side\n\n00:00:07.000 --> 00:00:08.000\nacross the end\n`,
  );
  // The segments of the HLS playlists begin at 4 s.
  const list = new URL(/TYPE=SUBTITLES.*URI="([^"]+)"/.exec(await text(hls_url))?.[1] as string, hls_url).href;
  const file = (await text(list)).split("\n").find((line) => line.includes(".vtt")) as string;
  expect(await text(new URL(file, list).href)).toMatch(
    /^WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:360000,LOCAL:00:00:00\.000\n\nSTYLE/,
  );
  expect(await text(dash_url)).toMatch(/subtitles\/\d+\.vtt</);
  const { body: tracks } = await app.as(key).listTracks(clip.id);
  const cues = Object.fromEntries(tracks.map((track) => [track.kind, track.cues]));
  expect(cues.chapter).toEqual([
    { start_ms: 0, ...payload("2000") },
    { start_ms: 2000, ...payload("6000") },
  ]);
  expect(cues.scene).toEqual([
    { start_ms: 0, end_ms: 1000, payload: {} },
    { start_ms: 0, payload: {} },
    { start_ms: 7000, end_ms: 8000, payload: {} },
  ]);
  expect(tracks).toHaveLength(2);
});

describe("a clip is refused", () => {
  const range = { start_seconds: 0, end_seconds: 2 };
  test.each([
    [{ start_seconds: 4, end_seconds: 4 }, "validation_failed"],
    [{ start_seconds: 4, end_seconds: 3 }, "validation_failed"],
    [{ start_seconds: 0, end_seconds: SECONDS + 0.1 }, "validation_failed"],
    [{ start_seconds: -1, end_seconds: 3 }, "validation_failed"],
    [{ start_seconds: "0", end_seconds: 3 }, "parameter_missing"],
    [{ start_seconds: 0 }, "parameter_missing"],
    [{ ...range, title: "" }, "validation_failed"],
    [{ ...range, mode: "fast" }, "validation_failed"],
  ])("for %j", async (body, code) => {
    expectError(await createClip(app, key, parent.id, body), 422, code);
  });

  test("of another tenant's asset, of one that is not ready, and without the scope", async () => {
    const other = await app.key((await app.tenant()).id);
    expectError(await createClip(app, other, parent.id, range), 404, "not_found");
    const { asset } = await uploaded(app, key);
    expectError(await createClip(app, key, asset.id, range), 422, "asset_not_ready");
    const reader = await app.key(tenantId, ["assets:read"]);
    expectError(await createClip(app, reader, parent.id, range), 403, "forbidden_scope");
  });

  test("of media elsewhere", async () => {
    const { body } = await app.as(key).createAsset({
      tenant_id: tenantId,
      video_asset: {
        title: "Elsewhere",
        source_key: "theirs",
        provider: "external_serve",
        duration_seconds: 60,
        source_bytes: 0,
        storage_bytes: 0,
        manifest_url: "https://cdn.example.com/master.m3u8",
        playback_status: "ready",
        input_status: "uploaded",
      },
    });
    expectError(await createClip(app, key, body.asset.id, range), 422, "clip_not_possible");
  });

  test("of media in another form: byte ranges, MPEG-TS, placeholders", async () => {
    const made = await delivered(app, key, { files: await colouredFilm(), assets: { ts: {}, ranges: {} } });
    for (const { id } of Object.values(made))
      expectError(await createClip(app, key, id, range), 422, "clip_not_possible");
  });
});
