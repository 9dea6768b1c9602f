import type { StreamEnd, TrackConfig } from "../samples.ts";
import type { AmfValue } from "./amf0.ts";
import { readAudioTag } from "./audio-tag.ts";
import { MESSAGE, type RtmpMessage } from "./messages.ts";
import type { PublishSink, StreamMetadata } from "./types.ts";
import { readVideoTag } from "./video-tag.ts";

/** Passes what a publisher sends to its sink, and enforces the contract of PublishSink. */
export class IngestStream {
  readonly #sink: PublishSink;
  readonly #configurations: Record<TrackConfig["kind"], TrackConfig | null> = { video: null, audio: null };
  #hasEnded = false;

  constructor(sink: PublishSink) {
    this.#sink = sink;
  }

  /**
   * An audio or video message. Samples before the configuration of their track are dropped: no decoder can use them.
   * Throws as `readVideoTag` does, and what the sink throws.
   */
  media({ type, payload, timestamp }: RtmpMessage): void {
    const tag = type === MESSAGE.video ? readVideoTag(payload, timestamp) : readAudioTag(payload, timestamp);
    if (tag === null) return;
    if ("sample" in tag) {
      if (this.#configurations[tag.sample.kind]) this.#sink.onSample(tag.sample);
      return;
    }
    const { config } = tag;
    const last = this.#configurations[config.kind];
    // Some encoders repeat it with every keyframe.
    if (last?.codec === config.codec && last.configuration.equals(config.configuration)) return;
    this.#configurations[config.kind] = config;
    this.#sink.onConfig(config);
  }

  /** The values of a data message: `@setDataFrame`, `onMetaData` and an object, or the last two. Others are ignored. */
  data(values: AmfValue[]): void {
    const [name, object] = values[0] === "@setDataFrame" ? values.slice(1) : values;
    if (name !== "onMetaData" || !(object instanceof Map)) return;
    const scalars = [...object].filter(([, value]) => ["number", "string", "boolean"].includes(typeof value));
    this.#sink.onMetadata(Object.fromEntries(scalars) as StreamMetadata);
  }

  /** Only the first call has an effect. */
  end(end: StreamEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#sink.onEnd(end);
  }
}
