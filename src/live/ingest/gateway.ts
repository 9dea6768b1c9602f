import { mkdirSync } from "node:fs";
import { setInterval, setTimeout } from "#lib/base";
import type { StreamEnd } from "#lib/codecs";
import type { PublishDecision, PublishRequest } from "#lib/publishing";
import type { Connect } from "../simulcast/connect.ts";
import type { SimulcastTarget } from "../simulcast/messages.ts";
import { Simulcast } from "../simulcast/simulcast.ts";
import { Broadcast } from "./broadcast.ts";
import type {
  FinishedRecording,
  FromIngest,
  IngestOptions,
  Permission,
  PublishedChannel,
  PublishQuestion,
  WantedClip,
} from "./messages.ts";
import { Publisher } from "./publisher.ts";

const HEALTH_MS = 2000;

type GatewayOptions = Pick<IngestOptions, "folder"> & {
  /** Throws when the disk is full. */
  requireSpace: () => Promise<void>;
  /** To simulcast targets. */
  connect: Connect;
  ask: (question: PublishQuestion) => Promise<Permission>;
  send: (message: FromIngest) => void;
};

type OnAir = {
  broadcast: Broadcast;
  /** It continues when another broadcast follows on the same connection. */
  simulcast: Simulcast;
  publisher: Publisher | null;
  timer: NodeJS.Timeout | null;
};

/** The streams of all channels that are published to this process: at most one of each. */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #onAir = new Map<number, OnAir>();
  /** Streams that are being completed, and sent to the end. */
  readonly #ending = new Set<Promise<void>>();
  /** Broadcasts that are being completed, by name. */
  readonly #completing = new Map<string, Broadcast>();
  readonly #reports: NodeJS.Timeout;
  #isClosed = false;

  constructor(options: GatewayOptions) {
    this.#options = options;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    this.#reports = setInterval(() => this.#reportHealth(), HEALTH_MS).unref();
  }

  /** Decides on a publish, for a protocol server. */
  async authorize({ app, name, query, address }: PublishRequest): Promise<PublishDecision> {
    const permission = await this.#options.ask({ app, name, query: query.toString(), address });
    if (!permission.accepted) return permission;
    if (this.#isClosed) return { accepted: false, reason: "unavailable" };
    const { channel, targets } = permission;
    if (this.#isOverLimit(channel)) return { accepted: false, reason: "limit" };
    const publisher = this.#publisherFor(channel, targets);
    if (!publisher) return { accepted: false, reason: "taken" };
    return { accepted: true, sink: publisher, limits: { maxBitrate: channel.maxBitrate ?? undefined } };
  }

  /** Changes the targets of a channel that is on air. */
  setTargets(channelId: number, targets: readonly SimulcastTarget[]): void {
    this.#onAir.get(channelId)?.simulcast.setTargets(targets);
  }

  /** Ends a stream; its publisher receives `reason`. */
  stop(name: string, reason: string): void {
    for (const onAir of this.#onAir.values()) {
      if (onAir.broadcast.name !== name) continue;
      if (onAir.publisher) onAir.publisher.stop(reason);
      else this.#end(onAir.broadcast);
    }
  }

  /** What `Broadcast.end` waits for. */
  speechWritten(name: string): void {
    this.#completing.get(name)?.speechWritten();
  }

  /** As `Broadcast.clip`; null for a stream that has ended. */
  async clip(name: string, wanted: WantedClip, target: string): Promise<FinishedRecording | null> {
    const onAir = [...this.#onAir.values()].find(({ broadcast }) => broadcast.name === name);
    return onAir ? onAir.broadcast.clip(wanted, target) : null;
  }

  /** Ends all streams. Resolves when they are complete and reported. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#reports);
    for (const { broadcast } of [...this.#onAir.values()]) this.#end(broadcast);
    await Promise.all(this.#ending);
  }

  /** A stream that is waiting for its publisher counts; the same channel does not, because it has one stream. */
  #isOverLimit({ channelId, tenantId, maxStreams }: PublishedChannel): boolean {
    if (maxStreams === null || this.#onAir.has(channelId)) return false;
    const own = [...this.#onAir.values()].filter(({ broadcast }) => broadcast.channel.tenantId === tenantId);
    return own.length >= maxStreams;
  }

  /** Null when another publisher is active. */
  #publisherFor(channel: PublishedChannel, targets: readonly SimulcastTarget[]): Publisher | null {
    const onAir = this.#onAir.get(channel.channelId);
    const { keyId } = channel;
    if (!onAir) return this.#publish(this.#broadcastOf(channel), this.#simulcastOf(channel, targets), keyId);
    const { publisher, broadcast, simulcast } = onAir;
    if (publisher && !channel.takeover && !publisher.isReplaceable(keyId)) return null;
    publisher?.replace();
    if (publisher) broadcast.interrupt();
    if (onAir.timer) clearTimeout(onAir.timer);
    broadcast.resume();
    simulcast.resume();
    return this.#publish(broadcast, simulcast, keyId);
  }

  #simulcastOf(channel: PublishedChannel, targets: readonly SimulcastTarget[]): Simulcast {
    const { connect, send } = this.#options;
    const simulcast = new Simulcast({
      channel,
      connect,
      log: (level, message, fields) => send({ type: "log", level, message, fields }),
      report: (report) => send({ type: "simulcast", report }),
    });
    simulcast.setTargets(targets);
    return simulcast;
  }

  #publish(broadcast: Broadcast, simulcast: Simulcast, keyId: string): Publisher {
    const publisher = new Publisher({
      broadcast,
      simulcast,
      keyId,
      restart: (restarted, ended) => this.#restart(restarted, ended),
      onWarning: ({ code, message }) =>
        this.#options.send({
          type: "log",
          level: "warn",
          message,
          fields: { channel: broadcast.channel.channel, code },
        }),
      onEnd: (ended, end) => this.#ended(ended, end),
    });
    this.#onAir.set(broadcast.channel.channelId, { broadcast, simulcast, publisher, timer: null });
    return publisher;
  }

  /** `isLastResort`: what the disk keeps free may be used, for as long as viewers need it. */
  #broadcastOf(channel: PublishedChannel, { isLastResort = false } = {}): Broadcast {
    const ofBroadcast = () => {
      const onAir = this.#onAir.get(channel.channelId);
      return onAir?.broadcast === broadcast ? onAir.publisher : null;
    };
    const { folder: root, send } = this.#options;
    const broadcast = new Broadcast({
      channel,
      root,
      send,
      requireSpace: isLastResort ? async () => {} : this.#options.requireSpace,
      onHealth: (health) => {
        send({
          type: "log",
          level: "warn",
          message: health.message,
          fields: { channel: channel.channel, code: health.code },
        });
        if (health.code === "recording_stopped") broadcast.isRecordingStopped = true;
        ofBroadcast()?.react(health);
      },
      onConfigChanged: () => ofBroadcast()?.restart(),
    });
    return broadcast;
  }

  #reportHealth(): void {
    for (const { broadcast, publisher, simulcast } of this.#onAir.values()) {
      simulcast.report();
      if (publisher) this.#options.send({ type: "health", stream: broadcast.name, health: publisher.health });
    }
  }

  #restart(publisher: Publisher, ended: Broadcast): Broadcast {
    const { isRecordingStopped, remainingBytes: maxRecordedBytes } = ended;
    const channel = { ...ended.channel, maxRecordedBytes };
    this.#complete(ended);
    const next = isRecordingStopped
      ? this.#broadcastOf({ ...channel, record: false, dvrSeconds: 0 }, { isLastResort: true })
      : this.#broadcastOf(channel);
    const { simulcast } = publisher;
    this.#onAir.set(channel.channelId, { broadcast: next, simulcast, publisher, timer: null });
    return next;
  }

  #ended(publisher: Publisher, end: StreamEnd): void {
    const { broadcast } = publisher;
    const onAir = this.#onAir.get(broadcast.channel.channelId);
    if (onAir?.broadcast !== broadcast) return;
    if (end !== "disconnected") return this.#end(broadcast);
    broadcast.interrupt();
    onAir.publisher = null;
    onAir.timer = setTimeout(() => this.#end(broadcast), broadcast.channel.reconnectMs);
  }

  #end(broadcast: Broadcast): void {
    const { channelId } = broadcast.channel;
    const onAir = this.#onAir.get(channelId);
    if (onAir?.broadcast === broadcast) {
      if (onAir.timer) clearTimeout(onAir.timer);
      this.#onAir.delete(channelId);
      this.#await(onAir.simulcast.finish());
    }
    this.#complete(broadcast);
  }

  #complete(broadcast: Broadcast): void {
    this.#completing.set(broadcast.name, broadcast);
    this.#await(
      broadcast
        .end(this.#isClosed)
        .catch((error) => {
          // The next start of the server recovers its files.
          const fields = { channel: broadcast.channel.channel, error: String(error) };
          this.#options.send({ type: "log", level: "error", message: "a stream could not be completed", fields });
        })
        .finally(() => this.#completing.delete(broadcast.name)),
    );
  }

  #await(work: Promise<void>): void {
    const ending = work.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
