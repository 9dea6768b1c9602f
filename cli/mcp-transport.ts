import { PassThrough, type Readable } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { setTimeout } from "#lib/base";

/** An agent that closes standard input waits for no longer either. */
const ANSWER_MS = 10_000;

/**
 * Messages of an agent, one in each line of `source`. At its end, requests that are in work are answered first, within ten
 * seconds: scripts send all of their requests and close the stream at once. The library's transport would abort them.
 */
export class AnsweringTransport extends StdioServerTransport {
  readonly #input: PassThrough;
  readonly #open = new Set<unknown>();
  #isEnding = false;

  constructor(source: Readable) {
    const input = new PassThrough();
    super(input);
    this.#input = input;
    source.pipe(input, { end: false });
    source.once("end", () => this.#end()).once("close", () => this.#end());
  }

  override async start(): Promise<void> {
    const deliver = this.onmessage;
    this.onmessage = (message) => {
      const { id, method, params } = message as { id?: unknown; method?: string; params?: { requestId?: unknown } };
      if (method !== undefined && id !== undefined) this.#open.add(id);
      // It gets no answer.
      if (method === "notifications/cancelled") this.#open.delete(params?.requestId);
      deliver?.(message);
    };
    await super.start();
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    await super.send(message);
    if ("method" in message) return;
    this.#open.delete(message.id);
    this.#endWhenAnswered();
  }

  #end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    setTimeout(() => this.#input.end(), ANSWER_MS).unref();
    setImmediate(() => this.#endWhenAnswered());
  }

  #endWhenAnswered(): void {
    if (!this.#isEnding || this.#open.size > 0) return;
    // The last lines are still on their way through the stream.
    if (this.#input.readableLength + this.#input.writableLength > 0) setImmediate(() => this.#endWhenAnswered());
    else this.#input.end();
  }

  /** Resolves when nothing more is answered. */
  get ended(): Promise<void> {
    return new Promise((resolve) => this.#input.once("end", resolve).once("close", resolve));
  }
}
