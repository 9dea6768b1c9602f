import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { encodingSpec } from "#media/encoding-spec.ts";
import { refused } from "#test/support/commands/outcome.ts";
import { descendantsOf, until, untilGone } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { binaries, complaints, fast, ffmpeg, ffprobe, picture, sound } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, run, startServer, vodbox } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

/** Encoders and servers start in these tests: ten times the duration on an idle machine. */
const LONG = { timeout: 200_000 };
const sha256 = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
const filesBelow = (folder: string): string[] =>
  existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];

/** A server behind a relay, without a worker; a key, and an environment for `vodbox push`. */
async function scene() {
  const folder = emptyFolder();
  const relay = await startRelay();
  const start = async () => {
    const server = await startServer(join(folder, "data"), { env: { VODBOX_BASE_URL: relay.base } });
    const listening = await lineOf(server, /^listening on http:\/\/127\.0\.0\.1:(\d+)$/m);
    relay.lead(Number(listening[1]));
    return server;
  };
  const server = await start();
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Push", slug: "push" });
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const key = issued.body.token;
  const cache = join(folder, "cache");
  const env = { VODBOX_SERVER: relay.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: cache };
  const encodes = join(cache, "encode");
  /** What a run leaves: state of files in progress, and media. */
  const left = () => [...filesBelow(join(cache, "push")), ...filesBelow(encodes)];
  const get = async (path: string) => (await server.call("GET", `/api/v1${path}`, { key })).body;
  return { folder, relay, server, start, env, key, encodes, left, get };
}

test(
  "a clip, a vertical one and an audio-only one are encoded locally, and play without a job; a broken file does not affect them",
  LONG,
  async () => {
    const { folder, server, env, key, left, get } = await scene();
    const [clip, upright, song, broken] = ["holiday.mp4", "upright.mp4", "song.m4a", "broken.mp4"].map((name) =>
      join(folder, name),
    ) as [string, string, string, string];
    await Promise.all([
      ffmpeg(...picture("320x180", "25", 5), ...sound(5), ...fast, "-c:a", "aac", "-shortest", clip),
      ffmpeg(...picture("180x320", "30", 3), ...fast, upright),
      ffmpeg(...sound(4), "-c:a", "aac", song),
    ]);
    writeFileSync(broken, "no video at all");
    const collection = await server
      .as(key)
      .createCollection({ tenant_id: 1, collection: { name: "Trip", slug: "trip" } });
    expect(collection.status, collection.text).toBe(201);
    const more = ["--playback-policy", "public", "--tag", "year=2026", "--collection", String(collection.body.id)];
    const ended = await run(["push", "--encode", clip, broken, upright, song, clip, ...more, "--json"], { env });
    expect(ended.code, ended.stderr).toBe(1);
    const { message } = JSON.parse(ended.stderr.trim().split("\n").at(-1) as string).error;
    expect(message).toMatch(/^1 of 4 files were not uploaded: \S+broken\.mp4: The source is not a readable media file/);
    const pushed = JSON.parse(ended.stdout);
    expect(pushed.map(({ path }: { path: string }) => path)).toEqual([clip, upright, song]);
    const shapes = [
      { title: "holiday", width: 320, height: 180, duration_seconds: expect.closeTo(5, 0) },
      { title: "upright", width: 180, height: 320, duration_seconds: expect.closeTo(3, 0) },
      { title: "song", width: null, height: null, duration_seconds: expect.closeTo(4, 0) },
    ];
    for (const [at, { asset_id, path, watch_url, external_id }] of pushed.entries()) {
      expect(watch_url).toBe(`${env.VODBOX_SERVER}/watch/${external_id}`);
      expect(await get(`/assets/${asset_id}`)).toMatchObject({
        ...shapes[at],
        playback_status: "ready",
        playback_policy: "public",
        tags: { year: "2026" },
        collection_id: collection.body.id,
        source_bytes: statSync(path).size,
        source_sha256: sha256(path),
      });
      const { url } = await get(`/assets/${asset_id}/download`);
      writeFileSync(join(folder, "back"), new Uint8Array(await (await fetch(url)).arrayBuffer()));
      expect(sha256(join(folder, "back"))).toBe(sha256(path));
      const { hls_url, dash_url, thumbnail_url, storyboard_url } = await get(`/playback/${asset_id}`);
      for (const address of [hls_url, dash_url]) {
        expect(await complaints("-i", address, "-f", "null", "-"), address).toBe("");
        const length = await ffprobe("-show_entries", "format=duration", "-of", "csv=p=0", address);
        expect(Number(length)).toBeCloseTo([5, 3, 4][at] as number, 0);
      }
      expect((await fetch(thumbnail_url)).headers.get("content-type")).toBe("image/jpeg");
      if (at === 2) expect(storyboard_url).toBeNull();
      else {
        const vtt = await (await fetch(storyboard_url)).text();
        const sheet = new URL(/^(\S+)#xywh/m.exec(vtt)?.[1] ?? "", storyboard_url);
        expect((await fetch(sheet)).status).toBe(200);
      }
    }
    expect(await get("/transcoding_jobs")).toEqual([]);
    expect(await get("/assets")).toHaveLength(3);
    expect(left()).toEqual([]);
  },
);

nightly(
  "stopped and killed during encode and upload, the same command encodes once and sends nothing twice",
  LONG,
  async () => {
    const { folder, relay, env, encodes, left, get } = await scene();
    const film = join(folder, "film.mp4");
    await ffmpeg(...picture("640x360", "30", 30), ...sound(30), ...fast, "-c:a", "aac", "-shortest", film);
    // On any machine it is still running when the signal arrives; stopping it takes longer than the interval of
    // progress lines.
    const encode = `${binaries.ffmpeg} -readrate 2 "$@"`;
    const late = `trap '(sleep 3.5; kill $encoding) &' TERM; ${encode} & encoding=$!; wait $encoding; status=$?; wait; exit $status`;
    const slow = { SIGINT: join(folder, "late"), SIGKILL: join(folder, "slow") };
    writeFileSync(slow.SIGINT, `#!/bin/sh\n${late}\n`, { mode: 0o755 });
    writeFileSync(slow.SIGKILL, `#!/bin/sh\nexec ${encode}\n`, { mode: 0o755 });
    const push = ["push", "--encode", film, "--jobs", "1", "--title", "Film"];
    const home = () => readdirSync(encodes).find((name) => /^[0-9a-f]{32}$/.test(name)) as string;
    const isEncoding = () => filesBelow(encodes).some((name) => /\/out\/.*\.m4s$/.test(name));
    for (const signal of ["SIGINT", "SIGKILL"] as const) {
      const pushing = vodbox(push, { env: { ...env, VODBOX_FFMPEG: slow[signal] } });
      await until("a first segment", isEncoding, 100_000);
      const below = descendantsOf(pushing.child.pid as number);
      expect(below.some(({ command }) => /ffmpeg/.test(command))).toBe(true);
      pushing.child.kill(signal);
      const ended = await pushing.ended;
      if (signal === "SIGINT") {
        expect(ended).toMatchObject({ code: 130, stdout: "" });
        expect(ended.stderr).toMatch(/\nvodbox: stopped; run the same command again to resume\.\n$/);
        expect(left()).toEqual([]);
      } else expect(ended.signal).toBe("SIGKILL");
      await untilGone(below);
    }
    expect(await get("/assets")).toEqual([]);

    // After the lists and the first objects, and before the source, which is sent last.
    const still = relay.holdAfter(300_000);
    const pushing = vodbox(push, { env });
    await still;
    pushing.child.kill("SIGKILL");
    expect((await pushing.ended).signal).toBe("SIGKILL");
    const made = JSON.parse(readFileSync(join(encodes, home(), "made.json"), "utf8"));
    const sizes = [...made.files.map(({ bytes }: { bytes: number }) => bytes), statSync(film).size] as number[];
    const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
    let sent = relay.sent();
    expect(sent).toBeLessThan(total);
    relay.reset();

    // A second encode would fail.
    const ended = await run([...push, "--json"], { env: { ...env, VODBOX_FFMPEG: "/bin/false" } });
    expect(ended.code, ended.stderr).toBe(0);
    sent += relay.sent();
    const requests = 4 * sizes.length;
    expect(sent).toBeGreaterThan(total);
    expect(sent).toBeLessThan(total + Math.max(...sizes) + requests * 1000);
    const [done] = JSON.parse(ended.stdout);
    const assets = await get("/assets");
    expect(assets).toMatchObject([{ id: done.asset_id, title: "Film", playback_status: "ready" }]);
    expect(await get("/transcoding_jobs")).toEqual([]);
    expect(left()).toEqual([]);
  },
);

nightly("a server that restarts during delivery is waited for", LONG, async () => {
  const { folder, relay, server, start, env, encodes, left } = await scene();
  const film = join(folder, "film.mp4");
  await ffmpeg(...picture("640x360", "30", 6), ...fast, film);
  // The folders of runs that were abandoned.
  const [old, kept] = ["0".repeat(32), "1".repeat(32)].map((name) => join(encodes, name)) as [string, string];
  for (const each of [old, kept]) mkdirSync(each, { recursive: true });
  utimesSync(old, 0, 0);
  const still = relay.holdAfter(200_000);
  const pushing = vodbox(["push", "--encode", film, "--json"], { env });
  await still;
  server.child.kill("SIGKILL");
  await server.ended;
  relay.reset();
  const again = await start();
  const ended = await pushing.ended;
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const [done] = JSON.parse(ended.stdout);
  const assets = await again.as(env.VODBOX_KEY).listAssets();
  expect(assets.body).toMatchObject([{ id: done.asset_id, playback_status: "ready" }]);
  expect(left()).toEqual(["1".repeat(32)]);
});

nightly("--watch encodes new files, once over runs, also after plain pushes", LONG, async () => {
  const { folder, env, get } = await scene();
  const inbox = emptyFolder();
  const made = join(folder, "made.mp4");
  const appear = async (name: string) => {
    await ffmpeg(...picture("160x90", "10", 1), ...fast, made);
    renameSync(made, join(inbox, name));
  };
  await appear("one.mp4");
  const plain = vodbox(["push", "--watch", inbox, "--json"], { env });
  await lineOf(plain, /one\.mp4/);
  plain.child.kill("SIGINT");
  expect(await plain.ended).toMatchObject({ code: 130 });
  writeFileSync(join(inbox, "no.mp4"), "no video");
  await appear("two.mp4");
  const watching = vodbox(["push", "--encode", "--no-source", "--watch", inbox, "--json"], { env });
  const [, two = ""] = await lineOf(watching, /^(\{.*two\.mp4.*\})$/m);
  watching.child.kill("SIGTERM");
  const ended = await watching.ended;
  expect(ended).toMatchObject({ code: 143 });
  expect(ended.stdout.trim().split("\n")).toHaveLength(1);
  expect(ended.stderr).toMatch(/vodbox: \S+no\.mp4: The source is not a readable media file/);
  const { asset_id, watch_url } = JSON.parse(two);
  expect(watch_url).toBeNull();
  expect(await get(`/assets/${asset_id}`)).toMatchObject({ title: "two", playback_status: "ready", source_key: "" });
  expect(await get("/assets")).toHaveLength(2);
});

/** A server that returns its encoding specification, and nothing else. */
async function speaking(spec: unknown): Promise<string> {
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url?.endsWith("/encoding_spec") ? spec : {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("faults are reported in one sentence, before anything is encoded", LONG, async () => {
  const { folder, server, env } = await scene();
  const clip = join(folder, "clip.mp4");
  writeFileSync(clip, "never looked at");
  const reader = await server.as({ admin: server.admin }).createApiKey({ tenant_id: 1, scopes: ["assets:read"] });
  const none = await startServer(join(folder, "none"), { env: { VODBOX_STORAGE: "none" } });
  const { admin } = none;
  await none.as({ admin }).createTenant({ name: "None", slug: "none" });
  const issued = await none.as({ admin }).createApiKey({ tenant_id: 1, scopes: ["assets:write"] });
  const changed = (part: object) => speaking({ ...encodingSpec, ...part });
  const cases: [string, 1 | 2, string[], Record<string, string>, RegExp][] = [
    [
      "another version",
      1,
      [],
      { VODBOX_SERVER: await changed({ version: 2 }) },
      /has 2 for version, which this version of vodbox does not support/,
    ],
    ["another container", 1, [], { VODBOX_SERVER: await changed({ container: "webm" }) }, /has "webm" for container/],
    [
      "a file's name that leads elsewhere",
      1,
      [],
      { VODBOX_SERVER: await changed({ thumbnail: { ...encodingSpec.thumbnail, name: "../x" } }) },
      /has "\.\.\/x" for thumbnail\.name/,
    ],
    ["another server", 1, [], { VODBOX_SERVER: await speaking("hello") }, /has "hello" for its form/],
    ["a wrong key", 1, [], { VODBOX_KEY: "svc_wrong" }, /The API key is missing, unknown, revoked or expired/],
    ["a key that may not", 1, [], { VODBOX_KEY: reader.body.token }, /The key needs the scope assets:write/],
    [
      "no storage",
      1,
      [],
      { VODBOX_SERVER: none.base, VODBOX_KEY: issued.body.token },
      /Object storage is not configured/,
    ],
    ["no ffmpeg", 1, [], { VODBOX_FFMPEG: "/nothing" }, /VODBOX_FFMPEG is \/nothing/],
    ["a file that is none", 1, [], {}, /The source is not a readable media file/],
    ["a title for two", 2, [clip, "--title", "Both"], {}, /--title requires a single file/],
  ];
  for (const [name, code, args, more, sentence] of cases)
    expect(await refused(["push", "--encode", clip, ...args], code, { env: { ...env, ...more } }), name).toMatch(
      sentence,
    );
  expect(await refused(["push", clip, "--no-source"], 2, { env })).toMatch(
    /--scratch and --no-source require --encode/,
  );
});

test("a profile determines what is encoded, its watermark and its MP4 file included", LONG, async () => {
  const { folder, server, env, key, get } = await scene();
  const clip = join(folder, "gray.mp4");
  const mark = join(folder, "mark.png");
  await ffmpeg("-f", "lavfi", "-i", "color=c=gray:s=480x270:r=25:d=2", ...fast, clip);
  await ffmpeg("-f", "lavfi", "-i", "color=c=red:s=40x20,format=rgba", "-frames:v", "1", mark);
  const ladder = [{ height: 180, max_bitrate: 300_000 }];
  const made = await server
    .as(key)
    .createEncodingProfile({ name: "own", ladder, static_mp4: true, watermark: { position: "center" } });
  expect(made.status, made.text).toBe(201);
  const early = await run(["push", "--encode", clip, "--encoding-profile", "own"], { env });
  expect(early.stderr).toContain("has a watermark without an image");
  const set = await server.call("PUT", "/api/v1/encoding_profiles/own/watermark", {
    key,
    raw: readFileSync(mark) as unknown as string,
    headers: { "content-type": "image/png" },
  });
  expect(set.status, set.text).toBe(200);
  const more = ["--encoding-profile", "own", "--playback-policy", "public", "--json"];
  const ended = await run(["push", "--encode", clip, ...more], { env });
  expect(ended.code, ended.stderr).toBe(0);
  const [{ asset_id }] = JSON.parse(ended.stdout);
  expect((await get(`/assets/${asset_id}`)).renditions).toMatchObject([{ name: "180p", codec: "h264", height: 180 }]);
  const { hls_url, mp4_url } = await get(`/playback/${asset_id}`);
  const entries = ["-show_entries", "stream=codec_name,height:format=duration", "-of", "csv=p=0"];
  expect((await ffprobe(...entries, mp4_url)).split("\n")).toEqual(["h264,180", expect.stringMatching(/^2\.0/), ""]);
  const crop = "crop=2:2,scale=1:1,format=rgb24";
  const [red = 0, green = 0] = await ffmpeg("-i", hls_url, "-vf", crop, "-frames:v", "1", "-f", "rawvideo", "-");
  expect(red - green).toBeGreaterThan(100);
});
