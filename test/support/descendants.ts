import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A process, distinguished by its start time from a later one with the same pid. */
export type ProcessId = { pid: number; start: string; command: string };

function read(pid: number): (ProcessId & { parent: number }) | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command in parentheses may contain any character, so fields are counted from the last ")".
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    // A zombie has exited; its parent has not collected it yet.
    if (fields[0] === "Z") return null;
    return { pid, start: fields[19] as string, parent: Number(fields[1]), command };
  } catch {
    return null;
  }
}

/** Every running process below `pid`. */
export function descendantsOf(pid: number): ProcessId[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => read(Number(name)))
    .filter((found) => found !== null);
  const below = (parent: number): ProcessId[] =>
    all.filter((one) => one.parent === parent).flatMap(({ parent: _, ...one }) => [one, ...below(one.pid)]);
  return below(pid);
}

export const isAlive = ({ pid, start }: ProcessId) => read(pid)?.start === start;

/** Sends a signal to each process that still runs: an encode has some that end soon. */
export function signalAll(processes: readonly { pid: number }[], signal: NodeJS.Signals): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** How much slower than usual a machine may be: the processors of virtual ones were seen at a third of their speed. */
const PATIENCE = 3;
/** Between two looks. Most wait for seconds, and each look takes processor time from what is waited for. */
const MAX_PAUSE_MS = 60;

/** Polls until `condition` is true; there is no event to wait for. Resolves with its result, and throws on timeout. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = 30_000,
): Promise<NonNullable<T>> {
  const patientMs = limitMs * PATIENCE;
  const deadline = performance.now() + patientMs;
  for (let pauseMs = 20; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 1.2)) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`Not within ${patientMs} ms: ${what}`);
    await sleep(pauseMs);
  }
}

export const untilGone = (processes: ProcessId[], limitMs = 30_000) =>
  until(
    `all gone: ${processes.map((one) => one.command.slice(0, 100)).join(" | ")}`,
    () => !processes.some(isAlive),
    limitMs,
  );
