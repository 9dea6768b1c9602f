import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { altered } from "#test/support/altered.ts";
import { amount } from "#test/support/amount.ts";
import { rowsOf, startWorker, untilEncoding, uploadClip } from "#test/support/crash/encoding.ts";
import { descendantsOf, signalAll, until, untilGone } from "#test/support/descendants.ts";
import { putArtifacts, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer, stopCleanly } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";
import { LeaseClient, LeaseLost } from "#worker/lease-client.ts";

/** By hand 20 and 2,000, which takes minutes: KILLS=20 JOBS=2000 vitest run test/suites/crash/fencing.test.ts */
const ROUNDS = amount(1, 4, "KILLS");
const COUNT = amount(40, 200, "JOBS");

const clips = temporaryFolder("fencing-clips");
const clip = join(clips, "clip.mp4");
const longClip = join(clips, "long.mp4");
beforeAll(async () => {
  await ffmpeg(...picture("160x90", "25", 2), ...fast, clip);
  await ffmpeg(...picture("1280x720", "30", 12), ...fast, longClip);
});
afterAll(() => rmSync(clips, { recursive: true, force: true }));

const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_MAX_ATTEMPTS: "100" };
const JOBS = ROUNDS + 10;

async function queueJobs(server: RunningServer, count: number): Promise<void> {
  const { key } = await uploadClip(server, clip, "first");
  const bytes = readFileSync(clip);
  for (let made = 1; made < count; made++) await uploaded(server, key, { bytes });
}

const states = async (server: RunningServer, status: string): Promise<{ id: number }[]> =>
  (await server.as({ admin: server.admin }).listJobs({ status, limit: 500 })).body;

/** Each job is done once: one attempt completed it, one event was emitted, and its asset plays. */
function expectEachOnce(dataDir: string, count: number) {
  const { jobs, attempts, assets, events } = rowsOf(dataDir);
  expect(jobs.map((job) => job.status)).toEqual(Array(count).fill("completed"));
  const completed = attempts.filter((row) => row.outcome === "completed");
  expect(completed.map((row) => row.job_id).toSorted((a, b) => a - b)).toEqual(jobs.map((job) => job.id));
  expect(assets.map((asset) => asset.playback_status)).toEqual(Array(count).fill("ready"));
  const ready = events.filter((event) => event.type === "video.asset.ready").map((event) => event.data.asset_id);
  expect(ready.toSorted((a, b) => a - b)).toEqual(assets.map((asset) => String(asset.id)));
  expect(attempts.every((row) => row.outcome !== null)).toBe(true);
  return { jobs, attempts };
}

nightly(`a worker that is killed at any moment, ${ROUNDS} times: each job is done once, nothing is left`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  const scratch = emptyFolder();
  const server = await startServer(dataDir, { env: { ...env, VODBOX_LEASE_SECONDS: "2" } });
  await queueJobs(server, JOBS);
  for (let round = 0; round < ROUNDS; round++) {
    const worker = startWorker(server, scratch);
    await until("its first job", () =>
      readdirSync(scratch).some((name) => name.includes(`worker-${worker.child.pid}-`)),
    );
    await sleep(random.whole(0, 700));
    const below = descendantsOf(worker.child.pid as number);
    worker.child.kill("SIGKILL");
    await worker.ended;
    await untilGone(below);
  }
  const last = startWorker(server, scratch);
  await until("all are done", async () => (await states(server, "completed")).length === JOBS, 200_000);
  await stopCleanly(last);
  expect(readdirSync(scratch)).toEqual([]);
  server.child.kill("SIGTERM");
  await server.ended;
  const { attempts } = expectEachOnce(dataDir, JOBS);
  expect(attempts.length).toBeGreaterThan(JOBS);
});

nightly(`a server that is killed at any moment, ${ROUNDS} times: its worker loses no encode`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  const scratch = emptyFolder();
  const options = { env: { ...env, VODBOX_LEASE_SECONDS: "20" } };
  let server = await startServer(dataDir, options);
  const port = new URL(server.base).port;
  await queueJobs(server, JOBS);
  const worker = startWorker(server, scratch);
  for (let round = 0; round < ROUNDS; round++) {
    await sleep(random.whole(0, 800));
    server.child.kill("SIGKILL");
    await server.ended;
    await sleep(random.whole(0, 300));
    server = await startServer(dataDir, { ...options, args: ["--port", port] });
  }
  await until("all are done", async () => (await states(server, "completed")).length === JOBS, 200_000);
  await stopCleanly(worker);
  expect(readdirSync(scratch)).toEqual([]);
  server.child.kill("SIGTERM");
  await server.ended;
  const { jobs } = expectEachOnce(dataDir, JOBS);
  // None of them was started twice because of it.
  expect(jobs.map((job) => job.failures)).toEqual(Array(JOBS).fill(0));
});

test("a worker that resumes after its lease gets 409 for everything, and changes nothing", async () => {
  const dataDir = emptyFolder();
  const scratch = emptyFolder();
  const other = emptyFolder();
  const server = await startServer(dataDir, { env: { ...env, VODBOX_LEASE_SECONDS: "3" } });
  const made = await uploadClip(server, longClip);
  const sleeper = startWorker(server, scratch, { env: { VODBOX_LOG_LEVEL: "info" } });
  const below = await untilEncoding(server, made, sleeper.child.pid as number);
  signalAll(below, "SIGSTOP");
  sleeper.child.kill("SIGSTOP");
  const second = startWorker(server, other);
  await until("the other has done it", async () => (await states(server, "completed")).length === 1, 200_000);
  const before = rowsOf(dataDir);
  signalAll(below, "SIGCONT");
  sleeper.child.kill("SIGCONT");
  await until("the sleeper has heard of it", () => sleeper.stderr().includes("Lease lost"), 60_000);
  await untilGone(below);
  for (const one of [sleeper, second]) one.child.kill("SIGTERM");
  for (const one of [sleeper, second]) expect((await one.ended).code).toBe(0);
  const after = rowsOf(dataDir);
  expect(after.events).toEqual(before.events);
  expect(after.jobs).toEqual(before.jobs);
  expect(after.assets).toEqual(before.assets);
  expect(after.attempts.map((row) => row.outcome)).toEqual(["expired", "completed"]);
});

test(`eight workers and ${COUNT} jobs: each is leased once, and completed by who leased it`, async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env });
  const { key, asset } = await uploadClip(server, clip);
  const { source_key } = (await server.as(key).getAsset(asset.id)).body;
  const fields = { title: "x", input_status: "uploaded", playback_status: "draft", source_key };
  const sizes = { source_bytes: 1, storage_bytes: 0, duration_seconds: 0 };
  let registered = 1;
  const register = async () => {
    while (registered++ < COUNT) {
      const body = { tenant_id: asset.tenant_id, video_asset: { ...fields, ...sizes } };
      expect((await server.as(key).createAsset(body)).status).toBe(201);
    }
  };
  await Promise.all(Array.from({ length: 16 }, register));
  const leased: number[] = [];
  const work = async (name: number) => {
    const client = new LeaseClient({ server: server.base, token: () => server.worker, workerId: `w${name}` });
    for (;;) {
      const job = await client.next({ key: randomUUID(), capabilities: {}, waitSeconds: 0 });
      if (!job) return;
      leased.push(job.job.id);
      // Another's token is not accepted, regardless of its sender.
      if (leased.length % 10 === 0) {
        const stolen = { ...job, lease: { ...job.lease, token: altered(job.lease.token) } };
        await expect(client.heartbeat(stolen, { progress: 1, stage: "encoding" })).rejects.toThrow(LeaseLost);
      }
      const paths = await putArtifacts(server, job);
      await client.complete(job, { ...paths, media: { duration_seconds: 1 } } as never);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, name) => work(name)));
  server.child.kill("SIGTERM");
  await server.ended;
  expect(leased).toHaveLength(COUNT);
  expect(new Set(leased).size).toBe(COUNT);
  expectEachOnce(dataDir, COUNT);
});
