import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { jobNow, startWorker, untilEncoding, uploadClip } from "#test/support/crash/encoding.ts";
import { until, untilGone } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";

const clips = temporaryFolder("vodbox-test-clips");
const clip = join(clips, "clip.mp4");
const small = join(clips, "small.mp4");
const longClip = join(clips, "long.mp4");
beforeAll(async () => {
  await ffmpeg(...picture("1280x720", "30", 6), ...fast, clip);
  await ffmpeg(...picture("160x90", "25", 1), ...fast, small);
  await ffmpeg("-stream_loop", "6", "-i", clip, "-c", "copy", longClip);
});
afterAll(() => rmSync(clips, { recursive: true, force: true }));

/** Progress, and the cancellation, are seen with heartbeats, every quarter of the lease. */
const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "12" };

test("a job that is canceled during its encode ends its ffmpeg; its worker continues with the next", async () => {
  const dataDir = emptyFolder();
  const scratch = emptyFolder();
  const server = await startServer(dataDir, { env });
  const made = await uploadClip(server, longClip);
  const worker = startWorker(server, scratch);
  const below = await untilEncoding(server, made, worker.child.pid as number);
  const order = (verb: string, id: number) =>
    server.call("POST", `/api/v1/transcoding_jobs/${id}/${verb}`, { admin: server.admin });
  const { id } = await jobNow(server, made);
  expect((await order("cancel", id)).body.status).toBe("canceled");
  await untilGone(below);

  const second = await uploadClip(server, small, "u");
  await until("the next job is complete", async () => (await jobNow(server, second)).status === "completed", 90_000);
  expect((await jobNow(server, made)).status).toBe("canceled");
  await stopCleanly(worker);
  expect(readdirSync(scratch)).toEqual([]);
});
