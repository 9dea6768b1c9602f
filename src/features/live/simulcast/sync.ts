import type { App } from "#app.ts";
import type { ToIngest } from "#live/ingest/messages.ts";
import { liveRegistry } from "../registry.ts";
import { sentTargets } from "./targets.ts";

/** Keeps the targets of running streams in the ingest process as they are in the database. */
export class TargetSync {
  readonly #app: App;
  readonly #send: (message: ToIngest) => void;
  /** What was sent last, by the name of the stream. */
  #sent = new Map<string, string>();
  #running: Promise<void> | null = null;
  #isStale = false;

  constructor(app: App, send: (message: ToIngest) => void) {
    this.#app = app;
    this.#send = send;
  }

  /** Never rejects. A call while another one is reading has it read again. */
  run(): Promise<void> {
    this.#isStale = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      try {
        await this.#read();
      } catch (error) {
        this.#app.log.warn({ err: error }, "simulcast targets could not be read");
      }
    }
  }

  async #read(): Promise<void> {
    const running = [...liveRegistry(this.#app).all()].filter(({ endedAt }) => endedAt === null);
    const targets = await sentTargets(
      this.#app,
      running.map(({ channelId }) => channelId),
    );
    const sent = new Map<string, string>();
    for (const { name, channelId } of running) {
      const list = targets.get(channelId) ?? [];
      const text = JSON.stringify(list);
      // A stream that has just opened may have begun with those before a change.
      if (this.#sent.get(name) !== text) this.#send({ type: "targets", channelId, targets: list });
      sent.set(name, text);
    }
    this.#sent = sent;
  }
}
