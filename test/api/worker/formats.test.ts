import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startWorker } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { startServer, tenantKey } from "#test/support/process.ts";

const tta = { code: "track_skipped", message: "Track 3 (audio, tta) cannot be decoded and was left out." };

test("a worker leaves out what it cannot decode, in one run and in parts, and names what is not supported", async () => {
  const folder = emptyFolder();
  const made = async (name: string, ...args: string[]) => {
    await ffmpeg(...args, join(folder, name));
    return readFileSync(join(folder, name));
  };
  const tracks = ["-map", "0", "-map", "1", "-map", "1", ...fast, "-g", "5", "-c:a:0", "aac", "-c:a:1", "tta"];
  const sources = {
    short: await made("short.mkv", ...picture("64x36", "5", 2), ...sound(2), ...tracks),
    long: await made("long.mkv", ...picture("64x36", "5", 22), ...sound(22), ...tracks),
    image: await made("image.png", ...picture("64x36", "5", 1), "-frames:v", "1"),
    unknown: await made("unknown.mkv", ...picture("64x36", "5", 1), ...sound(1), "-c:v", "zmbv", "-c:a", "tta"),
    torn: readFileSync(join(folder, "short.mkv")).subarray(0, 200),
  };
  for (const sharesDisk of [true, false]) {
    const env = { VODBOX_CHUNK_SECONDS: "8" };
    const server = await startServer(emptyFolder(), { args: ["--workers", sharesDisk ? "1" : "0"], env });
    if (!sharesDisk) startWorker(server, emptyFolder());
    const key = await tenantKey(server, ["assets:read", "assets:write"]);
    const ended = async (bytes: Uint8Array) => {
      const { asset, job } = await uploaded(server, key, { bytes });
      const get = async (path: string) => (await server.call("GET", `/api/v1/${path}`, { key })).body;
      const body = await until("the job has ended", async () => {
        const found = await get(`assets/${asset.id}`);
        return ["ready", "errored"].includes(found.playback_status) ? found : null;
      });
      return { asset: body, job: await get(`transcoding_jobs/${job.id}`) };
    };
    expect((await ended(sources.short)).asset).toMatchObject({ playback_status: "ready", warnings: [tta] });
    const long = await ended(sources.long);
    expect(long.asset).toMatchObject({ playback_status: "ready", error: null, warnings: [tta] });
    expect(long.job).toMatchObject({ uncuttable: null, tasks: { failed: 0 } });
    expect((await ended(sources.image)).asset).toMatchObject({
      error: { code: "unsupported_format", message: expect.stringContaining("still image (PNG)") },
      warnings: [],
    });
    const unknown = await ended(sources.unknown);
    expect(unknown.asset).toMatchObject({
      error: { code: "unsupported_format", message: expect.stringMatching(/matroska.*video, zmbv.*audio, tta/) },
    });
    expect(unknown.job).toMatchObject({ status: "failed", attempt: 1 });
    expect((await ended(sources.torn)).asset).toMatchObject({ error: { code: "input_invalid" } });
    server.child.kill("SIGTERM");
    await server.ended;
  }
});
