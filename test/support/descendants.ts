import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A process, told from a later one of the same number by its start. */
export type ProcessId = { pid: number; start: string; command: string };

function read(pid: number): (ProcessId & { parent: number }) | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command in parentheses may hold anything, so fields are counted from the last ")".
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    // A zombie does nothing any more; its parent has yet to hear of it.
    if (fields[0] === "Z") return null;
    return { pid, start: fields[19] as string, parent: Number(fields[1]), command };
  } catch {
    return null;
  }
}

/** Every living process below `pid`. */
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

/** Looks until `condition` holds; there is no event to wait for. Resolves with what it gave, and throws when it is late. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = 30_000,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await sleep(25);
  }
}

export const untilGone = (processes: ProcessId[], limitMs: number) =>
  until(
    `all gone: ${processes.map((one) => one.command.slice(0, 100)).join(" | ")}`,
    () => !processes.some(isAlive),
    limitMs,
  );
