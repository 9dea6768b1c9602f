import { Agent, get } from "node:http";
import { join } from "node:path";
import { publish } from "./bytes.ts";
import { memoryOf, startVodbox, workFolder } from "./processes.ts";
import { compare, median, type Result } from "./result.ts";

const VIEWERS = Number(process.env.VODBOX_BENCH_VIEWERS ?? 500);
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 60);
const SEGMENTS = 60;
const SEGMENT_BYTES = 2 ** 20;
/** Smaller than the film, so that segments are evicted all the time. */
const CACHE_BYTES = 32 * 2 ** 20;
const MIB = 2 ** 20;

/**
 * Viewers of one film, each with a kept-alive connection, who fetch playlist and segments as fast as possible; a tenth
 * of them receives 256 KiB a second. Compares the server's memory at the end with that when all have begun.
 */
export async function benchViewers(): Promise<Result[]> {
  const work = workFolder();
  const env = { VODBOX_SEGMENT_CACHE_BYTES: String(CACHE_BYTES) };
  const server = await startVodbox(join(work.path, "data"), { env });
  const agent = new Agent({ keepAlive: true, maxSockets: VIEWERS });
  try {
    const { folder, master } = await publish(server.base, film());
    const pid = server.child.pid as number;
    const memory: number[] = [];
    const ends = performance.now() + SECONDS * 1000;
    const isOver = () => performance.now() > ends;
    const sampling = setInterval(() => memory.push(memoryOf(pid, "VmRSS") / MIB), 500);
    const viewers = Array.from({ length: VIEWERS }, (_, index) =>
      watch({ agent, master, folder, first: index, isSlow: index % 10 === 0, isOver }),
    );
    const bytes = (await Promise.all(viewers)).reduce((sum, each) => sum + each, 0);
    clearInterval(sampling);
    const third = Math.floor(memory.length / 3);
    // The shared files are read first; the measurement begins after that.
    const beginning = memory.slice(2, third);
    const middle = memory.slice(third, -third);
    const end = memory.slice(-third);
    const note = `${median(middle).toFixed(0)} MiB between; most ${Math.max(...memory).toFixed(0)}; ${(bytes / SECONDS / MIB).toFixed(0)} MiB/s`;
    return [
      compare(
        `${VIEWERS} viewers for ${SECONDS} s, memory at the end`,
        { ours: end, theirs: beginning },
        { reference: "at the beginning", unit: "MiB", bar: { atMost: 1.1 }, note },
      ),
    ];
  } finally {
    agent.destroy();
    await server.stop();
    work.remove();
  }
}

function film(): Record<string, Buffer> {
  const segments = Array.from({ length: SEGMENTS }, (_, index) => [`${index}.m4s`, Buffer.alloc(SEGMENT_BYTES, index)]);
  const playlist = `#EXTM3U\n${segments.map(([name]) => `#EXTINF:4,\n${name}\n`).join("")}#EXT-X-ENDLIST\n`;
  return { ...Object.fromEntries(segments), "low.m3u8": Buffer.from(playlist) };
}

type Viewer = { agent: Agent; master: string; folder: string; first: number; isSlow: boolean; isOver(): boolean };

/** Until the end; returns the bytes received. */
async function watch({ agent, master, folder, first, isSlow, isOver }: Viewer): Promise<number> {
  let bytes = 0;
  while (!isOver()) {
    bytes += await take(agent, master, false);
    bytes += await take(agent, `${folder}low.m3u8`, false);
    // At different positions: later viewers start further back.
    for (let index = first; index < first + SEGMENTS && !isOver(); index++)
      bytes += await take(agent, `${folder}${index % SEGMENTS}.m4s`, isSlow);
  }
  return bytes;
}

const SLOW_BYTES = 64 * 1024;
const SLOW_MS = 250;

function take(agent: Agent, address: string, isSlow: boolean): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  get(address, { agent }, (answer) => {
    let bytes = 0;
    let until = SLOW_BYTES;
    if (answer.statusCode !== 200) reject(new Error(`${address}: ${answer.statusCode}`));
    answer.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (!isSlow || bytes < until) return;
      until += SLOW_BYTES;
      answer.pause();
      setTimeout(() => answer.resume(), SLOW_MS);
    });
    answer.on("end", () => resolve(bytes));
    answer.on("error", reject);
  }).on("error", reject);
  return promise;
}
