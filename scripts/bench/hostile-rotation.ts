import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tenantApi, uploadFile } from "#cli/api.ts";
import type { Order, Report } from "./attacker.ts";
import { memoryOf, startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { compare, p99, type Result } from "./result.ts";
import { askOn, makeClip, slopeOf, untilReady } from "./soak.ts";

/**
 * Duration of the attack; an hour with VODBOX_SOAK_SECONDS=3600. The tenant runs alone for a fifth of it first, ten
 * minutes at most.
 */
const SECONDS = Number(process.env.VODBOX_SOAK_SECONDS ?? 600);
const ALONE_SECONDS = Math.min(600, SECONDS / 5);
const REQUESTS_A_SECOND = 30;
const ATTACKS_A_SECOND = 5;
const LOOK_MS = 2000;

/** One tenant's ordinary requests, alone and then next to a tenant that tries every attack in rotation. */
export async function benchHostileRotation(): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"), {
    workers: 1,
    env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32", VODBOX_RATE_LIMIT_BEACON: "1000000/1" },
  });
  try {
    const { base } = server;
    const normal = await tenantWithKey(base);
    const hostile = await tenantWithKey(base, "hostile");
    const clip = join(work.path, "clip.mp4");
    await makeClip(clip);
    const assetOf = async (key: string) => {
      const api = tenantApi(base, key);
      const { asset_id } = await uploadFile(api, clip, {}, () => {});
      await untilReady(api, asset_id);
      return asset_id;
    };
    const mine = await assetOf(normal.key);
    const theirs = await assetOf(hostile.key);
    const measure = async (seconds: number) => {
      const seen = { times: [] as number[], failures: [] as string[] };
      const until = performance.now() + seconds * 1000;
      await askOn(base, normal.key, mine, seen, () => performance.now() < until, REQUESTS_A_SECOND);
      return seen;
    };
    await measure(Math.min(10, ALONE_SECONDS));
    const alone = await measure(ALONE_SECONDS);
    const attack = await startAttacker({
      base,
      ...hostile,
      assetId: theirs,
      seconds: SECONDS,
      perSecond: ATTACKS_A_SECOND,
      atOnce: 200,
    });
    const until = performance.now() + SECONDS * 1000;
    const goesOn = () => performance.now() < until;
    const memory: { at: number; bytes: number }[] = [];
    const look = async () => {
      const from = performance.now();
      while (goesOn()) {
        memory.push({ at: (performance.now() - from) / 60_000, bytes: memoryOf(server.child.pid as number, "VmRSS") });
        await sleep(LOOK_MS);
      }
    };
    const [attacked, counts] = await Promise.all([measure(SECONDS), attack.counts, look()]);
    for (const [name, count] of counts) process.stderr.write(`hostile: ${count} x ${name}\n`);
    return results({ alone, attacked, memory });
  } finally {
    await server.stop();
    work.remove();
  }
}

/** Resolves when the attacks start; `counts` resolves when they have ended. */
async function startAttacker(order: Order): Promise<{ counts: Promise<[string, number][]> }> {
  // SCHED_IDLE (sched(7)): a real attacker has its own machine, so this one only uses idle CPU time.
  const idle = { execPath: "chrt", execArgv: ["--idle", "0", process.execPath] };
  const child = fork(join(import.meta.dirname, "attacker.ts"), idle);
  const report = async (): Promise<Report> => {
    const ended = once(child, "exit").then(() => Promise.reject(new Error("The attacking process ended early.")));
    return (await Promise.race([once(child, "message"), ended]))[0];
  };
  child.send(order);
  await report();
  const counts = report().then((answer) => ("counts" in answer ? answer.counts : []));
  return { counts };
}

type Measured = { times: number[]; failures: string[] };

function results({
  alone,
  attacked,
  memory,
}: {
  alone: Measured;
  attacked: Measured;
  memory: { at: number; bytes: number }[];
}): Result[] {
  const [first] = attacked.failures;
  const most = Math.max(...memory.map(({ bytes }) => bytes)) / 2 ** 20;
  return [
    compare(
      `${SECONDS} s next to a hostile tenant: p99 of a normal one`,
      { ours: [p99(attacked.times)], theirs: [p99(alone.times)] },
      {
        reference: "the same alone",
        unit: "ms",
        bar: { atMost: 2 },
        note: `(most ${Math.max(...attacked.times).toFixed(0)} ms)`,
      },
    ),
    compare(
      "the same: errors of the normal tenant",
      { ours: [attacked.failures.length + 1], theirs: [1] },
      {
        reference: "none; one is added to both",
        unit: "",
        bar: { atMost: 1 },
        note: first ? `(the first: ${first})` : `(${attacked.times.length} requests)`,
      },
    ),
    compare(
      "the same: growth of memory in the second half",
      { ours: [slopeOf(memory)], theirs: [1] },
      { reference: "1 MiB a minute", unit: "MiB/min", bar: { atMost: 1 }, note: `(most: ${most.toFixed(0)} MiB)` },
    ),
  ];
}
