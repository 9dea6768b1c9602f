import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  isTaskOf,
  rowsOf,
  startWorker,
  type TaskRow,
  tasksOf,
  type Uploaded,
  untilWaiting,
  uploadClip,
} from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, fast, ffmpeg, ffprobe, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer, stopCleanly } from "#test/support/process.ts";

const clips = temporaryFolder("vodbox-test-parts");
const clip = join(clips, "clip.mp4");
const SECONDS = 34;
beforeAll(() => ffmpeg(...picture("320x180", "30000/1001", SECONDS), ...sound(SECONDS), ...fast, "-c:a", "aac", clip));
afterAll(() => rmSync(clips, { recursive: true, force: true }));

/** Chunks of two segments, and leases that expire soon for a dead worker. */
const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "4", VODBOX_CHUNK_SECONDS: "8" };
const job = async (server: RunningServer, { job, key }: Uploaded) => (await server.as(key).getJob(job.id)).body;

/** Every rendition of the finished asset has all frames, without a gap, and decodes without a warning. */
async function expectWhole(server: RunningServer, { asset, key }: Uploaded): Promise<void> {
  // No worker elsewhere reads everything: then the server computes the checksum afterwards.
  const body = await until("the checksum is known", async () => {
    const { body } = await server.as(key).getAsset(asset.id);
    return body.source_sha256 ? body : null;
  });
  const sum = createHash("sha256").update(readFileSync(clip)).digest("hex");
  expect(body).toMatchObject({ playback_status: "ready", source_sha256: sum });
  expect(body.duration_seconds).toBeCloseTo(SECONDS, 0);
  const { body: playback } = await server.as(key).getPlayback(asset.id);
  const master = playback.hls_url;
  expect(await complaints("-i", master, "-map", "0", "-f", "null", "-")).toBe("");
  const frames = await ffprobe(
    ...["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0"],
    master,
  );
  const counts = frames
    .split("\n")
    .filter((line) => /^\d+/.test(line))
    .map(Number.parseFloat);
  expect(counts.length).toBeGreaterThan(0);
  for (const count of counts) expect(count).toBe(Math.ceil((SECONDS * 30_000) / 1001));
}

test("two remote workers encode one source; when one is killed, only its task is repeated", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env, args: ["--workers", "0"] });
  const workers = [startWorker(server, emptyFolder()), startWorker(server, emptyFolder())];
  await untilWaiting(server, workers.length);
  const made = await uploadClip(server, clip);
  const [victim, survivor] = workers;
  if (!victim || !survivor) throw new Error("No worker was started.");
  const ofVictim = (row: TaskRow) => isTaskOf(victim, row);
  // One of the two may have the audio, which takes as long as all chunks together.
  await until("both workers encode", () => {
    const parts = tasksOf(dataDir).filter(({ kind, status }) => kind !== "plan" && status === "running");
    return parts.some(ofVictim) && !parts.every(ofVictim);
  });
  victim.child.kill("SIGKILL");
  await victim.ended;
  // Until their leases expire.
  const lost = tasksOf(dataDir).filter((row) => row.status === "running" && ofVictim(row));
  expect(lost.length).toBeGreaterThan(0);
  await until("the job is complete", async () => (await job(server, made)).status === "completed", 120_000);
  const { tasks, attempt } = await job(server, made);
  expect(tasks).toEqual({ total: 7, queued: 0, running: 0, completed: 7, failed: 0 });
  expect(attempt).toBe(1);
  const repeated = tasksOf(dataDir).filter(({ failures }) => failures > 0);
  expect(repeated.map(({ id }) => id)).toEqual(lost.map(({ id }) => id));
  await expectWhole(server, made);
  await stopCleanly(survivor);
  await stopCleanly(server);
  expect(rowsOf(dataDir).events.map(({ type }) => type)).toEqual([
    "video.upload.completed",
    "video.job.queued",
    "video.job.started",
    "video.asset.ready",
    "video.asset.encoded",
  ]);
});

nightly(
  "the local worker encodes in parts on the server's disk, and a killed server continues with the parts that are left",
  async () => {
    const dataDir = emptyFolder();
    const args = ["--workers", "1"];
    const server = await startServer(dataDir, { env, args });
    const made = await uploadClip(server, clip);
    const isDone = ({ kind, status }: TaskRow) => kind === "chunk" && status === "completed";
    await until("a chunk is complete", () => tasksOf(dataDir).some(isDone));
    server.child.kill("SIGKILL");
    await server.ended;
    const done = tasksOf(dataDir).filter(isDone);
    const again = await startServer(dataDir, { env, args });
    await until("the job is complete", async () => (await job(again, made)).status === "completed", 120_000);
    const finishedAt = new Map(tasksOf(dataDir).map(({ id, finished_at }) => [id, finished_at]));
    for (const { id, finished_at } of done) expect(finishedAt.get(id)).toBe(finished_at);
    await expectWhole(again, made);
    await stopCleanly(again);
  },
);
