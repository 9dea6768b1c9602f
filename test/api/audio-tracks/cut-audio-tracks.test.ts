import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { beforeAll, expect, test } from "vitest";
import { embeddedMigrations } from "#src/lib/executable/embedded.ts";
import { assets, audioTracks } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import type { Files } from "#test/support/batches.ts";
import { clipOf, createClip, encodedAgain, film, filmAsset } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { delivered } from "#test/support/films.ts";
import { next } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { marked } from "#test/support/media/marks.ts";
import { fast, ffmpeg } from "#test/support/media/sources.ts";

/** What clips, trims and static files keep of added audio tracks: real media, so that they can be cut. */
let app: TestApp;
let key: string;
let files: Awaited<ReturnType<typeof film>>;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  key = await app.key((await app.tenant()).id);
  files = await film();
  return app.close;
});

type Track = {
  id: number;
  name: string;
  language: string;
  role: string;
  is_default: boolean;
  status: string;
  source: string;
  bytes: number;
};
const added = async (id: number): Promise<Track[]> =>
  (await app.as(key).listAudioTracks(id)).body.filter((one: Track) => one.source === "upload");
const read = async (url: string) => {
  const response = await app.opened.server.fetch(new Request(url));
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
};
const textOf = async (url: string) => (await read(url)).bytes.toString("utf8");

/** Writes what a worker writes of a track that has the audio of the film. */
async function putTrack(contract: Awaited<ReturnType<typeof next>>["body"]) {
  const mpd = Buffer.from(files["manifest.mpd"] as Uint8Array).toString("utf8");
  const at = mpd.indexOf('contentType="audio"');
  const audio = mpd.slice(mpd.lastIndexOf("<AdaptationSet", at), mpd.indexOf("</AdaptationSet>", at));
  const own = Object.entries(files).filter(([name]) => name.startsWith("audio/"));
  const all = [...own, ["manifest.mpd", Buffer.from(audio)] as const];
  const paths = all.map(([name]) => contract.outputs.prefix + name);
  const headers = { "x-svc-job-lease-token": contract.lease.token };
  const { body: signed } = await app.call("POST", contract.artifacts.sign_url, {
    ...{ worker: app.worker, headers },
    body: { paths },
  });
  for (const [index, [, raw]] of all.entries())
    await app.call("PUT", signed[index].url, { raw: raw as Uint8Array<ArrayBuffer>, headers: signed[index].headers });
}

/** An asset with a dub in German, which is its default, and a description: both have the audio of the film. */
async function dubbed() {
  const asset = await filmAsset(app, key, files, { title: "The film", playback_policy: "public" });
  for (const fields of [
    { language: "de", name: "Deutsch", role: "dub", is_default: "true" },
    { language: "en", name: "Described", role: "description", is_default: "false" },
  ]) {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.append(name, value);
    data.append("file", new Blob(["audio"]), "dub.wav");
    const { status } = await app.call("POST", `/api/v1/assets/${asset.id}/audio_tracks`, { key, raw: data });
    expect(status).toBe(201);
    const { body: contract } = await next(app);
    await putTrack(contract);
    const call = (url: string, body: unknown) =>
      app.call("POST", url, { worker: app.worker, headers: { "x-svc-job-lease-token": contract.lease.token }, body });
    const done = await call(contract.callbacks.complete_url, {});
    expect(done.status, done.text).toBe(200);
  }
  return asset;
}

const LABELS = [
  { language: "de", name: "Deutsch", role: "dub", is_default: true, status: "ready" },
  { language: "en", name: "Described", role: "description", is_default: false, status: "ready" },
];

/** The playlist of a track in the manifests of an asset: its segments, their seconds, and how far DASH moves them. */
async function playlistOf(externalId: string, name: string) {
  const master = `http://vodbox.test/media/${externalId}/master.m3u8`;
  const line = (await textOf(master)).split("\n").find((one) => one.includes(`NAME="${name}"`)) ?? "";
  const url = new URL(/URI="([^"]+)"/.exec(line)?.[1] as string, master).href;
  const playlist = await textOf(url);
  const seconds = [...playlist.matchAll(/#EXTINF:([\d.]+)/g)].reduce((sum, [, one]) => sum + Number(one), 0);
  const segments = playlist.split("\n").filter((one) => one.endsWith(".m4s"));
  const mpd = await textOf(`http://vodbox.test/media/${externalId}/manifest.mpd`);
  const set = mpd.split("<AdaptationSet").find((one) => one.includes(`<Label>${name}</Label>`)) ?? "";
  const offset =
    Number(/ presentationTimeOffset="(\d+)"/.exec(set)?.[1] ?? 0) / Number(/timescale="(\d+)"/.exec(set)?.[1]);
  const starts = [...set.matchAll(/<S t="(\d+)"/g)].map(
    ([, t]) => Number(t) / Number(/timescale="(\d+)"/.exec(set)?.[1]),
  );
  return { line, url, seconds, offset, starts, segments: segments.map((one) => new URL(one, url).href) };
}

/** The time of the first packet of a segment, in seconds of the media's clock. */
function timeOf(segment: Buffer, timescale = 48_000): number {
  const at = segment.indexOf("tfdt") + 4;
  return (segment[at] === 1 ? Number(segment.readBigUInt64BE(at + 4)) : segment.readUInt32BE(at + 4)) / timescale;
}

test("a clip keeps the tracks with label, role and default, cut to its range, also when its parent is deleted", async () => {
  const parent = await dubbed();
  const [first] = await added(parent.id);
  const exact = await createClip(app, key, parent.id, { start_seconds: 5, end_seconds: 11.5, mode: "exact" });
  expect([exact.status, await added(exact.body.id)]).toMatchObject([201, LABELS]);
  const { body: clip } = await createClip(app, key, parent.id, { start_seconds: 5, end_seconds: 11.5 });
  const tracks = await added(clip.id);
  expect(tracks).toMatchObject(LABELS);
  for (const { bytes } of tracks) expect(bytes).toBeLessThan(first?.bytes ?? 0);
  const { storage_bytes: held } = (await app.as(key).getAsset(clip.id)).body;
  expect(held).toBeGreaterThan(tracks.reduce((sum, { bytes }) => sum + bytes, 0));

  const { line, seconds, offset, starts, segments } = await playlistOf(clip.external_id, "Deutsch");
  expect(line).toContain('LANGUAGE="de",DEFAULT=YES');
  expect((await playlistOf(clip.external_id, "Described")).line).toContain("describes-video");
  expect([seconds, offset, starts[0]].map((one) => Math.round((one ?? 0) * 10) / 10)).toEqual([8, 4, 4]);
  const media = await Promise.all(segments.map(read));
  expect(media.map((one) => one.status)).toEqual(segments.map(() => 200));
  expect(timeOf(media[0]?.bytes as Buffer)).toBeCloseTo(4, 1);

  const again = await clipOf(app, key, clip.id, 4, 8);
  expect(await added(again.id)).toMatchObject(LABELS);
  expect((await playlistOf(again.external_id, "Deutsch")).offset).toBeCloseTo(8, 3);
  expect((await app.as(key).deleteAsset(parent.id)).status).toBeLessThan(300);
  expect((await read(segments[0] as string)).status).toBe(200);
});

test("a trim cuts the tracks with the video, and frees what they had before", async () => {
  const asset = await dubbed();
  const before = await added(asset.id);
  const trim = (body: Record<string, unknown>) => app.call("POST", `/api/v1/assets/${asset.id}/trim`, { key, body });
  const old = await playlistOf(asset.external_id, "Deutsch");
  const { status, body } = await trim({ start_seconds: 4, end_seconds: 12 });
  expect([status, body.duration_seconds]).toEqual([200, 8]);
  const after = await added(asset.id);
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  expect(after).toMatchObject(LABELS);
  const now = await playlistOf(asset.external_id, "Deutsch");
  expect(now.seconds).toBeCloseTo(8, 1);
  expect(now.url).not.toBe(old.url);
  for (const url of now.segments) expect((await read(url)).status).toBe(200);
  expect((await read(old.segments[0] as string)).status).toBe(404);
});

test("a static file has the track that players begin with, also an added one", async () => {
  const asset = await dubbed();
  for (const name of ["audio-only", "highest"])
    expect((await app.as(key).createStaticRendition(asset.id, { name })).status).toBeLessThan(300);
  const file = async (name: string) =>
    (await read(`http://vodbox.test/media/${asset.external_id}/static/${name}`)).bytes;
  const own = await file("audio.m4a");
  expect((await file("highest.mp4")).length).toBeGreaterThan(own.length);
  const [dub] = await added(asset.id);
  // Its own audio is the same; the file follows the track's media, which are cut by a trim.
  expect((await app.as(key).trimAsset(asset.id, { start_seconds: 0, end_seconds: 4 })).status).toBe(200);
  expect((await file("audio.m4a")).length).toBeLessThan(own.length);
  expect((await app.as(key).deleteAudioTrack(asset.id, dub?.id)).status).toBe(204);
  expect((await file("audio.m4a")).length).toBeGreaterThan(1000);
});

test("a trimmed asset that is encoded again has its tracks where they were, with silence around them", async () => {
  const asset = await dubbed();
  const trim = { start_seconds: 4, end_seconds: 12 };
  expect((await app.as(key).trimAsset(asset.id, trim)).status).toBe(200);
  const whole = await encodedAgain(app, key, asset.id, files);
  expect(await added(asset.id)).toMatchObject(LABELS);
  const rounded = async (externalId: string) => {
    const { offset, starts, seconds } = await playlistOf(externalId, "Deutsch");
    return [offset, starts[0], seconds].map((one) => Math.round((one ?? 0) * 10) / 10);
  };
  expect(await rounded(whole.external_id)).toEqual([0, 0, 18]);
  expect(await rounded((await clipOf(app, key, asset.id, 4, 8)).external_id)).toEqual([4, 4, 4]);
});

test("a new track and a trim by a job exclude each other: each would be at the times of the other's media", async () => {
  const asset = await dubbed();
  const post = (path: string, body: unknown = {}) =>
    app.call("POST", `/api/v1/assets/${asset.id}/${path}`, { key, body });
  const exact = { start_seconds: 1, end_seconds: 7, mode: "exact" };
  const add = () => {
    const data = new FormData();
    for (const [name, value] of Object.entries({ language: "fr", name: "Français" })) data.append(name, value);
    data.append("file", new Blob(["audio"]), "dub.wav");
    return app.call("POST", `/api/v1/assets/${asset.id}/audio_tracks`, { key, raw: data });
  };
  const fail = async (capabilities: Record<string, number>) => {
    let { body: contract } = await next(app, undefined, { capabilities });
    // Another test left the job of a clip.
    if (contract.job.asset_id !== asset.id) ({ body: contract } = await next(app, undefined, { capabilities }));
    const headers = { "x-svc-job-lease-token": contract.lease.token };
    const body = { code: "encode_failed", message: "No.", retryable: false };
    const failed = await app.call("POST", contract.callbacks.fail_url, { worker: app.worker, headers, body });
    expect(failed.status, failed.text).toBe(200);
    return contract.job.id;
  };
  expect((await post("trim", exact)).status).toBe(202);
  expectError(await add(), 409, "asset_conflict");
  const job = await fail({ clips: 2 });
  expect((await add()).status).toBe(201);
  expectError(await post("retry"), 409, "asset_conflict");
  const retried = await app.as({ admin: app.admin }).retryJob(job);
  expectError(retried, 409, "job_conflict");
  expectError(await post("trim", exact), 422, "clip_not_possible");
  await fail({});
  expect((await post("retry")).status).toBe(200);
  expectError(await add(), 409, "asset_conflict");
});

/** Adds a track, which a worker encodes with the audio of the film, up to its completion. */
async function encodedTrack(id: number) {
  const data = new FormData();
  for (const [name, value] of Object.entries({ language: "fr", name: "Français" })) data.append(name, value);
  data.append("file", new Blob(["audio"]), "dub.wav");
  expect((await app.call("POST", `/api/v1/assets/${id}/audio_tracks`, { key, raw: data })).status).toBe(201);
  return nextTrack(id);
}

async function nextTrack(id: number) {
  let { body: contract } = await next(app);
  while (contract.job.asset_id !== id) ({ body: contract } = await next(app));
  return contract;
}

test("a worker that waits no longer does not end the work that completes its track", async () => {
  const asset = await filmAsset(app, key, files);
  const contract = await encodedTrack(asset.id);
  await putTrack(contract);
  const { app: server } = app.opened;
  await server.write((tx) => tx.update(assets).set({ durationSeconds: 30 }).where(eq(assets.id, asset.id)));
  const objects = server.objects as ObjectStore;
  const gone = new AbortController();
  const { list } = objects;
  objects.list = (...args) => {
    objects.list = list;
    gone.abort();
    return list.apply(objects, args);
  };
  const headers = { "x-svc-job-lease-token": contract.lease.token };
  const url = contract.callbacks.complete_url;
  app.call("POST", url, { worker: app.worker, headers, body: {}, signal: gone.signal }).catch(() => {});
  await expect
    .poll(async () => (await added(asset.id)).map(({ status }) => status), { timeout: 30_000 })
    .toEqual(["ready"]);
  expect(gone.signal.aborted).toBe(true);
});

test("a track that an older server queued for a clip is encoded again, at the times of the clip", async () => {
  const parent = await filmAsset(app, key, files);
  const clip = await clipOf(app, key, parent.id, 4, 12);
  const contract = await encodedTrack(clip.id);
  const [track] = await added(clip.id);
  const { app: server } = app.opened;
  await server.write((tx) =>
    tx
      .update(audioTracks)
      .set({ startSeconds: 0 })
      .where(eq(audioTracks.id, track?.id ?? 0)),
  );
  await putTrack(contract);
  const headers = { "x-svc-job-lease-token": contract.lease.token };
  const done = await app.call("POST", contract.callbacks.complete_url, { worker: app.worker, headers, body: {} });
  expect([done.status, done.body.status]).toEqual([200, "processing"]);
  const again = await nextTrack(clip.id);
  expect([again.encoding_spec.audio.start_seconds, again.job.attempt]).toEqual([4, 1]);
});

test("a migration lets tracks begin where they did next to media that are not those of a clip", async () => {
  const parent = await dubbed();
  const clip = await clipOf(app, key, parent.id, 4, 12);
  const { app: server } = app.opened;
  const rows = async (id: number) => server.db.select().from(audioTracks).where(eq(audioTracks.assetId, id)).all();
  const before = await rows(parent.id);
  const ofClip = await rows(clip.id);
  expect(ofClip.map((row) => row.media?.startSeconds)).toContain(4);
  const migration = embeddedMigrations().find(({ name }) => name.startsWith("0090"))?.sql ?? "";
  await server.write(async (tx) => {
    for (const { id, media } of before)
      if (media)
        await tx
          .update(audioTracks)
          .set({ media: { ...media, startSeconds: 4 } })
          .where(eq(audioTracks.id, id));
  });
  for (let times = 0; times < 2; times++) await server.write((tx) => tx.run(sql.raw(migration)));
  expect(await rows(parent.id)).toEqual(before);
  expect(await rows(clip.id)).toEqual(ofClip);
});

test("a trim at once keeps whole segments, and with these what a track has in them", async () => {
  const asset = await dubbed();
  const { app: server } = app.opened;
  await server.write(async (tx) => {
    for (const { id, media } of await tx.select().from(audioTracks).where(eq(audioTracks.assetId, asset.id)).all())
      if (media)
        await tx
          .update(audioTracks)
          .set({ media: { ...media, segments: [[0, media.timescale, 0]] } })
          .where(eq(audioTracks.id, id));
  });
  const trim = (start_seconds: number, end_seconds: number) =>
    app.as(key).trimAsset(asset.id, { start_seconds, end_seconds });
  expectError(await trim(9, 11), 422, "clip_not_possible");
  expect((await trim(2, 3)).status).toBe(200);
});

test("a join has one track of each language and role, and begins with none that is silent in a part", async () => {
  const [first, second] = [await dubbed(), await dubbed()];
  const [dub, described] = await added(second.id);
  await app.as(key).updateAudioTrack(second.id, dub?.id, { name: "German" });
  const join = (...asset_ids: number[]) => app.as(key).joinAssets({ asset_ids });
  const { status, body, text } = await join(first.id, second.id);
  expect([status, await added(body.id)], text).toMatchObject([201, LABELS]);
  const bytes = (await added(first.id)).reduce((sum, one) => sum + one.bytes, 0);
  const joined = (await added(body.id)).reduce((sum, one) => sum + one.bytes, 0);
  expect(Math.abs(joined / bytes - 2)).toBeLessThan(0.1);
  expect((await app.as(key).getAsset(body.id)).body.storage_bytes).toBe(joined);

  // Another role, another language, and none.
  await app.as(key).updateAudioTrack(second.id, dub?.id, { role: "commentary" });
  await app.as(key).updateAudioTrack(second.id, described?.id, { language: "fr" });
  const plain = await filmAsset(app, key, files);
  const mixed = await join(plain.id, first.id, second.id);
  const labels = (await added(mixed.body.id)).map(({ name, role, language, is_default }) => [
    ...[name, role, language, is_default],
  ]);
  expect(labels).toEqual([
    ["Deutsch", "dub", "de", true],
    ["Described", "description", "en", false],
    ["German", "commentary", "de", false],
    ["Described", "description", "fr", false],
  ]);
  const before = await join(first.id, plain.id);
  expect((await added(before.body.id)).map(({ name }) => name)).toEqual(["Deutsch", "Described"]);
  const { line } = await playlistOf(first.external_id, "Deutsch");
  expect(line).toContain("DEFAULT=YES");
});

/** Media of the film without its first segment. */
function laterFilm(): Files {
  const later = Object.entries(files).map(([name, bytes]): [string, Uint8Array] => {
    if (!name.endsWith(".m3u8")) return [name, bytes as Uint8Array];
    const text = Buffer.from(bytes as Uint8Array).toString("utf8");
    const without = text.replace(/#EXTINF:[^\n]*\n00001\.m4s\n/, "").replace(/#EXT-X-I-FRAME-STREAM-INF:.*\n/g, "");
    return [name, new Uint8Array(Buffer.from(without))];
  });
  return Object.fromEntries(later.map(([name, bytes]) => [`fmp4/${name}`, bytes]));
}

/** Transport streams of two seconds, whose times begin where ffmpeg lets them begin. */
async function transportStream(): Promise<Files> {
  const folder = emptyFolder();
  const source = join(folder, "source.mp4");
  await ffmpeg(...marked("64x36", 25, 2), ...fast, source);
  const hls = ["-c", "copy", "-f", "hls", "-hls_time", "1", "-hls_playlist_type", "vod"];
  await ffmpeg("-i", source, ...hls, join(folder, "low.m3u8"));
  rmSync(source);
  const variant = `BANDWIDTH=90000,RESOLUTION=64x36,CODECS="avc1.64001e"`;
  const master = Buffer.from(`#EXTM3U\n#EXT-X-STREAM-INF:${variant}\nlow.m3u8\n`);
  const written = readdirSync(folder).map((name) => [`ts/${name}`, new Uint8Array(readFileSync(join(folder, name)))]);
  return { ...Object.fromEntries(written), "ts/master.m3u8": new Uint8Array(master) };
}

test("media that a client packaged may begin at any time: a track is encoded for that", async () => {
  const packaged = { ...laterFilm(), ...(await transportStream()) };
  const both = await delivered(app, key, { files: packaged, assets: { fmp4: {}, ts: {} } });
  for (const [asset, start] of [
    [both.fmp4, 4],
    [both.ts, 1.4],
  ] as const) {
    const data = new FormData();
    for (const [name, value] of Object.entries({ language: "fr", name: "Français" })) data.append(name, value);
    data.append("file", new Blob(["audio"]), "dub.wav");
    expect((await app.call("POST", `/api/v1/assets/${asset.id}/audio_tracks`, { key, raw: data })).status).toBe(201);
    let { body: contract } = await next(app);
    while (contract.job.asset_id !== asset.id) ({ body: contract } = await next(app));
    expect(contract.encoding_spec.audio.start_seconds).toBeCloseTo(start, 1);
  }
});
