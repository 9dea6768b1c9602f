import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { isTaskOf, rowsOf, startWorker, tasksOf, untilWaiting, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, fast, ffmpeg, ffprobe, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, type Started, startServer } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";
import { newBucket, s3Server, s3Settings } from "#test/support/s3-server.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

/** More of them by hand: FAULT_ROUNDS=20 npm test -- test/nightly/crash/parallel-faults.test.ts */
const ROUNDS = amount(1, 5, "FAULT_ROUNDS");
/** Enough chunks that every worker has one for a while. */
const SECONDS = 60;
const WORKERS = 4;
const RESERVE = 24 * 2 ** 20;
/** A minute by hand: FAULT_S3_SECONDS=60. */
const S3_OUTAGE_SECONDS = Number(process.env.FAULT_S3_SECONDS ?? 5);

const clips = temporaryFolder("vodbox-test-faults");
/** So small that it fits on a small disk with its results. */
const clip = join(clips, "clip.mp4");
beforeAll(() =>
  ffmpeg(...picture("640x360", "25", SECONDS), ...sound(SECONDS), ...fast, "-g", "50", "-c:a", "aac", clip),
);
afterAll(() => rmSync(clips, { recursive: true, force: true }));

const ENV = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "8", VODBOX_CHUNK_SECONDS: "8" };

type Running = { server: RunningServer; workers: Started[]; env: Record<string, string> };
type Fault = {
  /** More settings of the server. */
  env?: () => Promise<Record<string, string>>;
  /** The scratch directory of the first worker. */
  scratch?: () => string;
  /** Happens while several workers encode. Returns the server that then runs. */
  strike: (running: Running) => Promise<RunningServer>;
  /** Tasks that are repeated: those that the first worker was running, any that were running, or none. */
  repeats: "first worker's" | "running" | "none";
};

async function encodeWith(fault: Fault): Promise<void> {
  const env = { ...ENV, ...(await fault.env?.()) };
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env, args: ["--workers", "0"] });
  const start = (scratch = emptyFolder()) =>
    startWorker(server, scratch, { env: { VODBOX_MIN_FREE_BYTES: String(RESERVE) } });
  const chunks = () => tasksOf(dataDir).filter(({ kind, status }) => kind === "chunk" && status === "running");
  // The one that is to fail begins alone, so that it has a chunk.
  const first = start(fault.scratch?.());
  await untilWaiting(server, 1);
  const made = await uploadClip(server, clip);
  await until("the first worker encodes a chunk", () => chunks().length > 0);
  const workers = [first, ...Array.from({ length: WORKERS - 1 }, () => start())];
  await until(
    "several workers encode a chunk, and the one that is to fail",
    () => chunks().length > 1 && chunks().some((task) => isTaskOf(first, task)),
  );
  const before = tasksOf(dataDir);
  const running = before.filter(({ status }) => status === "running");
  const after = await fault.strike({ server, workers, env });
  const job = () => after.as(made.key).getJob(made.job.id);
  await until("the job is complete", async () => (await job()).body.status === "completed", 240_000);

  const tasks = tasksOf(dataDir);
  expect(tasks.every(({ status }) => status === "completed")).toBe(true);
  const finished = new Map(tasks.map((task) => [task.id, task.finished_at]));
  for (const task of before) if (task.status === "completed") expect(finished.get(task.id)).toBe(task.finished_at);
  const repeated = tasks.filter(({ failures }) => failures > 0).map(({ id }) => id);
  const allowed = {
    "first worker's": tasks.filter((task) => running.some(({ id }) => id === task.id) || isTaskOf(first, task)),
    running: tasks,
    none: [],
  }[fault.repeats].map(({ id }) => id);
  expect(repeated.filter((id) => !allowed.includes(id))).toEqual([]);
  if (fault.repeats === "first worker's") expect(repeated.length).toBeLessThanOrEqual(2);

  const { body } = await after.as(made.key).getPlayback(made.asset.id);
  expect(await complaints("-http_persistent", "0", "-i", body.hls_url, "-map", "0", "-f", "null", "-")).toBe("");
  const counted = ["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
  const counts = (await ffprobe(...counted, "-of", "csv=p=0", body.hls_url)).split("\n").filter(Boolean);
  expect(new Set(counts.map(Number.parseFloat).filter(Number.isFinite))).toEqual(new Set([SECONDS * 25]));
  after.child.kill("SIGTERM");
  await after.ended;
  const { events, attempts } = rowsOf(dataDir);
  expect(attempts.map(({ attempt }) => attempt)).toEqual([1]);
  expect(events.map(({ type }) => type)).toEqual([
    "video.upload.completed",
    "video.job.queued",
    "video.job.started",
    "video.asset.ready",
    "video.asset.encoded",
  ]);
}

const first = ({ workers }: Running) => (workers[0] as Started).child;
const rounds = Array.from({ length: ROUNDS }, (_, round) => round + 1);

nightly.for(rounds)("a worker that is killed, round %i", () =>
  encodeWith({
    repeats: "first worker's",
    async strike(running) {
      first(running).kill("SIGKILL");
      return running.server;
    },
  }),
);

nightly.for(rounds)("a worker that stops, and continues when its lease is lost, round %i", () =>
  encodeWith({
    repeats: "first worker's",
    async strike(running) {
      const child = first(running);
      child.kill("SIGSTOP");
      const { dataDir } = running.server;
      await until("its lease is lost", () => tasksOf(dataDir).some(({ failures }) => failures > 0), 60_000);
      child.kill("SIGCONT");
      return running.server;
    },
  }),
);

test.for(rounds)("a server that is killed and started again, round %i", () =>
  encodeWith({
    repeats: "none",
    async strike({ server, env }) {
      server.child.kill("SIGKILL");
      await server.ended;
      return startServer(server.dataDir, { env, args: ["--workers", "0", "--port", new URL(server.base).port] });
    },
  }),
);

nightly.for(rounds)("an object store that cannot be reached for seconds, round %i", async () => {
  const s3 = await s3Server();
  const relay = await startRelay();
  const port = Number(new URL(s3.endpoint).port);
  relay.lead(port);
  const bucket = newBucket("faults");
  await s3.bucket(bucket);
  await encodeWith({
    repeats: "running",
    env: async () => ({
      ...s3Settings({ ...s3, endpoint: relay.base }, bucket),
    }),
    async strike({ server }) {
      // New connections are refused, and old ones break with their next request.
      relay.lead(1);
      relay.cutAfter(0, Number.POSITIVE_INFINITY);
      // Real time: the outage lasts.
      await sleep(S3_OUTAGE_SECONDS * 1000);
      relay.reset();
      relay.lead(port);
      return server;
    },
  });
});

nightly.for(rounds)("a scratch disk that fills up, round %i", async (_, context) => {
  const disk = smallDisk(context, 96);
  await encodeWith({
    repeats: "first worker's",
    scratch: () => disk.path,
    async strike({ server }) {
      disk.fill();
      await until("its task has failed", () => tasksOf(server.dataDir).some(({ failures }) => failures > 0), 60_000);
      rmSync(join(disk.path, "filler"));
      return server;
    },
  });
});
