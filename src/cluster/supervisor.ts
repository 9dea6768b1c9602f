import { type ChildProcess, spawn } from "node:child_process";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { LockManager } from "../lib/lock-manager.ts";
import { randomName } from "../lib/tokens.ts";
import { type MetricsReport, SLOT_VARIABLE, type ToSupervisor, type ToWorker } from "./messages.ts";

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 30_000;
/** A process that ran this long has not been failing at its start. */
const SETTLED_MS = 60_000;
const PING_MS = 2000;
/** One whose event loop stands still for so many pings holds up whoever waits for its turn, and is ended. */
const MAX_UNANSWERED = 5;
/** One that hangs does not take the others' figures with it. */
const GATHER_MS = 1500;

type Where = { address: string; localAddress: string };
type Process = { slot: number; child: ChildProcess; where: Where | null; unanswered: number };
type Gathering = { asker: Process; id: number; waiting: Set<Process>; found: MetricsReport[]; done(): void };

/** A process ended before it could serve; it has said why. */
export class StartFailed extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("A process of the server ended before it was ready.");
    this.exitCode = exitCode;
  }
}

export type SupervisorOptions = {
  count: number;
  /** The arguments of `vodbox` that start the process of a slot. */
  argsOf(slot: number): string[];
  log: Logger;
  /** Whenever one has begun to listen, with where the first of them does. */
  onReady(where: Where): void;
};

/**
 * Several processes of this program on one data directory: starts them, starts again the one that died, hands out the
 * turns in which they write, and passes on what one tells the others. It serves nothing and opens no database, so there
 * is little that could end it.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #processes = new Map<number, Process>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #gatherings = new Map<number, Gathering>();
  readonly #localProof = randomName(40);
  readonly #turns = new LockManager<Process>({
    given: (to, id) => tell(to, { given: id }),
    wanted: (to, id) => tell(to, { wanted: id }),
  });
  readonly #posted = new Map<string, { by: Process; value: unknown }>();
  #count = 0;
  #stopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** The first alone, which migrates; then the others. Resolves when all listen. Throws when one ends before. */
  async start(): Promise<void> {
    try {
      await this.#begin(0, true);
      await Promise.all(Array.from({ length: this.#options.count - 1 }, (_, index) => this.#begin(index + 1, false)));
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Ends all of them; turns are given until the last has gone, for what they still write. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const ended = [...this.#processes.values()].map(
      ({ child }) => new Promise<void>((resolve) => child.once("close", () => resolve())),
    );
    for (const { child } of this.#processes.values()) child.kill("SIGTERM");
    await Promise.all(ended);
  }

  #begin(slot: number, isFirst: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const starting = { isFirst, resolve, reject };
      this.#spawn(slot, FIRST_WAIT_MS, starting);
    });
  }

  #spawn(slot: number, waitMs: number, starting?: { isFirst: boolean; resolve(): void; reject(e: Error): void }): void {
    const startedAt = performance.now();
    const program = isSea() ? [] : [fileURLToPath(new URL("../../cli/main.ts", import.meta.url))];
    const child = spawn(process.execPath, [...program, ...this.#options.argsOf(slot)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: { ...process.env, [SLOT_VARIABLE]: String(slot) },
    });
    const one: Process = { slot, child, where: null, unanswered: 0 };
    this.#processes.set(slot, one);
    let watch: NodeJS.Timeout | undefined;
    child.on("message", (message: ToSupervisor) => {
      if ("join" in message)
        tell(one, { welcome: { slot, isFirst: starting?.isFirst ?? false, localProof: this.#localProof } });
      else if ("ready" in message) {
        one.where = message.ready;
        watch = setInterval(() => this.#ping(one), PING_MS);
        const first = [...this.#processes.values()].toSorted((a, b) => a.slot - b.slot).find(({ where }) => where);
        this.#options.onReady(first?.where ?? message.ready);
        starting?.resolve();
      } else this.#hear(one, message);
    });
    child.on("error", (error) => this.#options.log.error({ err: error, process: slot }, "a process failed"));
    child.on("close", (code, signal) => {
      clearInterval(watch);
      this.#turns.gone(one);
      for (const [name, { by }] of this.#posted) if (by === one) this.#posted.delete(name);
      this.#processes.delete(slot);
      for (const gathering of this.#gatherings.values()) this.#answered(gathering, one);
      if (this.#stopping) return;
      if (starting && !one.where) {
        return starting.reject(new StartFailed(code || 1));
      }
      const wait = performance.now() - startedAt > SETTLED_MS ? FIRST_WAIT_MS : waitMs;
      this.#options.log.warn({ process: slot, code, signal, again_in_ms: wait }, "a process of the server ended");
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        this.#spawn(slot, Math.min(wait * 2, LONGEST_WAIT_MS));
      }, wait);
      this.#timers.add(timer);
    });
  }

  #ping(one: Process): void {
    if (one.unanswered++ < MAX_UNANSWERED) return tell(one, { ping: true });
    this.#options.log.error({ process: one.slot }, "a process of the server stands still, and is ended");
    one.child.kill("SIGKILL");
  }

  #hear(from: Process, message: Exclude<ToSupervisor, { join: true } | { ready: Where }>): void {
    if ("ask" in message) this.#turns.ask(from, message.ask);
    else if ("pong" in message) from.unanswered = 0;
    else if ("end" in message) this.#turns.end(from, message.end);
    else if ("hint" in message) {
      for (const other of this.#processes.values()) if (other !== from) tell(other, message);
    } else if ("post" in message) {
      this.#posted.set(message.post, { by: from, value: message.value });
      tell(from, { answer: message.id });
    } else if ("posted" in message) tell(from, { answer: message.id, value: this.#posted.get(message.posted)?.value });
    else if ("gather" in message) this.#gather(from, message.gather);
    else {
      const gathering = this.#gatherings.get(message.figures);
      if (gathering) this.#answered(gathering, from, { slot: from.slot, families: message.families });
    }
  }

  #gather(asker: Process, id: number): void {
    const number = ++this.#count;
    const waiting = new Set([...this.#processes.values()].filter(({ where }) => where !== null));
    const done = () => {
      clearTimeout(timer);
      this.#gatherings.delete(number);
      tell(asker, { answer: id, value: gathering.found.toSorted((a, b) => a.slot - b.slot) });
    };
    const gathering: Gathering = { asker, id, waiting, found: [], done };
    const timer = setTimeout(done, GATHER_MS);
    this.#gatherings.set(number, gathering);
    for (const one of waiting) tell(one, { figures: number });
  }

  #answered(gathering: Gathering, from: Process, figures?: MetricsReport): void {
    if (!gathering.waiting.delete(from)) return;
    if (figures) gathering.found.push(figures);
    if (gathering.waiting.size === 0) gathering.done();
  }
}

function tell({ child }: Process, message: ToWorker): void {
  // It may have gone between two messages; what it waited for went with it.
  if (child.connected) child.send(message, () => {});
}
