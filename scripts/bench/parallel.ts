import { type ChildProcess, spawn } from "node:child_process";
import { globSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tenantApi, uploadFile } from "#cli/api.ts";
import { chooseTools } from "../build/tools.ts";
import { type CpuShare, cpuShare } from "./cpu-share.ts";
import { call, EXECUTABLE, startVodbox, tenantWithKey, WORKER, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { makeSource } from "./source.ts";

const POLL_MS = 100;
/**
 * Options: seconds of the source, its size, seconds between its keyframes, cores of each worker, numbers of workers. The
 * reference is one run by one worker; with VODBOX_BENCH_REFERENCE=parts it is one worker that encodes in parts.
 */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 600);
const CORES = Number(process.env.VODBOX_BENCH_CORES ?? 0.2);
const COUNTS = (process.env.VODBOX_BENCH_WORKERS ?? "1,2,4,8").split(",").map(Number);
const SIZE = process.env.VODBOX_BENCH_SIZE ?? "1920x1080";
const GOP_SECONDS = Number(process.env.VODBOX_BENCH_GOP ?? 2);

type Measured = { wallSeconds: number; cpuSeconds: number; bytes: number };

/** From `complete` to the completed job, with workers that each have the same share of a core. */
async function encoded(
  folder: string,
  source: string,
  { workers, isParallel }: { workers: number; isParallel: boolean },
): Promise<Measured> {
  mkdirSync(folder);
  const data = join(folder, "data");
  const server = await startVodbox(data, { env: { VODBOX_PARALLEL: isParallel ? "auto" : "off" } });
  const shares: CpuShare[] = [];
  const children: ChildProcess[] = [];
  try {
    for (let number = 0; number < workers; number++) {
      const share = cpuShare(String(number), CORES);
      shares.push(share);
      const scratch = join(folder, `scratch-${number}`);
      const command = `${share.join} && exec "$0" worker --server "$1" --scratch "$2"`;
      const env = { PATH: process.env.PATH, HOME: process.env.HOME, VODBOX_WORKER_TOKEN: WORKER };
      children.push(spawn("sh", ["-c", command, EXECUTABLE, server.base, scratch], { env, stdio: "ignore" }));
    }
    const waiting = async () => (await call<unknown[]>(server.base, "GET", "/api/v1/admin/workers")).length;
    while ((await waiting()) < workers) await sleep(POLL_MS);
    const api = tenantApi(server.base, (await tenantWithKey(server.base)).key);
    const before = shares.map((share) => share.usedSeconds());
    const { asset_id } = await uploadFile(api, source, {}, () => {});
    const from = performance.now();
    for (;;) {
      const asset = await api<{ playback_status: string }>("GET", `/api/v1/assets/${asset_id}`);
      if (asset.playback_status === "ready") break;
      if (asset.playback_status === "errored") throw new Error("The encode failed.");
      await sleep(POLL_MS);
    }
    const wallSeconds = (performance.now() - from) / 1000;
    const cpuSeconds = shares.reduce((sum, share, at) => sum + share.usedSeconds() - (before[at] ?? 0), 0);
    const files = globSync("**/*.m4s", { cwd: data });
    return { wallSeconds, cpuSeconds, bytes: files.reduce((sum, file) => sum + statSync(join(data, file)).size, 0) };
  } finally {
    for (const child of children) await ended(child);
    for (const share of shares) share.remove();
    await server.stop();
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGTERM");
  await closed;
  // Processes of the sandbox end after it.
  await sleep(500);
}

/**
 * One source, encoded in one run and by several workers of equal shares of a core: wall time, processor time and bits. The
 * machine must have as many idle cores as all workers together are given.
 */
export async function benchParallel(): Promise<Result[]> {
  const work = workFolder();
  try {
    const { ffmpeg } = await chooseTools(process.arch as "x64");
    const source = join(work.path, "source.mp4");
    await makeSource(ffmpeg, source, { seconds: SECONDS, gopSeconds: GOP_SECONDS, size: SIZE });
    const isParallel = process.env.VODBOX_BENCH_REFERENCE === "parts";
    const whole = await encoded(join(work.path, "whole"), source, { workers: 1, isParallel });
    const results: Result[] = [];
    for (const workers of COUNTS) {
      const parts = await encoded(join(work.path, `parts-${workers}`), source, { workers, isParallel: true });
      const name = (what: string) => `${SECONDS} s of ${SIZE} by ${workers} workers of ${CORES} cores: ${what}`;
      const reference = isParallel ? "one worker, in parts" : "one worker, in one run";
      const one = (ours: number, theirs: number) => ({ ours: [ours], theirs: [theirs] });
      results.push(
        compare(name("wall time"), one(parts.wallSeconds, whole.wallSeconds / workers), {
          reference: `${reference}, divided by ${workers}`,
          unit: "s",
          bar: { atMost: 1.2 },
        }),
        compare(name("processor time"), one(parts.cpuSeconds, whole.cpuSeconds), {
          reference,
          unit: "s",
          bar: { atMost: GOP_SECONDS > 4 ? 1.1 : 1.05 },
        }),
        compare(name("segments"), one(parts.bytes / 1e6, whole.bytes / 1e6), {
          reference,
          unit: "MB",
          bar: { atMost: 1.01 },
        }),
      );
    }
    return results;
  } finally {
    work.remove();
  }
}
