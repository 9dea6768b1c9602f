import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type Call = { name: string; body: Record<string, unknown>; headers: IncomingMessage["headers"] };
type Answer = { status: number; body?: unknown; headers?: Record<string, string> };

export const LEASE = "lease-token";
export const WORKER = "worker-token";
export const PREFIX = "tenants/1/assets/5/j7-1/";

/** A minimal server for the worker contract: one queue, one lease, and a record of every call. */
export class ContractServer implements AsyncDisposable {
  readonly calls: Call[] = [];
  readonly stored = new Map<string, Buffer>();
  /** Number of queued jobs. */
  queue = 1;
  heartbeatSeconds = 0.2;
  /** Whether early playback is requested. */
  early = false;
  captions: string[] = [];
  captionsRequired = false;
  /** Captions may be left to jobs of their own. */
  separateCaptions = false;
  closedCaptions = false;
  textTracks = false;
  localPaths: { source?: string; artifacts?: string } = {};
  encodingSpec: Record<string, unknown> = {};
  /** When a claim contains this proof, the local paths are returned. */
  proof = "";
  /** Called before a call is answered; its result replaces the response. "drop" breaks the connection, "hold" keeps it. */
  interfere: (call: Call) => Answer | "drop" | "hold" | undefined = () => undefined;
  base = "";
  readonly #sourcePath: string;
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #waiting = new Set<() => void>();

  private constructor(sourcePath: string) {
    this.#sourcePath = sourcePath;
  }

  static async start(sourcePath: string): Promise<ContractServer> {
    const server = new ContractServer(sourcePath);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    server.base = `http://127.0.0.1:${(server.#server.address() as AddressInfo).port}`;
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  named(name: string): Call[] {
    return this.calls.filter((call) => call.name === name);
  }

  /** Resolves when `condition` is true; checked after every call. */
  async until(condition: (server: this) => boolean, limitMs = 30_000): Promise<void> {
    const deadline = sleep(limitMs, "late", { ref: false });
    while (!condition(this)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      if ((await Promise.race([promise, deadline])) === "late")
        throw new Error(
          `Not within ${limitMs} ms: ${JSON.stringify(this.calls.slice(-3).map(({ name, body }) => ({ name, body })))}`,
        );
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "", this.base).pathname;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const isStore = path.startsWith("/store/");
    const name = isStore ? "put" : path === "/source" ? "source" : (path.split("/").at(-1) ?? "");
    const body = isStore || bytes.length === 0 ? {} : JSON.parse(bytes.toString());
    const call = { name, body, headers: request.headers };
    this.calls.push(call);
    const odd = this.interfere(call);
    if (odd === "drop") request.socket.destroy();
    else if (odd && odd !== "hold") this.#send(response, odd);
    else if (odd) response.on("error", () => {});
    else if (name === "source") await this.#sendSource(request, response);
    else if (isStore) {
      this.stored.set(decodeURIComponent(path.slice("/store/".length)), bytes);
      this.#send(response, { status: 200 });
    } else this.#send(response, await this.#contract(name, call));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #send(response: ServerResponse, { status, body, headers }: Answer): void {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body === undefined ? "" : JSON.stringify(body));
  }

  async #sendSource(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { size } = await stat(this.#sourcePath);
    const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    response.writeHead(start ? 206 : 200, { "content-length": size - start });
    createReadStream(this.#sourcePath, { start }).pipe(response);
  }

  async #contract(name: string, { body, headers }: Call): Promise<Answer> {
    if (headers["x-svc-worker-token"] !== WORKER) return { status: 401, body: { code: "unauthorized" } };
    if (name === "next") {
      if (!headers["idempotency-key"]) return { status: 422 };
      if (this.queue === 0) return { status: 204 };
      this.queue--;
      return { status: 200, body: await this.contract(body) };
    }
    if (headers["x-svc-job-lease-token"] !== LEASE) return { status: 401 };
    if (name === "heartbeat")
      return {
        status: 200,
        body: { status: "running", lease_expires_at: new Date(Date.now() + 60_000), cancel_requested: false },
      };
    if (name === "sign") {
      const sign = (path: string) => ({
        path,
        url: `${this.base}/store/${encodeURIComponent(path)}`,
        method: "PUT",
        headers: {},
      });
      return { status: 200, body: (body.paths as string[]).map(sign) };
    }
    if (name === "release") this.queue++;
    return { status: 200, body: {} };
  }

  async contract(claim: Record<string, unknown>) {
    const { size } = await stat(this.#sourcePath);
    const job = `${this.base}/api/v1/transcoding_jobs/7`;
    const proof = (claim.capabilities as { local_proof?: string } | undefined)?.local_proof;
    const local = this.proof && proof === this.proof ? this.localPaths : {};
    return {
      schema_version: 1,
      job: { id: 7, asset_id: 5, attempt: 1, profile: "default" },
      lease: {
        token: LEASE,
        expires_at: new Date(Date.now() + 60_000),
        heartbeat_interval_seconds: this.heartbeatSeconds,
      },
      source: {
        url: "/source",
        method: "GET",
        headers: {},
        bytes: size,
        content_type: "video/mp4",
        local_path: local.source ?? null,
      },
      outputs: {
        prefix: PREFIX,
        manifest_path: `${PREFIX}master.m3u8`,
        dash_manifest_path: `${PREFIX}manifest.mpd`,
        thumbnail_path: `${PREFIX}thumbnail.jpg`,
        subtitle_paths: Object.fromEntries(this.captions.map((tag) => [tag, `${PREFIX}captions/${tag}.vtt`])),
        words_paths: Object.fromEntries(this.captions.map((tag) => [tag, `${PREFIX}captions/${tag}.words.json`])),
        captions_required: this.captionsRequired,
        ...(this.separateCaptions && { separate_captions: true }),
        ...(this.closedCaptions && { read_closed_captions: true }),
        ...(this.textTracks && { read_text_tracks: true }),
      },
      artifacts: { sign_url: `${job}/sign`, local_path: local.artifacts ?? null },
      encoding_spec: this.encodingSpec,
      callbacks: {
        heartbeat_url: `${job}/heartbeat`,
        complete_url: `${job}/complete`,
        fail_url: `${job}/fail`,
        release_url: `${job}/release`,
        publish_url: `${job}/publish`,
      },
      early_playback: this.early,
    };
  }
}
