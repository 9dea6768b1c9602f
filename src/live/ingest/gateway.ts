import { mkdirSync } from "node:fs";
import { setInterval, setTimeout } from "#lib/base";
import type { StreamEnd } from "#lib/codecs";
import { type Log, MinuteLog, type PublishDecision, type PublishRequest } from "#lib/publishing";
import { ConvertingSink } from "../converted-audio/converting-sink.ts";
import type { Connect } from "../simulcast/connect.ts";
import type { SimulcastTarget } from "../simulcast/messages.ts";
import { Simulcast } from "../simulcast/simulcast.ts";
import type {
  FinishedRecording,
  FromIngest,
  IngestOptions,
  Permission,
  PublishedChannel,
  PublishQuestion,
  WantedClip,
} from "./messages.ts";
import { PackagedStream } from "./packaged-stream.ts";
import { Publisher } from "./publisher.ts";

const HEALTH_MS = 2000;
/** Channels, and kinds of warnings of each, with lines of their own in a minute. */
const MAX_LOGGED = 10_000;

type GatewayOptions = Pick<IngestOptions, "folder"> & {
  /** Throws when the disk is full. */
  requireSpace: () => Promise<void>;
  /** Path of ffmpeg. */
  ffmpeg: () => Promise<string>;
  /** To simulcast targets. */
  connect: Connect;
  ask: (question: PublishQuestion) => Promise<Permission>;
  send: (message: FromIngest) => void;
};

type OnAir = {
  stream: PackagedStream;
  /** It continues when another stream follows on the same connection. */
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
  /** Streams that are being completed, by name. */
  readonly #completing = new Map<string, PackagedStream>();
  readonly #reports: NodeJS.Timeout;
  /** What publishers cause: audio may have gaps several times a second. */
  readonly #warnings: MinuteLog;
  #isClosed = false;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { send } = options;
    const log: Log = (level, message, fields) => send({ type: "log", level, message, fields });
    this.#warnings = new MinuteLog(log, { maxKeys: MAX_LOGGED });
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
    const onError = ({ message: error }: Error) =>
      this.#options.send({
        type: "log",
        level: "error",
        message: "audio could not be encoded",
        fields: { channel: channel.channel, error },
      });
    const sink = new ConvertingSink(publisher, { ffmpeg: this.#options.ffmpeg, onError });
    return { accepted: true, sink, limits: { maxBitrate: channel.maxBitrate ?? undefined } };
  }

  /** Changes the targets of a channel that is on air. */
  setTargets(channelId: number, targets: readonly SimulcastTarget[]): void {
    this.#onAir.get(channelId)?.simulcast.setTargets(targets);
  }

  /** Ends a stream; its publisher receives `reason`. */
  stop(name: string, reason: string): void {
    for (const onAir of this.#onAir.values()) {
      if (onAir.stream.name !== name) continue;
      if (onAir.publisher) onAir.publisher.stop(reason);
      else this.#end(onAir.stream);
    }
  }

  /** What `PackagedStream.end` waits for. */
  speechWritten(name: string): void {
    this.#completing.get(name)?.speechWritten();
  }

  /** As `PackagedStream.clip`; null for a stream that has ended. */
  async clip(name: string, wanted: WantedClip, target: string): Promise<FinishedRecording | null> {
    const onAir = [...this.#onAir.values()].find(({ stream }) => stream.name === name);
    return onAir ? onAir.stream.clip(wanted, target) : null;
  }

  /** Ends all streams. Resolves when they are complete and reported. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#reports);
    for (const { stream } of [...this.#onAir.values()]) this.#end(stream);
    await Promise.all(this.#ending);
  }

  /** A stream that is waiting for its publisher counts; the same channel does not, because it has one stream. */
  #isOverLimit({ channelId, tenantId, maxStreams }: PublishedChannel): boolean {
    if (maxStreams === null || this.#onAir.has(channelId)) return false;
    const own = [...this.#onAir.values()].filter(({ stream }) => stream.channel.tenantId === tenantId);
    return own.length >= maxStreams;
  }

  /** Null when another publisher is active. */
  #publisherFor(channel: PublishedChannel, targets: readonly SimulcastTarget[]): Publisher | null {
    const onAir = this.#onAir.get(channel.channelId);
    const { keyId } = channel;
    if (!onAir) return this.#publish(this.#streamOf(channel), this.#simulcastOf(channel, targets), keyId);
    const { publisher, stream, simulcast } = onAir;
    if (publisher && !channel.takeover && !publisher.isReplaceable(keyId)) return null;
    publisher?.replace();
    if (publisher) stream.interrupt();
    if (onAir.timer) clearTimeout(onAir.timer);
    stream.resume();
    simulcast.resume();
    return this.#publish(stream, simulcast, keyId);
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

  #publish(stream: PackagedStream, simulcast: Simulcast, keyId: string): Publisher {
    const publisher = new Publisher({
      stream,
      simulcast,
      keyId,
      restart: (restarted, ended) => this.#restart(restarted, ended),
      onWarning: (warning) => this.#warn(stream.channel, warning),
      onEnd: (ended, end) => this.#ended(ended, end),
    });
    this.#onAir.set(stream.channel.channelId, { stream, simulcast, publisher, timer: null });
    return publisher;
  }

  /** `isLastResort`: what the disk keeps free may be used, for as long as viewers need it. */
  #streamOf(channel: PublishedChannel, { isLastResort = false } = {}): PackagedStream {
    const ownPublisher = () => {
      const onAir = this.#onAir.get(channel.channelId);
      return onAir?.stream === stream ? onAir.publisher : null;
    };
    const { folder: root, send } = this.#options;
    const stream = new PackagedStream({
      channel,
      root,
      send,
      requireSpace: isLastResort ? async () => {} : this.#options.requireSpace,
      onHealth: (health) => {
        this.#warn(channel, health);
        if (health.code === "recording_stopped") stream.isRecordingStopped = true;
        ownPublisher()?.react(health);
      },
      onConfigChanged: () => ownPublisher()?.restart(),
    });
    return stream;
  }

  /** Logs one line for each channel, code and minute. */
  #warn({ channelId, channel }: PublishedChannel, { code, message }: { code: string; message: string }): void {
    this.#warnings.write(`${channelId} ${code}`, "warn", message, { channel, code });
  }

  #reportHealth(): void {
    for (const { stream, publisher, simulcast } of this.#onAir.values()) {
      simulcast.report();
      if (publisher) this.#options.send({ type: "health", stream: stream.name, health: publisher.health });
    }
  }

  #restart(publisher: Publisher, ended: PackagedStream): PackagedStream {
    const { isRecordingStopped, remainingBytes: maxRecordedBytes } = ended;
    const channel = { ...ended.channel, maxRecordedBytes };
    this.#complete(ended);
    const next = isRecordingStopped
      ? this.#streamOf({ ...channel, record: false, dvrSeconds: 0 }, { isLastResort: true })
      : this.#streamOf(channel);
    const { simulcast } = publisher;
    this.#onAir.set(channel.channelId, { stream: next, simulcast, publisher, timer: null });
    return next;
  }

  #ended(publisher: Publisher, end: StreamEnd): void {
    const { stream } = publisher;
    const onAir = this.#onAir.get(stream.channel.channelId);
    if (onAir?.stream !== stream) return;
    if (end !== "disconnected") return this.#end(stream);
    stream.interrupt();
    onAir.publisher = null;
    onAir.timer = setTimeout(() => this.#end(stream), stream.channel.reconnectMs);
  }

  #end(stream: PackagedStream): void {
    const { channelId } = stream.channel;
    const onAir = this.#onAir.get(channelId);
    if (onAir?.stream === stream) {
      if (onAir.timer) clearTimeout(onAir.timer);
      this.#onAir.delete(channelId);
      this.#await(onAir.simulcast.finish());
    }
    this.#complete(stream);
  }

  #complete(stream: PackagedStream): void {
    this.#completing.set(stream.name, stream);
    this.#await(
      stream
        .end(this.#isClosed)
        .catch((error) => {
          // The next start of the server recovers its files.
          const fields = { channel: stream.channel.channel, error: String(error) };
          this.#options.send({ type: "log", level: "error", message: "a stream could not be completed", fields });
        })
        .finally(() => this.#completing.delete(stream.name)),
    );
  }

  #await(work: Promise<void>): void {
    const ending = work.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
