import { mkdirSync } from "node:fs";
import type { PublishDecision, PublishRequest } from "../publish/types.ts";
import type { StreamEnd } from "../samples.ts";
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

type GatewayOptions = Pick<IngestOptions, "folder" | "reconnectMs"> & {
  /** Throws when the disk is full. */
  requireSpace: () => Promise<void>;
  ask: (question: PublishQuestion) => Promise<Permission>;
  send: (message: FromIngest) => void;
};

type OnAir = { broadcast: Broadcast; publisher: Publisher | null; timer: NodeJS.Timeout | null };

/** The streams of all channels that are published to this process: at most one of each. */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #onAir = new Map<number, OnAir>();
  /** Streams that are being completed. */
  readonly #ending = new Set<Promise<void>>();
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
    const { channel } = permission;
    if (this.#isOverLimit(channel)) return { accepted: false, reason: "limit" };
    const publisher = this.#publisherFor(channel);
    if (!publisher) return { accepted: false, reason: "taken" };
    return { accepted: true, sink: publisher, limits: { maxBitrate: channel.maxBitrate ?? undefined } };
  }

  /** Ends a stream; its publisher receives `reason`. */
  stop(name: string, reason: string): void {
    for (const onAir of this.#onAir.values()) {
      if (onAir.broadcast.name !== name) continue;
      if (onAir.publisher) onAir.publisher.stop(reason);
      else this.#end(onAir.broadcast);
    }
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
  #publisherFor(channel: PublishedChannel): Publisher | null {
    const onAir = this.#onAir.get(channel.channelId);
    if (!onAir) return this.#publish(this.#broadcastOf(channel));
    const { publisher, broadcast } = onAir;
    if (publisher && !channel.takeover && !publisher.isSilent) return null;
    publisher?.replace();
    if (publisher) broadcast.interrupt();
    if (onAir.timer) clearTimeout(onAir.timer);
    broadcast.resume();
    return this.#publish(broadcast);
  }

  #publish(broadcast: Broadcast): Publisher {
    const publisher = new Publisher({
      broadcast,
      restart: (restarted, ended) => this.#restart(restarted, ended),
      onEnd: (ended, end) => this.#ended(ended, end),
    });
    this.#onAir.set(broadcast.channel.channelId, { broadcast, publisher, timer: null });
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
      ...{ channel, root, send, requireSpace: isLastResort ? async () => {} : this.#options.requireSpace },
      onHealth: (health) => {
        send({
          log: { level: "warn", message: health.message, fields: { channel: channel.channel, code: health.code } },
        });
        if (health.code === "recording_stopped") broadcast.isRecordingStopped = true;
        ofBroadcast()?.react(health);
      },
      onConfigChanged: () => ofBroadcast()?.restart(),
    });
    return broadcast;
  }

  #reportHealth(): void {
    for (const { broadcast, publisher } of this.#onAir.values())
      if (publisher) this.#options.send({ stream: broadcast.name, health: publisher.health });
  }

  #restart(publisher: Publisher, ended: Broadcast): Broadcast {
    const { isRecordingStopped, channel } = ended;
    this.#end(ended);
    const next = isRecordingStopped
      ? this.#broadcastOf({ ...channel, record: false, dvrSeconds: 0 }, { isLastResort: true })
      : this.#broadcastOf(channel);
    this.#onAir.set(channel.channelId, { broadcast: next, publisher, timer: null });
    return next;
  }

  #ended(publisher: Publisher, end: StreamEnd): void {
    const { broadcast } = publisher;
    const onAir = this.#onAir.get(broadcast.channel.channelId);
    if (onAir?.broadcast !== broadcast) return;
    if (end !== "disconnected") return this.#end(broadcast);
    broadcast.interrupt();
    onAir.publisher = null;
    onAir.timer = setTimeout(() => this.#end(broadcast), this.#options.reconnectMs);
  }

  #end(broadcast: Broadcast): void {
    const { channelId, channel } = broadcast.channel;
    const onAir = this.#onAir.get(channelId);
    if (onAir?.broadcast === broadcast) {
      if (onAir.timer) clearTimeout(onAir.timer);
      this.#onAir.delete(channelId);
    }
    const ending = broadcast
      .end()
      .catch((error) => {
        // The next start of the server recovers its files.
        const fields = { channel, error: String(error) };
        this.#options.send({ log: { level: "error", message: "a stream could not be completed", fields } });
      })
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
