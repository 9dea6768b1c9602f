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
  readonly #welcome = Promise.withResolvers<Extract<ToWorker, { welcome: unknown }>["welcome"]>();
  #figures: () => MetricsReport["families"] = () => [];
  #receiveBroadcast: (broadcast: Broadcast) => void = () => {};

  async join(): Promise<ClusterWorker> {
    process.on("message", (message: ToWorker) => this.#receive(message));
    this.#send({ join: true });
    return {
      ...(await this.#welcome.promise),
      take: (name, options) => this.#acquire(name, options),
      gather: async () => (await this.#ask((id) => ({ gather: id }))) as MetricsReport[],
      post: async (name, value) => void (await this.#ask((id) => ({ post: name, value, id }))),
      publish: (topic, value, to) => this.#send({ publish: topic, value, to: to ?? null }),
      subscribe: (topic, receive) => void this.#topics.set(topic, receive),
      posted: (name) => this.#ask((id) => ({ posted: name, id })),
      leave() {
        process.off("disconnect", end);
        if (process.connected) process.disconnect();
      },
      ready: (where) => this.#send({ ready: where }),
      link: (app, figures) => {
        this.#figures = figures;
        this.#receiveBroadcast = connectBroadcast(app, (broadcast) => this.#send({ broadcast }));
      },
    };
  }

  #send(message: ToSupervisor): void {
    if (process.connected) process.send?.(message);
  }

  #receive(message: ToWorker): void {
    if ("granted" in message) this.#locks.get(message.granted)?.granted();
    else if ("contested" in message) this.#locks.get(message.contested)?.abort.abort();
    else if ("broadcast" in message) this.#receiveBroadcast(message.broadcast);
    else if ("topic" in message) this.#topics.get(message.topic)?.(message.value, message.from);
    else if ("ping" in message) this.#send({ pong: true });
    else if ("figures" in message) this.#send({ figures: message.figures, families: this.#figures() });
    else if ("answer" in message) {
      this.#pendingRequests.get(message.answer)?.(message.value);
      this.#pendingRequests.delete(message.answer);
    } else this.#welcome.resolve(message.welcome);
  }

  #acquire(name: string, options: LockOptions = {}): Promise<Lock> {
    const id = ++this.#count;
    const abort = new AbortController();
    const end = () => {
      if (this.#locks.delete(id)) this.#send({ end: { id, name } });
    };
    return new Promise((resolve) => {
      this.#locks.set(id, { abort, granted: () => resolve({ contested: abort.signal, end }) });
      this.#send({ ask: { id, name, ...options } });
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
