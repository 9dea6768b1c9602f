import type { LiveSample, StreamEnd, TrackConfig } from "../samples.ts";
import type { PublishSink, StreamMetadata } from "./types.ts";

/** Passes what a publisher sends to its sink, and enforces the contract of PublishSink. Methods throw what the sink throws. */
export class PublishStream {
  readonly #sink: PublishSink;
  readonly #configurations: Record<TrackConfig["kind"], TrackConfig | null> = { video: null, audio: null };
  #hasEnded = false;

  constructor(sink: PublishSink) {
    this.#sink = sink;
  }

  /** Some encoders repeat the configuration with every keyframe: only one that differs from the last one is passed on. */
  config(config: TrackConfig): void {
    const last = this.#configurations[config.kind];
    if (last?.codec === config.codec && last.configuration.equals(config.configuration)) return;
    this.#configurations[config.kind] = config;
    this.#sink.onConfig(config);
  }

  /** Samples before the configuration of their track are dropped: no decoder can use them. */
  sample(sample: LiveSample): void {
    if (this.#configurations[sample.kind]) this.#sink.onSample(sample);
  }

  metadata(metadata: StreamMetadata): void {
    this.#sink.onMetadata(metadata);
  }

  /** Only the first call has an effect. */
  end(end: StreamEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#sink.onEnd(end);
  }
}
