import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { references } from "#src/lib/manifests/references.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { type Files, JPEG, leased, realFilm, tiny, tinyAsset } from "#test/support/batches.ts";
import { checkup } from "#test/support/doctor.ts";
import { expectError } from "#test/support/error.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints } from "#test/support/media/sources.ts";

const begun = async (flags: Record<string, unknown> = {}) => {
  const app = await testApp({ rate_limit_uploads: "100000/60", ...flags });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  return { app, tenant, key };
};
const objects = async (app: TestApp) => (await app.opened.app.objects?.list(""))?.objects.map(({ key }) => key) ?? [];
const types = async (app: TestApp) => (await app.newEvents()).map(({ type }) => type);

async function state(app: TestApp): Promise<string> {
  const { db, objects: store } = app.opened.app;
  const names = await db.all<{ name: string }>(sql`select name from sqlite_schema where type = 'table' order by name`);
  const rows = await Promise.all(names.map(({ name }) => db.all(sql.raw(`select * from "${name}"`))));
  return JSON.stringify([rows, await store?.list("")]);
}

/** Fetches everything that a master playlist refers to, as a player does, and decodes the files with ffmpeg. */
async function played(app: TestApp, hlsUrl: string): Promise<string> {
  const folder = emptyFolder();
  const todo = [hlsUrl];
  const seen = new Map<string, string>();
  for (const url of todo) {
    if (seen.has(url)) continue;
    const response = await app.opened.server.fetch(new Request(url));
    expect(response.status, url).toBe(200);
    const bytes = new Uint8Array(await response.arrayBuffer());
    // As in the URL: ffmpeg does not decode escapes in a file name.
    const name = new URL(url).pathname.replace(/^\/media\/[^/]+\//, "");
    seen.set(url, name);
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), bytes);
    if (url.split("?")[0]?.endsWith(".m3u8"))
      for (const uri of references(Buffer.from(bytes).toString())) todo.push(new URL(uri, url).href);
  }
  const [master] = seen.values();
  const said = await complaints("-i", join(folder, master as string), "-f", "null", "-");
  // It does not support HLS subtitles yet, and warns.
  return said.replaceAll(/^.*Can't support the subtitle.*\n*/gm, "");
}

test("cues of its subtitles that are left out are in their warnings", async () => {
  const { app, key } = await begun();
  const { putAll, commit } = await leased(app, key);
  const cue = (times: string) => `${times}\nHello\n\n`;
  await putAll({
    ...tiny(),
    "en.srt": cue("00:00:00,000 --> 00:00:00,000") + cue("00:00:01,000 --> 00:00:02,000"),
    "de.vtt": `WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\n${cue("00:01.000 --> 00:02.000")}`,
  });
  const subtitles = [
    { language: "en", label: "English", path: "en.srt" },
    { language: "de", label: "Deutsch", path: "de.vtt", position: 1 },
  ];
  const done = await commit({ assets: [tinyAsset("", { subtitles })] });
  expect(done.status, done.text).toBe(200);
  const { body } = await app.as(key).listSubtitles(done.body.assets[0].id, { include: "content" });
  const warnings = [{ code: "cues_skipped", count: 1, message: expect.stringMatching(/without duration \(line 1\)/) }];
  expect(body).toMatchObject([
    { language: "en", warnings, content: "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nHello\n" },
    { language: "de", warnings: [], content: "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n\n" },
  ]);
});

test("a film that a client encoded plays, and leaves nothing when it is deleted", async () => {
  const { app, tenant, key } = await begun();
  const film = await realFilm();
  const { batch, path, putAll, preview, commit, ask } = await leased(app, key, { name: "Holidays" });
  expect(batch).toMatchObject({ status: "open", name: "Holidays", storage: { provider: "local" } });
  const files: Files = {
    ...Object.fromEntries(Object.entries(film.files).map(([name, bytes]) => [`film one/${name}`, bytes])),
    "subs/en.srt": "1\n00:00:00,000 --> 00:00:02,000\nHello\n",
    "source.mp4": film.source,
    "unused.txt": "unused",
  };
  await putAll(files);
  const manifest = {
    assets: [
      tinyAsset("", {
        title: "A film",
        duration_seconds: 5,
        external_id: "film-1",
        source_key: "source.mp4",
        hls: { manifest_path: "film one/master.m3u8", renditions: [] },
        dash: { manifest_path: "film one/manifest.mpd" },
        thumbnail_path: "film one/thumbnail.jpg",
        subtitles: [{ language: "EN", label: "English", path: "subs/en.srt", is_default: true }],
        tracks: [{ kind: "chapter", cues: [{ start_ms: 0, payload: { title: "One" } }] }],
        tags: { place: "Rome" },
      }),
    ],
  };
  const before = await state(app);
  expect((await preview(manifest)).body).toMatchObject({ valid: true, errors: [], assets: [{ valid: true }] });
  expect(await state(app)).toBe(before);
  expect(await types(app)).toEqual([]);

  const done = await commit(manifest);
  expect(done.status, done.text).toBe(200);
  const [asset] = done.body.assets;
  expect(done.body).toMatchObject({ id: batch.id, status: "committed" });
  expect(asset).toMatchObject({
    title: "A film",
    external_id: "film-1",
    input_status: "uploaded",
    playback_status: "ready",
    progress: 100,
    width: 320,
    height: 180,
    tags: { place: "Rome" },
    source_bytes: film.source.length,
    collection_id: null,
  });
  expect(await app.newEvents()).toMatchObject([
    { type: "video.asset.ready", data: { asset_id: String(asset.id), playback_status: "ready" } },
    { type: "video.subtitle.ready", data: { language: "en", source: "upload" } },
    { type: "video.track.ready", data: { kind: "chapter" } },
  ]);
  const again = await commit(manifest);
  expect([again.status, again.text]).toEqual([200, done.text]);
  expectError(await commit({ assets: [{ ...manifest.assets[0], title: "Another" }] }), 409, "batch_conflict");
  expectError(await ask("POST", "/cancel"), 409, "batch_conflict");
  expectError(await ask("POST", "/uploads", { body: { object_key: "x", bytes_expected: 1 } }), 409, "batch_conflict");
  expect(await types(app)).toEqual([]);
  // The batch is empty, and the asset counts what is in storage.
  expect((await objects(app)).filter((name) => name.includes("/ingest/"))).toEqual([]);
  const held = (await app.opened.app.objects?.list(""))?.objects ?? [];
  expect(asset.storage_bytes).toBe(held.reduce((sum, { bytes }) => sum + bytes, 0));
  const [usage] = (await app.as(key).listTenants()).body;
  // Its tags and cues are in the database.
  const texts = sql`SELECT (SELECT octet_length(tags) FROM assets) + (SELECT coalesce(sum(octet_length(cues)), 0) FROM tracks) AS bytes`;
  const [{ bytes }] = (await app.opened.app.db.all(texts)) as [{ bytes: number }];
  expect(usage.storage_bytes).toBe(asset.storage_bytes + bytes);

  const { body: playback } = await app.as(key).getPlayback(asset.id);
  expect(await played(app, playback.hls_url)).toBe("");
  for (const url of [playback.dash_url, playback.thumbnail_url, playback.subtitles[0].url])
    expect((await app.opened.server.fetch(new Request(url))).status, url).toBe(200);
  const mpd = await (await app.opened.server.fetch(new Request(playback.dash_url))).text();
  const base = /<BaseURL>([^<]*)/.exec(mpd)?.[1] as string;
  const template = /initialization="([^"]*)"/.exec(mpd)?.[1] as string;
  const representation = /<Representation id="([^"]*)"/.exec(mpd)?.[1] as string;
  const init = new URL(base + template.replace("$RepresentationID$", representation), playback.dash_url);
  expect((await app.opened.server.fetch(new Request(init))).status, init.href).toBe(200);
  const download = await app.as(key).getDownload(asset.id);
  expect((await app.call("GET", download.body.url)).status).toBe(200);
  const graph = (await app.as(key).exportGraph()).body.assets[0];
  expect(graph.hls.renditions[0]).toMatchObject({ width: 320, height: 180 });
  expect(graph.hls.renditions[0].playlist_path.startsWith(asset.manifest_path.replace("master.m3u8", ""))).toBe(true);
  const looked = await checkup(app);
  expect(looked.findings.filter(({ ok }) => !ok)).toEqual([]);
  expect(looked.findings.map(({ check }) => check)).toEqual(expect.arrayContaining(["missing", "unreferenced"]));

  app.advance(24 * 3_600_000 + 1);
  await app.runTask("sweep-objects");
  await app.runTask("sweep-batches");
  expect(await played(app, (await app.as(key).getPlayback(asset.id)).body.hls_url)).toBe("");
  expect((await app.call("GET", path, { key })).body.status).toBe("committed");
  expect((await app.call("GET", `${path}/uploads`, { key })).body).toEqual([]);
  expectError(await ask("GET", ""), 401, "unauthorized", "a day after its end the token is over");
  expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  expect(await objects(app)).toEqual([]);
  expect((await app.as(key).listTenants()).body[0]).toMatchObject({
    id: tenant.id,
    storage_bytes: 0,
  });
});

test("assets that share files have their own copies", async () => {
  const { app, key } = await begun();
  const { putAll, commit } = await leased(app, key);
  await putAll({ ...tiny("a/"), "poster.jpg": JPEG });
  const asset = (title: string) => tinyAsset("a/", { title, thumbnail_path: "poster.jpg", playback_policy: "public" });
  const { body } = await commit({ assets: [asset("One"), asset("Two")] });
  const [one, two] = body.assets;
  await app.as(key).deleteAsset(one.id);
  const get = async (file: string) =>
    (await app.opened.server.fetch(new Request(`http://vodbox.test/media/${two.external_id}/${file}`))).status;
  const version = two.manifest_path.split("/")[3];
  for (const file of ["master.m3u8", "thumbnail.jpg", `${version}/a/low/1.m4s`])
    expect(await get(file), file).toBe(200);
  await app.as(key).deleteAsset(two.id);
  expect(await objects(app)).toEqual([]);
});

test("a PUT to the URL of a committed batch is 409", async () => {
  const { app, key } = await begun();
  const { putAll, commit, want } = await leased(app, key);
  const { body: kept } = await want("late.bin", "late");
  await putAll(tiny());
  await commit({ assets: [tinyAsset()] });
  const late = await app.call("PUT", kept.upload_url, { raw: "late", headers: kept.upload_headers });
  expectError(late, 409, "batch_conflict");
});

test("the token of one asset covers no other asset of its batch, and no source", async () => {
  const { app, key } = await begun();
  const { putAll, commit } = await leased(app, key);
  await putAll({ ...tiny("a/"), ...tiny("b/"), "a/source.mp4": "the source" });
  const { body } = await commit({ assets: [tinyAsset("a/", { source_key: "a/source.mp4" }), tinyAsset("b/")] });
  const [asset] = body.assets;
  const { body: playback } = await app.as(key).getPlayback(asset.id);
  const version = asset.manifest_path.split("/")[3];
  const status = async (file: string) =>
    (await app.opened.server.fetch(new Request(new URL(`~${playback.token}/${version}/${file}`, playback.hls_url))))
      .status;
  expect([await status("a/low/1.m4s"), await status("b/low/1.m4s"), await status("a/source.mp4")]).toEqual([
    200, 404, 404,
  ]);
});

test("ten concurrent commits create one set of assets and return one response", async () => {
  const { app, key } = await begun();
  const { putAll, commit } = await leased(app, key);
  await putAll(tiny());
  const answers = await Promise.all(Array.from({ length: 10 }, () => commit({ assets: [tinyAsset()] })));
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(answers[0]?.status).toBe(200);
  expect((await app.as(key).listAssets()).body).toHaveLength(1);
  expect(await types(app)).toEqual(["video.asset.ready"]);
});

test("an object that differs from its announcement prevents the commit of a manifest", async () => {
  const { app, key } = await begun();
  const { putAll, put, ask, commit, want } = await leased(app, key);
  await putAll(tiny());
  const { body: batchUpload } = await want("low/3.m4s", "twelve bytes");
  const digest = createHash("sha256").update("x").digest("hex");
  const replaced = await want("low/3.m4s", "twelve bytes", { sha256: digest });
  expect([replaced.status, replaced.body.id === batchUpload.id]).toEqual([201, false]);
  expectError(
    await ask("POST", `/uploads/${batchUpload.id}/complete`, { body: { bytes_received: 12 } }),
    409,
    "upload_conflict",
  );
  await put("low/3.m4s", "another size");
  const before = await state(app);
  const refused = await commit({ assets: [tinyAsset("", { thumbnail_path: "low/1.m4s" }), tinyAsset("none/")] });
  expectError(refused, 422, "invalid_manifest");
  expect(refused.body.details).toMatchObject({
    "assets[0].thumbnail_path": [expect.stringContaining("thumbnail_malformed")],
    "assets[1].hls.manifest_path": [expect.stringContaining("object_missing")],
  });
  expect(await state(app)).toBe(before);
  expect(await types(app)).toEqual([]);
});
