import type { App, Peers } from "#app.ts";
import type { Lock, LockOptions } from "#lib/base";
import { connectBroadcast } from "./broadcast.ts";
import {
  type Broadcast,
  type Listening,
  type MetricsReport,
  SLOT_VARIABLE,
  type ToSupervisor,
  type ToWorker,
} from "./messages.ts";

/** One of several processes on one data directory, as `serve` uses it. */
export type ClusterWorker = Peers & {
  readonly localProof: string;
  ready(where: Listening): void;
  /** Closes the channel to the supervisor, which would keep a process alive that cannot serve. */
  leave(): void;
  /** Starts sending and receiving broadcasts, and answers the supervisor's requests for `figures`. */
  link(app: App, figures: () => MetricsReport["families"]): void;
};

/** The membership of this process; null when no supervisor started it. */
export async function joinSupervisor(): Promise<ClusterWorker | null> {
  const isMember = process.env[SLOT_VARIABLE] !== undefined && process.send !== undefined;
  // Processes that are started from here are not cluster workers.
  delete process.env[SLOT_VARIABLE];
  if (!isMember) return null;
  // Without the supervisor there are no locks, so this process must not write. The next start recovers.
  process.once("disconnect", end);
  return new Channel().join();
}

const end = () => process.exit(1);

/** The channel to the supervisor. */
class Channel {
  #count = 0;
  readonly #locks = new Map<number, { abort: AbortController; granted: () => void }>();
  readonly #topics = new Map<string, (value: unknown, from: number) => void>();
  readonly #pendingRequests = new Map<number, (answer: unknown) => void>();
  readonly #welcome = Promise.withResolvers<Omit<Extract<ToWorker, { type: "welcome" }>, "type">>();
  #figures: () => MetricsReport["families"] = () => [];
  #receiveBroadcast: (broadcast: Broadcast) => void = () => {};

  async join(): Promise<ClusterWorker> {
    process.on("message", (message: ToWorker) => this.#receive(message));
    this.#send({ type: "join" });
    return {
      ...(await this.#welcome.promise),
      take: (name, options) => this.#acquire(name, options),
      gather: async () => (await this.#ask((id) => ({ type: "gather", id }))) as MetricsReport[],
      post: async (name, value) => void (await this.#ask((id) => ({ type: "post", name, value, id }))),
      publish: (topic, value, to) => this.#send({ type: "publish", topic, value, to: to ?? null }),
      subscribe: (topic, receive) => void this.#topics.set(topic, receive),
      posted: (name) => this.#ask((id) => ({ type: "posted", name, id })),
      leave() {
        process.off("disconnect", end);
        if (process.connected) process.disconnect();
      },
      ready: (where) => this.#send({ type: "ready", where }),
      link: (app, figures) => {
        this.#figures = figures;
        this.#receiveBroadcast = connectBroadcast(app, (broadcast) => this.#send({ type: "broadcast", broadcast }));
      },
    };
  }

  #send(message: ToSupervisor): void {
    if (process.connected) process.send?.(message);
  }

  #receive(message: ToWorker): void {
    switch (message.type) {
      case "welcome": {
        const { type: _, ...welcome } = message;
        return this.#welcome.resolve(welcome);
      }
      case "granted":
        return this.#locks.get(message.id)?.granted();
      case "contested":
        return this.#locks.get(message.id)?.abort.abort();
      case "broadcast":
        return this.#receiveBroadcast(message.broadcast);
      case "published":
        return this.#topics.get(message.topic)?.(message.value, message.from);
      case "ping":
        return this.#send({ type: "pong" });
      case "figures":
        return this.#send({ type: "figures", number: message.number, families: this.#figures() });
      case "answer":
        this.#pendingRequests.get(message.id)?.(message.value);
        this.#pendingRequests.delete(message.id);
        return;
      default:
        message satisfies never;
    }
  }

  #acquire(name: string, options: LockOptions = {}): Promise<Lock> {
    const id = ++this.#count;
    const abort = new AbortController();
    const end = () => {
      if (this.#locks.delete(id)) this.#send({ type: "unlock", id, name });
    };
    return new Promise((resolve) => {
      this.#locks.set(id, { abort, granted: () => resolve({ contested: abort.signal, end }) });
      this.#send({ type: "lock", request: { id, name, ...options } });
    });
  }

  #ask(question: (id: number) => ToSupervisor): Promise<unknown> {
    const id = ++this.#count;
    return new Promise((resolve) => {
      this.#pendingRequests.set(id, resolve);
      this.#send(question(id));
    });
  }
}
