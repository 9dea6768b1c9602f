import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jobNow, rowsOf, startWorker, untilEncoding, uploadClip } from "#test/support/crash/encoding.ts";
import { isAlive, until, untilGone } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunOptions, startServer, stopCleanly } from "#test/support/process.ts";

const clips = temporaryFolder("vodbox-test-clips");
/** Short enough to be encoded to its end, long enough to be interrupted. */
const clip = join(clips, "clip.mp4");
const longClip = join(clips, "long.mp4");
beforeAll(async () => {
  await ffmpeg(...picture("1280x720", "30", 6), ...sound(6), ...fast, "-c:a", "aac", clip);
  await ffmpeg("-stream_loop", "6", "-i", clip, "-c", "copy", longClip);
});
afterAll(() => rmSync(clips, { recursive: true, force: true }));

const types = (events: { type: string }[]) => events.map((event) => event.type);
/** Frequent polling must not reach the rate limit. */
const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" };
/** The server sees progress with the heartbeats, every quarter of the lease. */
const long = { ...env, VODBOX_LEASE_SECONDS: "15" };
/** Soon expired for a dead worker, and not for a live one on a busy machine. */
const short = { ...env, VODBOX_LEASE_SECONDS: "4" };
const args = ["--workers", "1"];

describe("a worker", () => {
  nightly(
    "killed during an encode: its ffmpeg is killed, the job is done once by the next, which cleans up",
    async () => {
      const dataDir = emptyFolder();
      const scratch = emptyFolder();
      const server = await startServer(dataDir, { env: short });
      const made = await uploadClip(server, clip);
      const first = startWorker(server, scratch);
      const below = await untilEncoding(server, made, first.child.pid as number);
      first.child.kill("SIGKILL");
      await first.ended;
      await untilGone(below);
      const [left, ...others] = readdirSync(scratch);
      expect([left, others]).toEqual([expect.stringContaining(`worker-${first.child.pid}-`), []]);

      const second = startWorker(server, scratch);
      await until("the second worker's own folder", () => readdirSync(scratch).some((name) => name !== left));
      await until("the first one's folder swept", () => !readdirSync(scratch).includes(left as string));
      await until("the job is complete", async () => (await jobNow(server, made)).status === "completed", 90_000);
      expect(await jobNow(server, made)).toMatchObject({ attempt: 2, progress: 100, error: null });
      await stopCleanly(second);
      expect(readdirSync(scratch)).toEqual([]);
      await stopCleanly(server);

      const { events, attempts } = rowsOf(dataDir);
      expect(types(events)).toEqual([
        "video.upload.completed",
        "video.job.queued",
        "video.job.started",
        "video.job.failed",
        "video.job.queued",
        "video.job.started",
        "video.asset.ready",
        "video.asset.encoded",
      ]);
      expect(events[3]?.data).toMatchObject({ attempt: 1, error_code: "lease_expired", will_retry: true });
      expect(events[5]?.data).toMatchObject({ attempt: 2 });
      expect(attempts.map((row) => row.outcome)).toEqual(["expired", "completed"]);
    },
  );

  nightly("stopped during an encode: the job is released without counting, 0, nothing is left", async () => {
    const dataDir = emptyFolder();
    const scratch = emptyFolder();
    const server = await startServer(dataDir, { env: long });
    const made = await uploadClip(server, longClip);
    const worker = startWorker(server, scratch);
    const below = await untilEncoding(server, made, worker.child.pid as number);
    await stopCleanly(worker);
    expect(below.filter(isAlive)).toEqual([]);
    expect(await jobNow(server, made)).toMatchObject({ status: "queued", attempt: 0, stage: "queued" });
    expect(readdirSync(scratch)).toEqual([]);
    const again = await server.as({ worker: server.worker, headers: { "idempotency-key": "after" } }).claimJob({});
    expect(again.body.job).toMatchObject({ id: made.job.id, attempt: 1 });
  });
});

describe("serve with a local worker during an encode", () => {
  async function midEncode(options: RunOptions = {}) {
    const dataDir = emptyFolder();
    const server = await startServer(dataDir, { args, env: long, ...options });
    const made = await uploadClip(server, longClip);
    const below = await untilEncoding(server, made, server.child.pid as number);
    expect(below.some((one) => one.command.includes("worker --server"))).toBe(true);
    return { dataDir, server, made, below };
  }
  const expectGivenBack = (dataDir: string) => {
    const { jobs, attempts, events } = rowsOf(dataDir);
    expect(jobs).toMatchObject([{ status: "queued", failures: 0 }]);
    expect(attempts.map((row) => row.outcome)).toEqual(["released"]);
    expect(types(events).slice(-2)).toEqual(["video.job.started", "video.job.queued"]);
  };

  nightly("SIGTERM: 0, the job released, no worker and no ffmpeg left", async () => {
    const { dataDir, server, below } = await midEncode();
    await stopCleanly(server);
    expect(below.filter(isAlive)).toEqual([]);
    expectGivenBack(dataDir);
    expect(readdirSync(join(dataDir, "scratch"))).toEqual([]);
  });

  nightly("Ctrl-C, which the terminal sends to all of them at once: the same", async () => {
    const { dataDir, server, below } = await midEncode({ detached: true });
    process.kill(-(server.child.pid as number), "SIGINT");
    expect((await server.ended).code).toBe(0);
    expect(below.filter(isAlive)).toEqual([]);
    expectGivenBack(dataDir);
  });

  nightly("a second signal ends it immediately, and its child processes soon after", async () => {
    const { server, below } = await midEncode();
    // Two different signals: of two equal pending ones the kernel delivers one.
    server.child.kill("SIGTERM");
    server.child.kill("SIGINT");
    // A graceful stop exits with 0.
    expect([130, 143]).toContain((await server.ended).code);
    await untilGone(below);
  });

  test("kill -9: its worker and ffmpeg exit within 10 s, and the next start does the job", async () => {
    const { dataDir, server, made, below } = await midEncode({ env: short });
    server.child.kill("SIGKILL");
    await server.ended;
    await untilGone(below);
    const next = await startServer(dataDir, { args, env: short });
    await untilEncoding(next, made, next.child.pid as number);
    expect(readdirSync(join(dataDir, "scratch"))).toHaveLength(1);
  });
});
