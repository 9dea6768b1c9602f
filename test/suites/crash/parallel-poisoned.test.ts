import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rowsOf, startWorker, tasksOf, untilWaiting, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";

const folder = temporaryFolder("vodbox-test-poisoned");
const clip = join(folder, "clip.mp4");
const SECONDS = 34;
/** The first frame of the third chunk. */
const POISONED = 400;

beforeAll(() =>
  ffmpeg(...picture("160x90", "25", SECONDS), ...sound(SECONDS), ...fast, "-g", "50", "-c:a", "aac", clip),
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An ffmpeg that is killed by one chunk, as when it takes too much memory. */
function killedFfmpeg(): string {
  const path = join(folder, "ffmpeg");
  const script = `#!/bin/sh
case "$*" in *start_pts=${POISONED}:*) echo "This chunk is poisoned." >&2; kill -9 $$;; esac
exec '${binaries.ffmpeg}' "$@"
`;
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}

test("a chunk that kills every encoder fails the job, with its log, when its attempts are used up", async () => {
  const dataDir = emptyFolder();
  const env = {
    VODBOX_RATE_LIMIT_UPLOADS: "100000/60",
    VODBOX_LEASE_SECONDS: "8",
    VODBOX_CHUNK_SECONDS: "8",
    // The attempts of the job, and of each of its tasks.
    VODBOX_MAX_ATTEMPTS: "2",
  };
  const server = await startServer(dataDir, { env, args: ["--workers", "0"] });
  const options = { env: { VODBOX_FFMPEG: killedFfmpeg() } };
  const workers = [startWorker(server, emptyFolder(), options), startWorker(server, emptyFolder(), options)];
  await untilWaiting(server, workers.length);
  const { job, asset, key } = await uploadClip(server, clip);
  const state = async () => (await server.as({ admin: server.admin }).getJob(job.id)).body;
  await until("the job has failed", async () => (await state()).status === "failed", 240_000);
  const failed = await state();
  expect(failed).toMatchObject({ attempt: 2, uncuttable: null, error: { code: "encode_failed" } });
  expect(failed.log_tail).toContain("This chunk is poisoned.");
  const repeated = tasksOf(dataDir).filter(({ failures }) => failures > 0);
  // The tasks of the last attempt of the job: the poisoned one alone.
  expect(repeated.map(({ kind, first_frame, failures }) => ({ kind, first_frame, failures }))).toEqual([
    { kind: "chunk", first_frame: POISONED, failures: 2 },
  ]);
  const { body } = await server.as(key).getAsset(asset.id);
  expect(body.playback_status).toBe("errored");
  for (const worker of workers) {
    await stopCleanly(worker);
  }
  await stopCleanly(server);
  expect(rowsOf(dataDir).events.map(({ type }) => type)).toEqual([
    "video.upload.completed",
    "video.job.queued",
    "video.job.started",
    "video.job.failed",
    "video.job.queued",
    "video.job.started",
    "video.job.failed",
    "video.asset.errored",
  ]);
});
