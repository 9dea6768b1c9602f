import { setInterval } from "#lib/base";
import { DatabaseUnreachable } from "./failures.ts";
import { type HranaStream, SILENCE_MS } from "./hrana-stream.ts";
import {
  type BatchResult,
  type Step,
  toError,
  type WireError,
  type WireRequest,
  type WireResult,
  type WireStatement,
} from "./hrana-wire.ts";

type Message =
  | { type: "hello_ok" }
  | { type: "hello_error"; error: WireError }
  | { type: "response_ok"; request_id: number; response: { result?: unknown } }
  | { type: "response_error"; request_id: number; error: WireError };
type PendingRequest = { resolve: (result: unknown) => void; reject: (error: unknown) => void; at: number };
export type SocketEvents = { opened: () => void; ended: () => void };

/** One WebSocket with many streams. When it closes, all streams and their transactions end. */
export class HranaSocket {
  readonly #socket: WebSocket;
  readonly #asked = new Map<number, PendingRequest>();
  readonly #watch: NodeJS.Timeout;
  readonly #events: SocketEvents;
  /** Requests from before it was open. */
  #early: string[] | null;
  #ids = 0;
  #heardAt = 0;
  #fault: Error | null = null;

  constructor(url: URL, jwt: string | undefined, events: SocketEvents) {
    this.#events = events;
    this.#early = [JSON.stringify({ type: "hello", jwt: jwt ?? null })];
    // The subprotocol of Hrana 3 in JSON.
    this.#socket = new WebSocket(url, ["hrana3"]);
    this.#socket.onopen = () => {
      for (const text of this.#early ?? []) this.#socket.send(text);
      this.#early = null;
    };
    this.#socket.onmessage = ({ data }) => this.#take(String(data));
    this.#socket.onerror = (event) => this.#end((event as Event & { message?: string }).message || "it refuses");
    this.#socket.onclose = ({ reason }) => this.#end(reason || "the connection was cut");
    this.#watch = setInterval(() => this.#look(), 1000).unref();
  }

  get isOver(): boolean {
    return this.#fault !== null;
  }

  stream(): SocketStream {
    const id = ++this.#ids;
    this.ask({ type: "open_stream", stream_id: id }).catch(() => {});
    return new SocketStream(this, id);
  }

  /** The result of one request. Throws LibsqlError, or DatabaseAway. */
  ask(request: object): Promise<unknown> {
    if (this.#fault) return Promise.reject(this.#fault);
    const request_id = ++this.#ids;
    return new Promise((resolve, reject) => {
      this.#asked.set(request_id, { resolve, reject, at: performance.now() });
      const text = JSON.stringify({ type: "request", request_id, request });
      if (this.#early) this.#early.push(text);
      else this.#socket.send(text);
    });
  }

  close(): void {
    this.#end("it was closed");
  }

  #take(text: string): void {
    this.#heardAt = performance.now();
    const message = JSON.parse(text) as Message;
    if (message.type === "hello_ok") return this.#events.opened();
    if (message.type === "hello_error") return this.#end(message.error.message);
    const request = this.#asked.get(message.request_id);
    this.#asked.delete(message.request_id);
    if (message.type === "response_ok") request?.resolve(message.response.result);
    else request?.reject(toError(message.error));
  }

  #look(): void {
    const [oldest] = this.#asked.values();
    // A server that answers other requests is available: one of them is slow.
    if (oldest && performance.now() - Math.max(oldest.at, this.#heardAt) > SILENCE_MS)
      this.#end(`no data for ${SILENCE_MS / 1000} s`);
  }

  #end(reason: string): void {
    if (this.#fault) return;
    this.#fault = new DatabaseUnreachable(`The database server is not responding: ${reason}.`);
    clearInterval(this.#watch);
    this.#socket.close();
    for (const { reject } of this.#asked.values()) reject(this.#fault);
    this.#asked.clear();
    this.#events.ended();
  }
}

/** A stream is one connection to the database; its requests are answered in order. */
class SocketStream implements HranaStream {
  readonly #socket: HranaSocket;
  readonly #id: number;
  #isClosed = false;

  constructor(socket: HranaSocket, id: number) {
    this.#socket = socket;
    this.#id = id;
  }

  get isStale(): boolean {
    return this.#isClosed || this.#socket.isOver;
  }

  execute(stmt: WireStatement): Promise<WireResult> {
    return this.#ask({ type: "execute", stmt }) as Promise<WireResult>;
  }

  batch(steps: Step[]): Promise<BatchResult> {
    return this.#ask({ type: "batch", batch: { steps } }) as Promise<BatchResult>;
  }

  close(): void {
    if (this.isStale) return;
    this.#isClosed = true;
    this.#socket.ask({ type: "close_stream", stream_id: this.#id }).catch(() => {});
  }

  #ask(request: WireRequest): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new Error("The stream is closed."));
    return this.#socket.ask({ ...request, stream_id: this.#id });
  }
}
