import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tenantApi, uploadFile } from "#cli/api.ts";
import { freePort } from "#scripts/free-port.ts";
import { memoryOf, startVodbox, tenantWithKey, workFolder } from "../processes.ts";
import { compare, median, p99, type Result } from "../result.ts";
import { makeClip, untilReady } from "../soak.ts";
import { ATTACKS } from "./all.ts";
import type { AttackOrder } from "./attacker.ts";

const ATTACK_MS = Number(process.env.VODBOX_ATTACK_SECONDS ?? 10) * 1000;
const ALONE_MS = Math.min(5000, ATTACK_MS);
const PAUSE_MS = 20;
/** The server has recovered when this many requests in a row are answered as they are alone. */
const RECOVERED = 10;
const MAX_RECOVERY_MS = 60_000;
const MEBIBYTE = 2 ** 20;
/** Goals: p99 of twice the time alone or 50 ms, no request of over a second, recovery in two, memory within 100 MiB. */
const GOALS = { p99Ms: 50, longestMs: 1000, recoveryMs: 2000, memory: 100 };

type Probe = () => Promise<void>;

/**
 * A second tenant and a viewer of its video during each attack of the first one, and after it. VODBOX_ATTACKS, a regular
 * expression, selects attacks by name.
 */
export async function benchHostile(): Promise<Result[]> {
  const chosen = new RegExp(process.env.VODBOX_ATTACKS ?? "");
  const work = workFolder();
  const rtmpPort = await freePort();
  const srtPort = await freePort();
  const env = {
    VODBOX_RATE_LIMIT_PICTURES: "1000000/1",
    VODBOX_RATE_LIMIT_BEACON: "1000000/1",
    VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32",
    VODBOX_RTMP_PORT: String(rtmpPort),
    VODBOX_SRT_PORT: String(srtPort),
  };
  const server = await startVodbox(join(work.path, "data"), { workers: 1, env });
  try {
    const { base } = server;
    const clip = join(work.path, "clip.mp4");
    await makeClip(clip);
    const withAsset = async (slug: string) => {
      const tenant = await tenantWithKey(base, slug);
      const api = tenantApi(base, tenant.key);
      const { asset_id } = await uploadFile(api, clip, {}, () => {});
      await untilReady(api, asset_id);
      return { base, ...tenant, assetId: asset_id as number, rtmpPort, srtPort };
    };
    const normal = await withAsset("normal");
    const hostile = await withAsset("hostile");
    let images = 0;
    const get = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(base + path, { headers });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
    };
    const own = { "x-api-key": normal.key };
    const probes: Record<string, Probe> = {
      tenant: () => get("/api/v1/assets?limit=20", own),
      viewer: () => get(`/media/${normal.assetId}/master.m3u8`),
      image: () => get(`/media/${normal.assetId}/thumbnail.jpg?time=1&width=${100 + 2 * (images++ % 900)}&height=90`),
    };
    const memory = () => memoryOf(server.child.pid as number, "VmRSS") / MEBIBYTE;
    const results: Result[] = [];
    for (const attack of ATTACKS.filter(({ name }) => chosen.test(name))) {
      console.error(`hostile: ${attack.name} …`);
      await attack.prepare?.(hostile);
      const during = async (ms: number) => {
        const until = performance.now() + ms;
        return measured(probes, () => performance.now() < until);
      };
      await during(1000);
      const before = memory();
      const alone = await during(ALONE_MS);
      const leave = await startAttack({ name: attack.name, target: hostile });
      const attacked = await during(ATTACK_MS);
      const most = memory();
      leave();
      const recoveryMs = await recovery(probes, alone);
      await sleep(GOALS.recoveryMs);
      results.push(...rows(attack.name, { alone, attacked, recoveryMs, before, most, after: memory() }));
    }
    return results;
  } finally {
    await server.stop();
    work.remove();
  }
}

/** Resolves when the attack has started, with a function that ends its process. */
async function startAttack(order: AttackOrder): Promise<() => void> {
  // SCHED_IDLE (sched(7)): a real attacker has its own machine, so this one only uses idle CPU time.
  const idle = { execPath: "chrt", execArgv: ["--idle", "0", process.execPath] };
  const child = fork(join(import.meta.dirname, "attacker.ts"), idle);
  child.send(order);
  await once(child, "message");
  return () => void child.kill("SIGKILL");
}

/** Counts as the time of a request that failed. */
const FAILED_MS = 60_000;

async function timeOf(probe: Probe): Promise<number> {
  const from = performance.now();
  try {
    await probe();
    return performance.now() - from;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return FAILED_MS;
  }
}

type Times = Record<string, number[]>;

/** Each probe in its own loop: one that waits does not delay another. */
async function measured(probes: Record<string, Probe>, goesOn: () => boolean): Promise<Times> {
  const times: Times = {};
  await Promise.all(
    Object.entries(probes).map(async ([name, probe]) => {
      const own: number[] = [];
      times[name] = own;
      while (goesOn()) {
        own.push(await timeOf(probe));
        await sleep(PAUSE_MS);
      }
    }),
  );
  return times;
}

/** Time in ms until each probe is answered as it is alone, several times in a row. */
async function recovery(probes: Record<string, Probe>, alone: Times): Promise<number> {
  const from = performance.now();
  const ends = await Promise.all(
    Object.entries(probes).map(async ([name, probe]) => {
      const usualMs = Math.max(2 * p99(alone[name] as number[]), GOALS.p99Ms);
      let since = from;
      for (let good = 0; good < RECOVERED && performance.now() - from < MAX_RECOVERY_MS; ) {
        if ((await timeOf(probe)) <= usualMs) good++;
        else {
          good = 0;
          since = performance.now();
        }
        // As often as they were measured alone.
        await sleep(PAUSE_MS);
      }
      return since - from;
    }),
  );
  return Math.max(...ends);
}

type Measured = { alone: Times; attacked: Times; recoveryMs: number; before: number; most: number; after: number };

function rows(attack: string, { alone, attacked, recoveryMs, before, most, after }: Measured): Result[] {
  const atMost = { atMost: 1 };
  const perProbe = Object.entries(attacked).map(([name, times]) => {
    const own = alone[name] as number[];
    const goal = Math.max(2 * p99(own), GOALS.p99Ms);
    const note = `(p50 ${median(times).toFixed(1)}, longest ${Math.max(...times).toFixed(0)} ms; alone p50 ${median(own).toFixed(1)}, p99 ${p99(own).toFixed(1)} ms)`;
    const about = { reference: "twice the time alone, or 50 ms", unit: "ms", bar: atMost, note };
    return compare(`${attack}: ${name}, p99`, { ours: [p99(times)], theirs: [goal] }, about);
  });
  const longest = Math.max(...Object.values(attacked).flat());
  const limit = (name: string, value: number, goal: number, unit: string, note?: string) => {
    const about = { reference: "the goal", unit, bar: atMost, ...(note && { note }) };
    return compare(`${attack}: ${name}`, { ours: [value], theirs: [goal] }, about);
  };
  return [
    ...perProbe,
    limit("longest request", longest, GOALS.longestMs, "ms"),
    limit("recovery", recoveryMs, GOALS.recoveryMs, "ms"),
    limit(
      "memory after it",
      Math.max(0, after - before),
      GOALS.memory,
      "MiB",
      `(at the end of it: ${most.toFixed(0)} MiB)`,
    ),
  ];
}
