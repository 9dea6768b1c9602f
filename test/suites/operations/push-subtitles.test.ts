import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { run, startServer, tenantKey } from "#test/support/process.ts";

test("push --encode takes text tracks with it, and says which it does not", { timeout: 200_000 }, async () => {
  const folder = emptyFolder();
  const server = await startServer(join(folder, "data"), { args: ["--workers", "0"] });
  const key = await tenantKey(server);
  const env = { VODBOX_SERVER: server.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(folder, "cache") };
  const path = join(folder, "source.mkv");
  writeFileSync(join(folder, "a.srt"), "1\n00:00:01,000 --> 00:00:02,000\nHello\n");
  const inputs = [...picture("64x36", "5", 3), ...sound(3), "-i", join(folder, "a.srt")];
  const maps = ["-map", "0", "-map", "1", "-map", "2", "-map", "2", "-map", "2"];
  const flags = [
    ...["-metadata:s:s:0", "language=eng", "-metadata:s:s:0", "title=Full"],
    ...["-metadata:s:s:1", "language=ger"],
    ...["-metadata:s:s:2", "language=ger", "-disposition:s:2", "forced"],
  ];
  await ffmpeg(...inputs, ...maps, ...fast, "-c:a", "aac", "-c:s", "copy", ...flags, path);
  const { code, stdout, stderr } = await run(["push", path, "--encode", "--json"], { env });
  expect(code, stderr).toBe(0);
  const [{ asset_id, warnings }] = JSON.parse(stdout);
  const message = "Track 5 (subtitles, S_TEXT/UTF8) is forced or not the first of its language and was left out.";
  expect(warnings).toEqual([{ code: "track_skipped", message }]);
  const { body } = await server.as(key).listSubtitles(asset_id, { include: "content" });
  const content = expect.stringMatching(/^WEBVTT\n\n00:00:01\.0\d\d --> 00:00:02\.0\d\d\nHello\n$/);
  expect(body).toMatchObject([
    { language: "en", label: "Full", status: "ready", is_default: false, content },
    { language: "de", label: "Deutsch", status: "ready", content },
  ]);
});
