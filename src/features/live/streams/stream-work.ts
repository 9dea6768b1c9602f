import type { App } from "#app.ts";
import { setTimeout } from "#lib/base";

const RETRY_MS = 5000;

/** Work on the rows and recordings of streams, of each in order. */
export class StreamWork {
  readonly #app: App;
  readonly #last = new Map<string, Promise<void>>();

  constructor(app: App) {
    this.#app = app;
  }

  /** Runs `work` after all work on the stream before, and again until it succeeds or the server stops. */
  add(name: string, work: () => Promise<void>): void {
    const attempt = async (): Promise<void> => {
      try {
        await work();
      } catch (error) {
        if (this.#app.stopping.aborted) throw error;
        this.#app.log.error({ err: error, stream: name }, "a live stream could not be recorded yet");
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
        return attempt();
      }
    };
    const done = this.done(name)
      .then(attempt)
      .catch((error) => this.#app.log.error({ err: error, stream: name }, "the next start completes a live stream"))
      .finally(() => {
        if (this.#last.get(name) === done) this.#last.delete(name);
      });
    this.#last.set(name, done);
  }

  /** Resolves when all work on a stream is done. */
  async done(name: string): Promise<void> {
    await this.#last.get(name);
  }

  /** The same of all streams, with what is added meanwhile. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
