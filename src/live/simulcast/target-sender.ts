import { setTimeout } from "#lib/base";
import { PublishClient, type PublishEnd, type PublishUrl, readPublishUrl } from "#lib/rtmp";
import type { Connect } from "./connect.ts";
import type { SimulcastTarget, TargetReport } from "./messages.ts";

/** One message of the stream, which all targets share. */
export type StreamMessage = {
  type: number;
  /** On the timeline of the stream. */
  ms: number;
  payload: Buffer;
  /** Counts as a frame when it is dropped. */
  isFrame: boolean;
  /** A target can begin here. */
  isStart: boolean;
};

/** What a target receives before the first sample. */
export type StreamSetup = { messages: Pick<StreamMessage, "type" | "payload">[]; fourCcs: string[] };

export type TargetSenderOptions = {
  target: SimulcastTarget;
  connect: Connect;
  setup: () => StreamSetup;
  /** The status has changed. */
  onChange: () => void;
};

/** What waits for a slow target is dropped beyond these, up to the next keyframe. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;
const MAX_QUEUED_MS = 10_000;
/** From the resolution of the name until the stream is accepted. */
const ACCEPT_MS = 15_000;
/** A target that reads nothing for so long is disconnected. */
const STALLED_MS = 15_000;
const RETRY_MS = [1000, 2000, 5000, 10_000, 20_000, 30_000];
/** A server that refuses the stream will most likely do so again. */
const REFUSED_RETRY_MS = 30_000;
/** A connection that has lasted so long was a good one. */
const GOOD_MS = 60_000;
const JITTER = 0.2;

type Queued = StreamMessage & { at: number };

/**
 * Sends a stream to one target, and connects again while it lasts. Nothing here waits for the target: what it does not
 * read in time is dropped.
 */
export class TargetSender {
  readonly target: SimulcastTarget;
  readonly #options: TargetSenderOptions;
  readonly #url: PublishUrl;
  #client: PublishClient | null = null;
  #attempt: AbortController | null = null;
  #retry: NodeJS.Timeout | null = null;
  #failures = 0;
  #queue: Queued[] = [];
  #queuedBytes = 0;
  /** What comes before the next start is dropped. */
  #isWaiting = true;
  /** Frames are dropped because the target was too slow. */
  #isBehind = false;
  /** Time of the stream at which the connection began. */
  #baseMs: number | null = null;
  /** Since when the stream is accepted; 0 before. */
  #acceptedAt = 0;
  #progressAt = 0;
  #sentBefore = 0;
  #droppedFrames = 0;
  #status: TargetReport["status"] = "connecting";
  #sinceMs = Date.now();
  #error: string | null = null;
  #isStopped = false;

  constructor(options: TargetSenderOptions) {
    this.#options = options;
    this.target = options.target;
    this.#url = readPublishUrl(options.target.url, options.target.streamKey);
  }

  get report(): TargetReport {
    return {
      id: this.target.id,
      status: this.#status,
      sinceMs: this.#sinceMs,
      error: this.#error,
      sentBytes: this.sentBytes,
      droppedFrames: this.#droppedFrames,
    };
  }

  get sentBytes(): number {
    return this.#sentBefore + (this.#client?.sentBytes ?? 0);
  }

  /** The next message of the stream. */
  offer(message: StreamMessage): void {
    if (this.#isStopped || this.#retry) return;
    if (!this.#attempt) void this.#connect();
    const now = performance.now();
    if (this.#isWaiting && !message.isStart) return this.#drop(message);
    if (this.#isWaiting) this.#begin(message, now);
    this.#push(message, now);
    const [oldest] = this.#queue;
    if (this.#queuedBytes > MAX_QUEUED_BYTES || (oldest && now - oldest.at > MAX_QUEUED_MS)) this.#overflow();
    const isStalled = this.#client?.isAccepted && !this.#client.canWrite;
    if (isStalled && now - this.#progressAt > STALLED_MS)
      return this.#failed({ reason: "The server does not read what it is sent.", isRefused: false });
    this.#pump();
  }

  /** The configuration of a track has changed. */
  configure(message: Pick<StreamMessage, "type" | "payload" | "ms">): void {
    if (this.#isStopped || this.#retry || !this.#attempt || this.#isWaiting) return;
    this.#push({ ...message, isFrame: false, isStart: false }, performance.now());
    this.#pump();
  }

  /** Another publisher follows: the target continues at its first keyframe. */
  resume(): void {
    this.#isWaiting = true;
  }

  /** Ends the connection at once. */
  stop(): void {
    this.#isStopped = true;
    this.#disconnect();
    if (this.#retry) clearTimeout(this.#retry);
  }

  /** Ends the stream after what is queued, within a few seconds. */
  async finish(): Promise<void> {
    const client = this.#client;
    if (!client?.isAccepted) return this.stop();
    this.#isStopped = true;
    for (const message of this.#queue) this.#write(client, message);
    this.#clear();
    await client.finish();
  }

  #begin(message: StreamMessage, now: number): void {
    this.#isWaiting = false;
    this.#isBehind = false;
    this.#baseMs ??= message.ms;
    for (const { type, payload } of this.#options.setup().messages)
      this.#push({ type, payload, ms: message.ms, isFrame: false, isStart: false }, now);
  }

  #push(message: StreamMessage, at: number): void {
    this.#queue.push({ ...message, at });
    this.#queuedBytes += message.payload.length;
  }

  #pump(): void {
    const client = this.#client;
    if (!client) return;
    let sent = 0;
    for (; sent < this.#queue.length && client.canWrite; sent++) {
      const message = this.#queue[sent] as Queued;
      this.#queuedBytes -= message.payload.length;
      this.#write(client, message);
    }
    if (sent === 0) return;
    this.#queue.splice(0, sent);
    this.#progressAt = performance.now();
  }

  #write(client: PublishClient, { type, ms, payload }: StreamMessage): void {
    client.write({ type, payload, timestamp: Math.max(0, ms - (this.#baseMs ?? ms)) >>> 0 });
  }

  #overflow(): void {
    this.#isWaiting = true;
    this.#isBehind = this.#client?.isAccepted ?? false;
    for (const message of this.#queue) this.#drop(message);
    this.#clear();
  }

  #drop({ isFrame }: StreamMessage): void {
    if (isFrame && this.#isBehind) this.#droppedFrames++;
  }

  #clear(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  async #connect(): Promise<void> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    const late = { reason: "The server does not accept the stream in time.", isRefused: false };
    const timer = setTimeout(() => this.#failed(late), ACCEPT_MS);
    attempt.signal.addEventListener("abort", () => clearTimeout(timer));
    const { app, href: tcUrl } = this.#url;
    try {
      const socket = await this.#options.connect(this.#url, attempt.signal);
      if (this.#attempt !== attempt) return void socket.destroy();
      this.#client = new PublishClient(socket, {
        app,
        tcUrl,
        streamKey: this.target.streamKey,
        fourCcs: this.#options.setup().fourCcs,
        onAccepted: () => {
          clearTimeout(timer);
          this.#accepted();
        },
        onDrain: () => {
          this.#progressAt = performance.now();
          this.#pump();
        },
        onEnd: (end) => this.#failed(end),
      });
    } catch (error) {
      if (this.#attempt === attempt) this.#failed({ reason: (error as Error).message, isRefused: false });
    }
  }

  #accepted(): void {
    this.#acceptedAt = performance.now();
    this.#progressAt = this.#acceptedAt;
    this.#error = null;
    this.#show("live");
    this.#pump();
  }

  #failed({ reason, isRefused }: PublishEnd): void {
    if (this.#isStopped) return;
    const wasGood = this.#acceptedAt > 0 && performance.now() - this.#acceptedAt > GOOD_MS;
    this.#disconnect();
    this.#failures = wasGood ? 1 : this.#failures + 1;
    const waitMs = RETRY_MS[Math.min(this.#failures, RETRY_MS.length) - 1] as number;
    const jitter = 1 - JITTER + 2 * JITTER * Math.random();
    this.#retry = setTimeout(
      () => {
        this.#retry = null;
      },
      Math.max(waitMs, isRefused ? REFUSED_RETRY_MS : 0) * jitter,
    );
    this.#error = reason;
    this.#show("failed");
  }

  /** The next message begins another connection. */
  #disconnect(): void {
    this.#sentBefore = this.sentBytes;
    const client = this.#client;
    const attempt = this.#attempt;
    this.#client = null;
    this.#attempt = null;
    client?.close();
    attempt?.abort();
    this.#clear();
    this.#isWaiting = true;
    this.#isBehind = false;
    this.#baseMs = null;
    this.#acceptedAt = 0;
  }

  #show(status: TargetReport["status"]): void {
    if (status !== this.#status) this.#sinceMs = Date.now();
    this.#status = status;
    this.#options.onChange();
  }
}
