import { type App, forApp } from "#app.ts";
import { setTimeout } from "#lib/base";
import type { FromIngestOf, ToIngest } from "#live/ingest/messages.ts";
import type { WhipAnswer, WhipRequest } from "#live/whip/messages.ts";

const TOPIC = "whip";
const ANSWER_MS = 10_000;

const unavailable: WhipAnswer = {
  status: 503,
  message: "The server cannot accept a stream at this time. Try again in a minute.",
};

/** Messages between the processes of a server (`serve --processes`). */
type Relayed =
  | { type: "request"; number: number; request: WhipRequest }
  | { type: "answer"; number: number; answer: WhipAnswer };

/** HTTP requests of WHIP publishers, on their way to the ingest process of this server, which one of its processes has. */
class WhipRequests {
  readonly #app: App;
  readonly #pending = new Map<number, (answer: WhipAnswer) => void>();
  #count = 0;
  #send: ((number: number, request: WhipRequest) => void) | null = null;

  constructor(app: App) {
    this.#app = app;
  }

  /** This process has the ingest process; `send` is the channel to it. */
  lead(send: (message: ToIngest) => void): void {
    this.#send = (number, request) => send({ type: "whip", number, request });
    this.#app.peers?.subscribe(TOPIC, (value, from) => {
      const message = value as Relayed;
      if (message.type !== "request") return;
      const { number, request } = message;
      void this.pass(request).then((answer) =>
        this.#app.peers?.publish(TOPIC, { type: "answer", number, answer } satisfies Relayed, from),
      );
    });
  }

  /** Another process, `leader`, has it. */
  follow(leader: number): void {
    this.#send = (number, request) =>
      this.#app.peers?.publish(TOPIC, { type: "request", number, request } satisfies Relayed, leader);
    this.#app.peers?.subscribe(TOPIC, (value) => {
      const message = value as Relayed;
      if (message.type === "answer") this.answer(message);
    });
  }

  answer({ number, answer }: Pick<FromIngestOf<"whip">, "number" | "answer">): void {
    this.#pending.get(number)?.(answer);
  }

  /** The ingest process has exited. */
  clear(): void {
    for (const resolve of [...this.#pending.values()]) resolve(unavailable);
  }

  /** Resolves with the answer of the ingest process, or 503. */
  async pass(request: WhipRequest): Promise<WhipAnswer> {
    if (this.#send === null) return unavailable;
    const number = ++this.#count;
    const { promise, resolve } = Promise.withResolvers<WhipAnswer>();
    const timer = setTimeout(() => resolve(unavailable), ANSWER_MS);
    this.#pending.set(number, resolve);
    this.#send(number, request);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(number);
    }
  }
}

export const whipRequests = forApp((app) => new WhipRequests(app));
