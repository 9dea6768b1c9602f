import { type ConvertibleAudio, isSameConfig, type LiveSample, type StreamEnd, type TrackConfig } from "#lib/codecs";
import { RejectedMedia } from "./rejected-media.ts";
import type { PublishSink, PublishWarning, StreamMetadata } from "./types.ts";

/** Audio without a configuration that is kept until one arrives: as long as playlists wait for an announced track. */
const MAX_EARLY = { ms: 15_000, bytes: 2 * 2 ** 20, samples: 2000 };
/** Encoders send the configuration before the first sample, or within a few of them. */
const MISSING_MS = 3000;
const NAMES = { video: "video", audio: "audio" } as const;

/** Passes what a publisher sends to its sink, and enforces the contract of PublishSink. Methods throw what the sink throws. */
export class PublishStream {
  readonly #sink: PublishSink;
  readonly #configurations: Record<TrackConfig["kind"], TrackConfig | null> = { video: null, audio: null };
  readonly #early = new EarlySamples();
  readonly #warned = new Set<string>();
  #hasEnded = false;

  constructor(sink: PublishSink) {
    this.#sink = sink;
  }

  /** Some encoders repeat the configuration with every keyframe: only one that differs from the last one is passed on. */
  config(config: TrackConfig): void {
    const last = this.#configurations[config.kind];
    if (last && isSameConfig(last, config)) return;
    this.#configurations[config.kind] = config;
    this.#sink.onConfig(config);
    if (config.kind === "audio") for (const sample of this.#early.take()) this.#sink.onSample(sample);
  }

  /**
   * Samples before the configuration of their track cannot be decoded yet. Those of audio are passed on when it arrives; those of
   * video are dropped, because a keyframe follows a configuration.
   */
  sample(sample: LiveSample): void {
    if (this.#configurations[sample.kind]) return this.#sink.onSample(sample);
    const missingMs = this.#early.add(sample);
    if (missingMs >= MISSING_MS)
      this.warn({
        code: "configuration_missing",
        message: `The ${NAMES[sample.kind]} has no decoder configuration, so it is not played. Restart the encoder, or use another one.`,
      });
  }

  /** `name`: of the codec, for people. Throws RejectedMedia when the sink does not take it. */
  convertible(audio: ConvertibleAudio, name: string): void {
    if (!this.#sink.onConvertible) throw rejectedAudio(name);
    this.#sink.onConvertible(audio);
  }

  metadata(metadata: StreamMetadata): void {
    this.#sink.onMetadata(metadata);
    const kinds = announcedBy(metadata);
    if (kinds.length > 0) this.tracks(kinds);
  }

  /** The publisher announces its tracks. */
  tracks(kinds: readonly TrackConfig["kind"][]): void {
    this.#sink.onTracks?.(kinds);
  }

  /** Passes each message on once. */
  warn(warning: PublishWarning): void {
    const { code, message } = warning;
    if (this.#warned.has(`${code} ${message}`)) return;
    this.#warned.add(`${code} ${message}`);
    this.#sink.onWarning?.(warning);
  }

  /** Only the first call has an effect. */
  end(end: StreamEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#sink.onEnd(end);
  }
}

/** A codec of audio that cannot be packaged. */
export const rejectedAudio = (name: string) => new RejectedMedia(`The audio codec ${name} is not supported. Use AAC.`);

/** Samples of tracks without a configuration: the newest ones of audio, and since when there are some of each kind. */
class EarlySamples {
  readonly #since = new Map<LiveSample["kind"], number>();
  #audio: LiveSample[] = [];
  #bytes = 0;

  /** Returns since how many milliseconds there are samples of this kind. */
  add(sample: LiveSample): number {
    const { kind, timestamp, data } = sample;
    const since = this.#since.get(kind) ?? timestamp;
    this.#since.set(kind, since);
    if (kind === "audio") {
      this.#audio.push(sample);
      this.#bytes += data.length;
      while (this.#isTooMuch(timestamp)) this.#bytes -= this.#audio.shift()?.data.length ?? 0;
    }
    // Unsigned 32 bits that wrap.
    return (timestamp - since) | 0;
  }

  take(): LiveSample[] {
    const taken = this.#audio;
    this.#audio = [];
    this.#bytes = 0;
    return taken;
  }

  #isTooMuch(timestamp: number): boolean {
    const [first] = this.#audio;
    if (!first) return false;
    const age = (timestamp - first.timestamp) | 0;
    return age > MAX_EARLY.ms || this.#bytes > MAX_EARLY.bytes || this.#audio.length > MAX_EARLY.samples;
  }
}

/** The kinds of tracks that onMetaData (FLV 10.1, E.5) describes. Encoders name the codec, and most of them the format. */
function announcedBy(metadata: StreamMetadata): TrackConfig["kind"][] {
  const has = (flag: string, ...names: string[]) =>
    metadata[flag] !== false && [flag, ...names].some((name) => Boolean(metadata[name]));
  const kinds: TrackConfig["kind"][] = [];
  if (has("hasVideo", "videocodecid", "width")) kinds.push("video");
  if (has("hasAudio", "audiocodecid", "audiosamplerate")) kinds.push("audio");
  return kinds;
}
