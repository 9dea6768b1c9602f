import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { CAPTION } from "#test/support/import/library.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { png } from "#test/support/png.ts";
import { lineOf, run, startServer, tenantKey, vodbox } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

/** A server with a worker behind a relay, a key of a tenant, and a directory of videos. */
async function scene() {
  const cwd = emptyFolder();
  const relay = await startRelay();
  const server = await startServer(join(cwd, "data"), {
    args: ["--workers", "1"],
    env: { VODBOX_BASE_URL: relay.base },
  });
  const listening = await lineOf(server, /^listening on http:\/\/127\.0\.0\.1:(\d+)$/m);
  relay.lead(Number(listening[1]));
  const key = await tenantKey(server);
  const env = { VODBOX_SERVER: relay.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(cwd, "cache") };
  const videos = join(cwd, "videos");
  mkdirSync(join(videos, "trip"), { recursive: true });
  await ffmpeg(...picture("64x36", "5", 2), ...sound(2), ...fast, "-c:a", "aac", join(videos, "film.mp4"));
  cpSync(join(videos, "film.mp4"), join(videos, "trip", "day 1.mp4"));
  writeFileSync(join(videos, "film.en.vtt"), CAPTION);
  writeFileSync(join(videos, "film.nonsense-language.vtt"), CAPTION);
  writeFileSync(join(videos, "film.jpg"), png(64, 36));
  const metadata = {
    title: "The film",
    tags: { year: 2020 },
    chapters: [{ title: "One", start: 0 }],
    privacy: "public",
    duration: 2,
  };
  writeFileSync(join(videos, "film.json"), JSON.stringify(metadata));
  // It lasts two seconds.
  writeFileSync(join(videos, "trip", "day 1.json"), JSON.stringify({ duration: 60 }));
  const call = ["import", "folder", videos];
  const assets = async () => (await server.as(key).listAssets({ sort: "oldest" })).body;
  return { cwd, server, relay, env, key, videos, call, assets };
}

test("a dry run says how many videos have no known length, and which settings of a bucket are missing", async () => {
  const { cwd, env, videos, call } = await scene();
  writeFileSync(join(videos, "unknown.mp4"), "no side-car file says how long it is");
  const { stdout } = await run([...call, "--dry-run"], { env, cwd });
  expect(stdout).toMatch(/3 of 3 videos to import: .+, 1\.0 minutes and 1 videos of unknown length\.\n$/);
  const bucket = await run(["import", "s3", "s3://bucket/videos"], { env, cwd });
  expect(bucket).toMatchObject({ code: 2, stderr: expect.stringMatching(/ to import from the bucket\.\n$/) });
});

test("a directory is imported and verified, after SIGKILL, once", { timeout: 120_000 }, async () => {
  const { cwd, server, relay, env, key, videos, call, assets } = await scene();
  const planned = JSON.parse((await run([...call, "--dry-run", "--json"], { env, cwd })).stdout);
  expect(planned).toMatchObject({
    videos: 2,
    to_import: 2,
    unknown_bytes: 0,
    seconds: 62,
    unknown_seconds: 0,
    with_problems: 0,
    error: null,
  });
  expect(planned.items.find(({ source_id }: any) => source_id === "film.mp4")).toMatchObject({
    title: "The film",
    captions: 2,
    chapters: 1,
  });
  expect(await assets()).toEqual([]);

  const still = relay.holdAfter(8000);
  const first = vodbox(call, { env, cwd });
  await still;
  first.child.kill("SIGKILL");
  await first.ended;
  relay.reset();
  const { code, stdout, stderr } = await run([...call, "--json", "--redirects", "nginx"], { env, cwd });
  expect(code, stderr).toBe(1);
  const report = JSON.parse(stdout);
  expect(report.failures.map(({ source_id, reason }: any) => [source_id, reason]).sort()).toEqual([
    ["film.mp4", expect.stringMatching(/^captions nonsense-language: .*BCP 47/)],
    ["trip/day 1.mp4", expect.stringMatching(/^the asset lasts 2\.?\d* s, the video 60 s$/)],
  ]);
  const all = await assets();
  expect(all.map(({ tags }) => tags.source_id).sort()).toEqual(["film.mp4", "trip/day 1.mp4"]);
  const film = all.find(({ tags }) => tags.source_id === "film.mp4");
  expect(film).toMatchObject({
    title: "The film",
    playback_policy: "public",
    playback_status: "ready",
    tags: { year: 2020 },
    poster_path: expect.any(String),
  });
  const { body: subtitles } = await server.as(key).listSubtitles(film?.id);
  expect(subtitles.map(({ language }) => language)).toEqual(["en"]);
  expect(readFileSync(join(cwd, "vodbox-import-folder-redirects.nginx.conf"), "utf8")).toContain(
    `"/film.mp4" "${relay.base}/watch/${film?.external_id}";`,
  );

  // What was faulty is tried again; nothing is sent twice.
  rmSync(join(videos, "film.nonsense-language.vtt"));
  writeFileSync(join(videos, "trip", "day 1.json"), "{}");
  relay.reset();
  const second = await run([...call, "--json"], { env, cwd });
  expect(second.code, second.stderr).toBe(0);
  expect(JSON.parse(second.stdout)).toMatchObject({ imported: 2, unchanged: 0, failed: 0 });
  const third = await run(call, { env, cwd });
  expect(third.stdout).toMatch(/^0 imported, 2 unchanged, 0 with problems, of 2 videos/m);
  expect(relay.sent()).toBeLessThan(20_000);
  // Another file under the same name is neither a duplicate nor ignored.
  writeFileSync(join(videos, "film.mp4"), "other");
  const changed = await run(call, { env, cwd });
  expect([changed.code, changed.stdout]).toEqual([
    1,
    expect.stringContaining("another file has been imported under this id"),
  ]);
  expect(await assets()).toHaveLength(2);
});

test("faults are reported in one sentence that names what to set", async () => {
  const cwd = emptyFolder();
  const cases: [args: string[], env: Record<string, string>, code: 1 | 2, sentence: RegExp][] = [
    [["mux"], {}, 2, /Set MUX_TOKEN_ID and MUX_TOKEN_SECRET in the environment/],
    [["youtube"], {}, 2, /There is no importer for youtube; use mux, cloudflare/],
    [["folder", "none"], {}, 1, /cannot be read \(ENOENT\)/],
    [["s3", "bucket"], { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" }, 2, /s3:\/\/BUCKET/],
    [["vimeo"], { VIMEO_ACCESS_TOKEN: "x", VODBOX_IMPORT_API_URL: "nowhere" }, 2, /VODBOX_IMPORT_API_URL is not a URL/],
  ];
  for (const [args, env, code, sentence] of cases)
    expect(await refused(["import", ...args], code, { env, cwd })).toMatch(sentence);
});
