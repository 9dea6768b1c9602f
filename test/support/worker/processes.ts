import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Command lines of all running processes that contain `text`. */
export function processesWith(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    })
    .filter((line) => line.includes(text));
}

/** Between two looks, each of which reads the command line of every process of the machine. */
const PAUSE_MS = 60;

/** Polls /proc until `condition` is true for the processes that contain `text`. There is no event to wait for. */
export async function untilProcesses(
  text: string,
  condition: (lines: string[]) => boolean,
  limitMs = 30_000,
): Promise<void> {
  const start = performance.now();
  while (!condition(processesWith(text))) {
    if (performance.now() - start > limitMs)
      throw new Error(`After ${limitMs} ms: ${processesWith(text).join("\n") || "none"}`);
    await sleep(PAUSE_MS);
  }
}
