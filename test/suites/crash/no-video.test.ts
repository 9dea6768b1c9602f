import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rowsOf, type Uploaded, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";

test("a source that is not a video: errored with the reason, failed once, and the worker continues", async () => {
  const dataDir = emptyFolder();
  const folder = emptyFolder();
  const path = (name: string) => join(folder, name);
  const clip = path("clip.mp4");
  await ffmpeg(...picture("160x90", "25", 2), ...fast, clip);
  writeFileSync(path("text.mp4"), "This is a letter, and no video at all.\n".repeat(200));
  writeFileSync(path("zeros.mp4"), Buffer.alloc(100_000));
  writeFileSync(path("list.mp4"), "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n");
  // The index of an MP4 is at its end: without it the file cannot be played.
  writeFileSync(path("torn.mp4"), execFileSync("head", ["-c", "3000", clip]));
  const sources = ["text.mp4", "zeros.mp4", "list.mp4", "torn.mp4"];

  const server = await startServer(dataDir, {
    args: ["--workers", "1"],
    env: { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" },
  });
  const made: Uploaded[] = [];
  for (const name of sources) made.push(await uploadClip(server, path(name), name.replace(".", "-")));
  const good = await uploadClip(server, clip, "good");
  const asset = async (one: Uploaded) => (await server.as(one.key).getAsset(one.asset.id)).body;
  await until("the good one behind them is ready", async () => (await asset(good)).playback_status === "ready");
  for (const [index, one] of made.entries()) {
    const { playback_status, error, input_status } = await asset(one);
    expect([playback_status, input_status], sources[index]).toEqual(["errored", "uploaded"]);
    expect(error.code, sources[index]).toMatch(/^input_/);
    expect(error.message, sources[index]).toMatch(/^[A-Z][^/]{10,200}\.$/);
    const playback = await server.as(one.key).getPlayback(one.asset.id);
    expect([playback.status, playback.error.code]).toEqual([422, "asset_not_ready"]);
  }
  await stopCleanly(server);
  const { jobs, attempts, events } = rowsOf(dataDir);
  expect(jobs.map((job) => [job.status, job.failures])).toEqual([...made.map(() => ["failed", 1]), ["completed", 0]]);
  expect(attempts.map((row) => row.outcome)).toEqual([...made.map(() => "failed"), "completed"]);
  for (const one of made) {
    const told = events.filter((event) => event.data.asset_id === String(one.asset.id));
    expect(told.map((event) => event.type)).toEqual([
      "video.upload.completed",
      "video.job.queued",
      "video.job.started",
      "video.job.failed",
      "video.asset.errored",
    ]);
    expect(told[3]?.data).toMatchObject({ will_retry: false, attempt: 1 });
  }
});
