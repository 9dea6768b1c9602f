import type { LiveSample, StreamEnd, TrackConfig } from "#lib/codecs";
import type { PublishedStream, PublishSink, PublishWarning } from "#lib/publishing";
import type { Health } from "../cmaf/types.ts";
import type { Simulcast } from "../simulcast/simulcast.ts";
import type { PackagedStream } from "./packaged-stream.ts";
import { HealthMeter, type StreamHealth } from "./stream-health.ts";

/** A publisher that changes its codec parameters more often is not one. Each change is a stream of its own. */
const MAX_STREAMS = 20;
/** Without a sample for so long, a publisher may be replaced: it has lost its connection, and the server does not know yet. */
const SILENT_MS = 3000;
/** What a publisher receives that another one replaces. */
export const TAKEN_OVER = "Another publisher has taken over the channel.";

export type PublisherOptions = {
  /** The id of the stream key that it has used. */
  keyId: string;
  stream: PackagedStream;
  simulcast: Simulcast;
  /** A new stream of the same channel, in place of `stream`. */
  restart: (publisher: Publisher, stream: PackagedStream) => PackagedStream;
  onWarning: (warning: PublishWarning) => void;
  /** Called once, and last. */
  onEnd: (publisher: Publisher, end: StreamEnd) => void;
};

/** The connection of a publisher, and the stream that it publishes. */
export class Publisher implements PublishSink {
  readonly #options: PublisherOptions;
  readonly #configs = new Map<TrackConfig["kind"], TrackConfig>();
  #stream: PackagedStream;
  #connection: PublishedStream | null = null;
  readonly #meter = new HealthMeter(performance.now());
  #announced: readonly TrackConfig["kind"][] = [];
  #streams = 1;
  #sampledAt = performance.now();
  #isReplaced = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#stream = options.stream;
  }

  get stream(): PackagedStream {
    return this.#stream;
  }

  get simulcast(): Simulcast {
    return this.#options.simulcast;
  }

  /**
   * Whether another publisher may replace it without being allowed to take over: it is silent, or was started with a stream
   * key that has been rotated.
   */
  isReplaceable(keyId: string): boolean {
    return this.#isSilent || this.#options.keyId !== keyId;
  }

  get #isSilent(): boolean {
    return performance.now() - this.#sampledAt > SILENT_MS;
  }

  get health(): StreamHealth {
    return this.#meter.read(performance.now());
  }

  onStart(connection: PublishedStream): void {
    this.#connection = connection;
    // It was ended before it had started.
    if (this.#isReplaced) connection.stop(TAKEN_OVER);
  }

  onConfig(config: TrackConfig): void {
    if (this.#isReplaced) return;
    this.#configs.set(config.kind, config);
    this.#meter.withdraw("configuration_missing");
    this.#stream.config(config);
    this.simulcast.config(config);
  }

  onSample(sample: LiveSample): void {
    if (this.#isReplaced) return;
    this.#sampledAt = performance.now();
    this.#meter.add(sample, this.#sampledAt);
    if (sample.kind === "video" && sample.isKeyframe) this.#meter.withdraw("video_missing");
    this.#stream.sample(sample);
    this.simulcast.sample(sample);
  }

  onMetadata(): void {}

  onTracks(kinds: readonly TrackConfig["kind"][]): void {
    if (this.#isReplaced) return;
    this.#announced = kinds;
    this.#stream.announce(kinds);
  }

  onWarning(warning: PublishWarning): void {
    this.#meter.warn(warning);
    this.#options.onWarning(warning);
  }

  onEnd(end: StreamEnd): void {
    this.#connection = null;
    if (!this.#isReplaced) this.#options.onEnd(this, end);
  }

  /** Ends the connection, and with it the stream. */
  stop(reason: string): void {
    this.#connection?.stop(reason);
  }

  /** Ends the connection, whose stream another publisher continues. */
  replace(): void {
    this.#isReplaced = true;
    this.#connection?.stop(TAKEN_OVER);
  }

  /** The stream cannot continue: another one follows it on the same connection. */
  restart(): void {
    if (this.#isReplaced) return;
    if (++this.#streams > MAX_STREAMS) return this.stop("The codec parameters change too often.");
    this.#stream = this.#options.restart(this, this.#stream);
    this.#stream.announce(this.#announced);
    for (const config of this.#configs.values()) this.#stream.config(config);
  }

  react({ isFatal, message, code }: Health): void {
    if (code === "video_missing") this.#meter.warn({ code, message });
    if (isFatal) this.stop(message);
    else if (code !== "recording_stopped") return;
    // The stream continues without a recording.
    else if (this.#stream.channel.record) this.restart();
    else this.stop("The disk of the server is full.");
  }
}
