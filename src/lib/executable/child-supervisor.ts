import { type ChildProcess, spawn } from "node:child_process";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { setTimeout } from "#lib/base";

const LONGEST_WAIT_MS = 30_000;
/** A process that ran for this long did not fail at its start. */
const SETTLED_MS = 60_000;

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type ChildSupervisorOptions = {
  /** Delay of the first restart; it doubles with each failure at the start, up to 30 s. */
  firstWaitMs: number;
  spawn(index: number): ChildProcess;
  onError(index: number, error: Error): void;
  /** After each exit, also of one that was stopped. Returns false when the process must not be restarted. */
  onExit(index: number, exit: Exit): boolean;
  onRestart(index: number, exit: Exit, waitMs: number): void;
};

/** Spawns `vodbox` with `args`, as this process was started. */
export function spawnSelf(args: readonly string[], options: Parameters<typeof spawn>[2] & object): ChildProcess {
  const program = isSea() ? [] : [fileURLToPath(new URL("../../../cli/main.ts", import.meta.url))];
  return spawn(process.execPath, [...program, ...args], options);
}

/** Child processes by index: those that exit are restarted, until they are stopped together. */
export class ChildSupervisor {
  readonly #options: ChildSupervisorOptions;
  readonly #children = new Map<number, ChildProcess>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #isStopping = false;

  constructor(options: ChildSupervisorOptions) {
    this.#options = options;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  get children(): Iterable<ChildProcess> {
    return this.#children.values();
  }

  start(index: number, waitMs = this.#options.firstWaitMs): void {
    if (this.#isStopping) return;
    const startedAt = performance.now();
    const child = this.#options.spawn(index);
    this.#children.set(index, child);
    child.on("error", (error) => this.#options.onError(index, error));
    child.on("close", (code, signal) => {
      this.#children.delete(index);
      const exit = { code, signal };
      if (!this.#options.onExit(index, exit) || this.#isStopping) return;
      const wait = performance.now() - startedAt > SETTLED_MS ? this.#options.firstWaitMs : waitMs;
      this.#options.onRestart(index, exit, wait);
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.start(index, Math.min(wait * 2, LONGEST_WAIT_MS));
      }, wait);
      this.#timers.add(timer);
    });
  }

  /** Sends SIGTERM to all and resolves when they have exited. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const ended = [...this.children].map(
      (child) => new Promise<void>((resolve) => child.once("close", () => resolve())),
    );
    for (const child of this.children) child.kill("SIGTERM");
    await Promise.all(ended);
  }
}
