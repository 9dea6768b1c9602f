import type { HranaPost, HranaStream } from "./hrana-stream.ts";
import {
  type BatchResult,
  type Step,
  toError,
  type WireError,
  type WireRequest,
  type WireResult,
  type WireStatement,
} from "./hrana-wire.ts";

type Answered = { type: "ok"; response: { result?: unknown } } | { type: "error"; error: WireError };
type Pipeline = { baton: string | null; base_url: string | null; results: Answered[] };
type Entry = { request: WireRequest; resolve: (result: unknown) => void; reject: (error: unknown) => void };

/** A server closes a stream after 10 s of silence; ours is closed well before. */
const IDLE_MS = 5000;

/**
 * A stream over HTTP: one POST for all requests of an event loop iteration, then one for those that arrived meanwhile.
 * The server identifies it by the baton of its last response.
 */
export class HttpStream implements HranaStream {
  readonly #server: HranaPost;
  #base: URL;
  #baton: string | null = null;
  #waiting: Entry[] = [];
  #isSending = false;
  #fault: Error | null = null;
  #usedAt = performance.now();

  constructor(server: HranaPost) {
    this.#server = server;
    this.#base = server.base;
  }

  get isStale(): boolean {
    const isForgotten = this.#baton !== null && performance.now() - this.#usedAt > IDLE_MS;
    return this.#fault !== null || isForgotten || this.#server.hasSocket;
  }

  execute(stmt: WireStatement): Promise<WireResult> {
    return this.#ask({ type: "execute", stmt }) as Promise<WireResult>;
  }

  batch(steps: Step[]): Promise<BatchResult> {
    return this.#ask({ type: "batch", batch: { steps } }) as Promise<BatchResult>;
  }

  close(): void {
    if (this.#fault === null && (this.#baton !== null || this.#isSending)) this.#ask({ type: "close" }).catch(() => {});
    this.#fault ??= new Error("The stream is closed.");
  }

  #ask(request: WireRequest): Promise<unknown> {
    if (this.#fault) return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (this.#isSending || this.#waiting.length > 1) return;
      queueMicrotask(() => void this.#send());
    });
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      const entries = this.#waiting.splice(0);
      try {
        this.#settle(entries, await this.#exchange(entries));
      } catch (error) {
        this.#fault = error as Error;
        this.#abandon();
        for (const { reject } of entries.concat(this.#waiting.splice(0))) reject(error);
      }
    }
    this.#isSending = false;
  }

  /** If the request never arrived, its transaction still holds the write lock, and the baton is still valid. */
  #abandon(): void {
    if (this.#baton === null) return;
    const body = JSON.stringify({ baton: this.#baton, requests: [{ type: "close" }] });
    this.#server.post(new URL("v3/pipeline", this.#base), body).catch(() => {});
  }

  async #exchange(entries: Entry[]): Promise<Answered[]> {
    const body = JSON.stringify({ baton: this.#baton, requests: entries.map(({ request }) => request) });
    const answer = (await this.#server.post(new URL("v3/pipeline", this.#base), body)) as Pipeline;
    this.#baton = answer.baton;
    // The stream may be on one of several servers behind the URL.
    if (answer.base_url) this.#base = new URL(answer.base_url.endsWith("/") ? answer.base_url : `${answer.base_url}/`);
    this.#usedAt = performance.now();
    return answer.results;
  }

  #settle(entries: Entry[], results: Answered[]): void {
    for (const [i, { resolve, reject }] of entries.entries()) {
      const one = results[i];
      if (one?.type === "ok") resolve(one.response.result);
      else
        reject(one?.type === "error" ? toError(one.error) : new Error("The database server did not answer a request."));
    }
  }
}
