import type { App, Peers } from "../app.ts";
import type { Lock, LockOptions } from "../lib/lock-manager.ts";
import { connectBroadcast } from "./broadcast.ts";
import { type Broadcast, type MetricsReport, SLOT_VARIABLE, type ToSupervisor, type ToWorker } from "./messages.ts";

/** One of several processes on one data directory, as `serve` sees it. */
export type ClusterWorker = Peers & {
  readonly localProof: string;
  ready(where: { address: string; localAddress: string }): void;
  /** Gives the place up, for a process that cannot serve: an open channel would keep it alive. */
  leave(): void;
  /** From now on hints go both ways, and `figures` are told to whoever gathers them. */
  link(app: App, figures: () => MetricsReport["families"]): void;
};

/** The place that this process was started for; null when it was started by itself. */
export async function joinSupervisor(): Promise<ClusterWorker | null> {
  const isMember = process.env[SLOT_VARIABLE] !== undefined && process.send !== undefined;
  // What is started from here is no member.
  delete process.env[SLOT_VARIABLE];
  if (!isMember) return null;
  // Who keeps the turns is gone: nobody may write as if they were kept. A start is recovery.
  process.once("disconnect", end);
  return new Channel().join();
}

const end = () => process.exit(1);

/** The way to the keeper and back. */
class Channel {
  #count = 0;
  readonly #turns = new Map<number, { abort: AbortController; given: () => void }>();
  readonly #questions = new Map<number, (answer: unknown) => void>();
  readonly #welcome = Promise.withResolvers<Extract<ToWorker, { welcome: unknown }>["welcome"]>();
  #figures: () => MetricsReport["families"] = () => [];
  #hear: (hint: Broadcast) => void = () => {};

  async join(): Promise<ClusterWorker> {
    process.on("message", (message: ToWorker) => this.#take(message));
    this.#tell({ join: true });
    return {
      ...(await this.#welcome.promise),
      take: (name, options) => this.#turn(name, options),
      gather: async () => (await this.#ask((id) => ({ gather: id }))) as MetricsReport[],
      post: async (name, value) => void (await this.#ask((id) => ({ post: name, value, id }))),
      posted: (name) => this.#ask((id) => ({ posted: name, id })),
      leave() {
        process.off("disconnect", end);
        if (process.connected) process.disconnect();
      },
      ready: (where) => this.#tell({ ready: where }),
      link: (app, figures) => {
        this.#figures = figures;
        this.#hear = connectBroadcast(app, (hint) => this.#tell({ hint }));
      },
    };
  }

  #tell(message: ToSupervisor): void {
    if (process.connected) process.send?.(message);
  }

  #take(message: ToWorker): void {
    if ("given" in message) this.#turns.get(message.given)?.given();
    else if ("wanted" in message) this.#turns.get(message.wanted)?.abort.abort();
    else if ("hint" in message) this.#hear(message.hint);
    else if ("ping" in message) this.#tell({ pong: true });
    else if ("figures" in message) this.#tell({ figures: message.figures, families: this.#figures() });
    else if ("answer" in message) {
      this.#questions.get(message.answer)?.(message.value);
      this.#questions.delete(message.answer);
    } else this.#welcome.resolve(message.welcome);
  }

  #turn(name: string, options: LockOptions = {}): Promise<Lock> {
    const id = ++this.#count;
    const abort = new AbortController();
    const end = () => {
      if (this.#turns.delete(id)) this.#tell({ end: { id, name } });
    };
    return new Promise((resolve) => {
      this.#turns.set(id, { abort, given: () => resolve({ wanted: abort.signal, end }) });
      this.#tell({ ask: { id, name, ...options } });
    });
  }

  #ask(question: (id: number) => ToSupervisor): Promise<unknown> {
    const id = ++this.#count;
    return new Promise((resolve) => {
      this.#questions.set(id, resolve);
      this.#tell(question(id));
    });
  }
}
