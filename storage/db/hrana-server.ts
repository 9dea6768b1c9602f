import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { expandConfig } from "@libsql/core/config";
import { encodeBaseUrl } from "@libsql/core/uri";
import type { DatabaseAddress } from "./database.ts";
import { DatabaseUnreachable } from "./failures.ts";
import { HttpStream } from "./hrana-http.ts";
import { HranaSocket } from "./hrana-socket.ts";
import { type HranaPost, type HranaStream, SILENCE_MS } from "./hrana-stream.ts";

/** Delay before a failed WebSocket is tried again; doubles each time. */
const TRY_AGAIN_MS = 1000;
const TRY_AGAIN_MOST_MS = 60_000;

/**
 * A libSQL server and its transport: a WebSocket, with which a statement takes two thirds of its time over HTTP, and
 * HTTP where a WebSocket is not available.
 */
export class HranaServer implements HranaPost {
  readonly base: URL;
  readonly #agent: HttpAgent;
  readonly #send: typeof httpRequest;
  readonly #headers: Record<string, string>;
  readonly #authToken: string | undefined;
  #socket: HranaSocket | null = null;
  #isOpen = false;
  #refusals = 0;
  #tryAgainAt = 0;

  constructor({ url, authToken }: DatabaseAddress) {
    // URL schemes as in @libsql/client: `libsql://` is https, with `?tls=0` http.
    const config = expandConfig({ url, ...(authToken ? { authToken } : {}) }, true);
    const isTls = config.scheme === "https";
    if (!isTls && config.scheme !== "http")
      throw new Error(`The URL of a remote database must start with libsql:, https: or http:, not ${config.scheme}:.`);
    const base = encodeBaseUrl(config.scheme, config.authority, config.path);
    this.base = new URL(base.href.endsWith("/") ? base.href : `${base.href}/`);
    this.#agent = isTls ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
    this.#send = isTls ? httpsRequest : httpRequest;
    this.#headers = { "content-type": "application/json" };
    this.#authToken = config.authToken;
    if (config.authToken) this.#headers.authorization = `Bearer ${config.authToken}`;
  }

  get hasSocket(): boolean {
    return this.#isOpen;
  }

  stream(): HranaStream {
    if (this.#socket === null && performance.now() >= this.#tryAgainAt) this.#connect();
    // Until one has been open, no request waits for it: it may never open.
    return this.#socket && (this.#isOpen || this.#refusals === 0) ? this.#socket.stream() : new HttpStream(this);
  }

  #connect(): void {
    const address = new URL(this.base);
    address.protocol = this.base.protocol === "https:" ? "wss:" : "ws:";
    this.#socket = new HranaSocket(address, this.#authToken, {
      opened: () => {
        this.#isOpen = true;
        this.#refusals = 0;
      },
      ended: () => {
        if (!this.#isOpen) {
          this.#tryAgainAt = performance.now() + Math.min(TRY_AGAIN_MOST_MS, TRY_AGAIN_MS * 2 ** this.#refusals++);
        }
        this.#socket = null;
        this.#isOpen = false;
      },
    });
  }

  /** The JSON of the whole response. Throws DatabaseAway when there is none, or it refuses the request. */
  async post(url: URL, body: string): Promise<unknown> {
    const { status, text } = await this.#exchange(url, body).catch((error: Error) => {
      throw new DatabaseUnreachable(`The database server is not responding: ${error.message}`, { cause: error });
    });
    try {
      if (status === 200) return JSON.parse(text);
    } catch {
      // Probably the page of an intermediary.
    }
    throw new DatabaseUnreachable(`The database server responded with status ${status}: ${text.slice(0, 200)}`);
  }

  close(): void {
    this.#tryAgainAt = Number.POSITIVE_INFINITY;
    this.#socket?.close();
    this.#agent.destroy();
  }

  #exchange(url: URL, body: string): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = { ...this.#headers, "content-length": Buffer.byteLength(body) };
      const sending = this.#send(url, { method: "POST", agent: this.#agent, headers, timeout: SILENCE_MS });
      sending.once("timeout", () => sending.destroy(new Error(`no data for ${SILENCE_MS / 1000} s`)));
      sending.once("error", reject);
      sending.once("response", (response: IncomingMessage) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
        );
      });
      sending.end(body);
    });
  }
}
