import type { ChildProcess } from "node:child_process";
import type { Logger } from "pino";
import { LockManager, randomName, setInterval, setTimeout } from "#lib/base";
import { ChildSupervisor, type Exit, spawnSelf } from "#lib/executable";
import { type Listening, type MetricsReport, SLOT_VARIABLE, type ToSupervisor, type ToWorker } from "./messages.ts";

const FIRST_WAIT_MS = 200;
const PING_MS = 2000;
/** A process whose event loop misses this many pings blocks all that wait for its locks, and is killed. */
const MAX_UNANSWERED = 5;
/** A process that hangs must not delay the counters of the others. */
const GATHER_MS = 1500;

type Process = {
  slot: number;
  child: ChildProcess;
  where: Listening | null;
  unanswered: number;
  pings?: NodeJS.Timeout;
};
type Starting = { isFirst: boolean; resolve(): void; reject(error: Error): void };
type Gathering = { asker: Process; id: number; waiting: Set<Process>; found: MetricsReport[]; done(): void };

/** A process exited before it could serve. It has already logged the reason. */
export class StartFailed extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("A server process exited before it was ready.");
    this.exitCode = exitCode;
  }
}

export type SupervisorOptions = {
  count: number;
  /** The arguments of `vodbox` that start the process with this index. */
  argsOf(slot: number): string[];
  log: Logger;
  /** Called when a process has begun to listen, with the URL of the first one. */
  onReady(where: Listening): void;
};

/**
 * Runs several processes of this program on one data directory: starts them, restarts one that exits, grants the locks
 * under which they write, and relays broadcasts. It serves no requests and opens no database, so that little can make
 * it fail.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #processes = new Map<number, Process>();
  readonly #children: ChildSupervisor;
  /** The processes that have not listened yet since the start. */
  readonly #starting = new Map<number, Starting>();
  readonly #gatherings = new Map<number, Gathering>();
  readonly #localProof = randomName(40);
  readonly #locks = new LockManager<Process>({
    granted: (to, id) => send(to, { type: "granted", id }),
    contested: (to, id) => send(to, { type: "contested", id }),
  });
  readonly #posted = new Map<string, { by: Process; value: unknown }>();
  #count = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { log } = options;
    this.#children = new ChildSupervisor({
      firstWaitMs: FIRST_WAIT_MS,
      spawn: (slot) => this.#spawn(slot),
      onError: (slot, error) => log.error({ err: error, process: slot }, "a server process could not be started"),
      onExit: (slot, exit) => this.#exited(slot, exit),
      onRestart: (slot, exit, waitMs) =>
        log.warn({ process: slot, ...exit, again_in_ms: waitMs }, "a server process exited"),
    });
  }

  /**
   * Starts the first process alone, because it migrates the database, then the others. Resolves when all listen. Throws
   * when one exits before that.
   */
  async start(): Promise<void> {
    try {
      await this.#begin(0, true);
      await Promise.all(Array.from({ length: this.#options.count - 1 }, (_, index) => this.#begin(index + 1, false)));
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Stops all processes. Locks are granted until the last one has exited, because they still write while stopping. */
  stop(): Promise<void> {
    return this.#children.stop();
  }

  #begin(slot: number, isFirst: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#starting.set(slot, { isFirst, resolve, reject });
      this.#children.start(slot);
    });
  }

  #spawn(slot: number): ChildProcess {
    const child = spawnSelf(this.#options.argsOf(slot), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: { ...process.env, [SLOT_VARIABLE]: String(slot) },
    });
    const one: Process = { slot, child, where: null, unanswered: 0 };
    this.#processes.set(slot, one);
    child.on("message", (message: ToSupervisor) => this.#receive(one, message));
    return child;
  }

  #ready(one: Process, where: Listening): void {
    one.where = where;
    one.pings = setInterval(() => this.#ping(one), PING_MS);
    const first = [...this.#processes.values()].toSorted((a, b) => a.slot - b.slot).find((each) => each.where);
    this.#options.onReady(first?.where ?? where);
    this.#starting.get(one.slot)?.resolve();
    this.#starting.delete(one.slot);
  }

  /** False for a process that has exited before it could serve: the start fails. */
  #exited(slot: number, { code }: Exit): boolean {
    const one = this.#processes.get(slot) as Process;
    clearInterval(one.pings);
    this.#locks.gone(one);
    for (const [name, { by }] of this.#posted) if (by === one) this.#posted.delete(name);
    this.#processes.delete(slot);
    for (const gathering of this.#gatherings.values()) this.#answered(gathering, one);
    // A stop during the start is not a failure of the start.
    if (this.#children.isStopping) return false;
    this.#starting.get(slot)?.reject(new StartFailed(code || 1));
    return !this.#starting.delete(slot);
  }

  #ping(one: Process): void {
    if (one.unanswered++ < MAX_UNANSWERED) return send(one, { type: "ping" });
    this.#options.log.error({ process: one.slot }, "a server process is unresponsive and is killed");
    one.child.kill("SIGKILL");
  }

  #receive(from: Process, message: ToSupervisor): void {
    switch (message.type) {
      case "join": {
        const isFirst = this.#starting.get(from.slot)?.isFirst ?? false;
        return send(from, { type: "welcome", slot: from.slot, isFirst, localProof: this.#localProof });
      }
      case "ready":
        return this.#ready(from, message.where);
      case "lock":
        return this.#locks.ask(from, message.request);
      case "unlock":
        return this.#locks.end(from, message);
      case "pong":
        from.unanswered = 0;
        return;
      case "broadcast":
        return this.#sendToOthers(from, null, message);
      case "publish": {
        const { topic, value, to } = message;
        return this.#sendToOthers(from, to, { type: "published", topic, value, from: from.slot });
      }
      case "post":
        this.#posted.set(message.name, { by: from, value: message.value });
        return send(from, { type: "answer", id: message.id });
      case "posted":
        return send(from, { type: "answer", id: message.id, value: this.#posted.get(message.name)?.value });
      case "gather":
        return this.#gather(from, message.id);
      case "figures": {
        const gathering = this.#gatherings.get(message.number);
        if (gathering) this.#answered(gathering, from, { slot: from.slot, families: message.families });
        return;
      }
      default:
        message satisfies never;
    }
  }

  /** `to`: null for all processes but the sender. */
  #sendToOthers(from: Process, to: number | null, message: ToWorker): void {
    for (const other of this.#processes.values())
      if (other !== from && (to === null || other.slot === to)) send(other, message);
  }

  #gather(asker: Process, id: number): void {
    const number = ++this.#count;
    const waiting = new Set([...this.#processes.values()].filter(({ where }) => where !== null));
    const done = () => {
      clearTimeout(timer);
      this.#gatherings.delete(number);
      send(asker, { type: "answer", id, value: gathering.found.toSorted((a, b) => a.slot - b.slot) });
    };
    const gathering: Gathering = { asker, id, waiting, found: [], done };
    const timer = setTimeout(done, GATHER_MS);
    this.#gatherings.set(number, gathering);
    for (const one of waiting) send(one, { type: "figures", number });
  }

  #answered(gathering: Gathering, from: Process, figures?: MetricsReport): void {
    if (!gathering.waiting.delete(from)) return;
    if (figures) gathering.found.push(figures);
    if (gathering.waiting.size === 0) gathering.done();
  }
}

function send({ child }: Process, message: ToWorker): void {
  // The process may have exited between two messages; its lock requests are gone too.
  if (child.connected) child.send(message, () => {});
}
