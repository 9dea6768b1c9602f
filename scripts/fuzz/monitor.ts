import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** proc(5): ticks of 10 ms. */
const TICK_MS = 10;
const PROBE_MS = 10;

/** Processor time of the main thread of a process, in ms. */
function mainThreadMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return ((user as number) + (system as number)) * TICK_MS;
}

const residentMebibytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

export type Monitor = {
  /**
   * In ms: the longest response time of a cheap request, as far as the main thread was busy. Other programs do not
   * affect it.
   */
  longestStallMs: number;
  /** In ms, including the effect of other programs. */
  longestWaitMs: number;
  /** The request in progress at the longest stall. */
  during: string;
  memory(): number;
  stop(): Promise<void>;
};

/** Continuously sends a cheap request and measures its response time. `current` names the request in progress. */
export function monitor({ base, pid }: { base: string; pid: number }, current: () => string): Monitor {
  let isOver = false;
  const found: Monitor = {
    longestStallMs: 0,
    longestWaitMs: 0,
    during: "",
    memory: () => residentMebibytes(pid),
    async stop() {
      isOver = true;
      await probing;
    },
  };
  const probing = (async () => {
    while (!isOver) {
      const from = performance.now();
      const busy = mainThreadMs(pid);
      const during = current();
      await (await fetch(`${base}/healthz`)).text();
      const waited = performance.now() - from;
      const stall = Math.min(waited, mainThreadMs(pid) - busy);
      found.longestWaitMs = Math.max(found.longestWaitMs, waited);
      if (stall > found.longestStallMs) {
        found.longestStallMs = stall;
        found.during = during === current() ? during : `${during}, or ${current()}`;
      }
      await sleep(PROBE_MS);
    }
  })();
  probing.catch(() => {});
  return found;
}
