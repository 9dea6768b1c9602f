import type { ConvertibleAudio, ConvertibleCodec, LiveSample, StreamEnd, TrackConfig } from "#lib/codecs";
import type { PublishedStream, PublishSink, PublishWarning, StreamMetadata } from "#lib/publishing";
import type { AacPacket, AudioEncoder, AudioEncoderOptions } from "./aac-process.ts";
import { FrameEncoder } from "./frame-encoder.ts";
import { OpusEncoder } from "./opus-encoder.ts";
import { VideoHold } from "./video-hold.ts";

/** What the publisher sent last is still encoded when it has ended, for so long at most. */
const FINISH_MS = 500;
/** Audio that waits until ffmpeg is there. */
const MAX_WAITING = { packets: 2000, bytes: 2 * 2 ** 20 };

export type ConvertingOptions = {
  /** Path of ffmpeg; asked for with the first packet. */
  ffmpeg: () => Promise<string>;
  /** Called for the first fault of a stream: an encoder that fails is started again every second. */
  onError: (error: Error) => void;
};

type Waiting = { ms: number; data: Buffer };
type Conversion = { codec: ConvertibleCodec; encoder: AudioEncoder | null; waiting: Waiting[]; bytes: number };

/** Passes a publisher's stream on to `sink`, with its audio as AAC. */
export class ConvertingSink implements PublishSink {
  readonly #sink: PublishSink;
  readonly #options: ConvertingOptions;
  readonly #hold: VideoHold;
  #connection: PublishedStream | null = null;
  #conversion: Conversion | null = null;
  /** The last timestamp, and the same without wraps. */
  #clock: { timestamp: number; ms: number } | null = null;
  #configuration: Buffer | null = null;
  #hasFailed = false;
  #hasEnded = false;

  constructor(sink: PublishSink, options: ConvertingOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#hold = new VideoHold((error) => this.#connection?.stop(error.message));
  }

  onStart(connection: PublishedStream): void {
    this.#connection = connection;
    this.#sink.onStart?.(connection);
  }

  onConfig(config: TrackConfig): void {
    const emit = () => this.#sink.onConfig(config);
    // After the samples before it.
    if (config.kind === "video") return this.#hold.add({ ms: Number.NEGATIVE_INFINITY, bytes: 0, emit });
    this.#stop();
    emit();
  }

  onSample(sample: LiveSample): void {
    const emit = () => this.#sink.onSample(sample);
    if (sample.kind === "audio") return emit();
    this.#hold.add({ ms: this.#msOf(sample.timestamp), bytes: sample.data.length, emit });
  }

  onMetadata(metadata: StreamMetadata): void {
    this.#sink.onMetadata(metadata);
  }

  onTracks(kinds: readonly TrackConfig["kind"][]): void {
    this.#sink.onTracks?.(kinds);
  }

  onWarning(warning: PublishWarning): void {
    this.#sink.onWarning?.(warning);
  }

  onConvertible(audio: ConvertibleAudio): void {
    if (this.#conversion?.codec !== audio.codec) this.#start(audio.codec);
    const conversion = this.#conversion as Conversion;
    const ms = this.#msOf(audio.timestamp);
    this.#clock = { timestamp: audio.timestamp, ms };
    this.#hold.audioPushed(ms);
    if (conversion.encoder) return conversion.encoder.push(ms, audio.data);
    const { waiting } = conversion;
    conversion.bytes += audio.data.length;
    if (waiting.length < MAX_WAITING.packets && conversion.bytes < MAX_WAITING.bytes)
      waiting.push({ ms, data: audio.data });
  }

  onEnd(end: StreamEnd): void {
    const encoder = this.#conversion?.encoder;
    // A reconnect must find the channel waiting for it.
    if (!encoder || end !== "unpublished") return this.#end(end);
    void encoder.finish(FINISH_MS).finally(() => this.#end(end));
  }

  #end(end: StreamEnd): void {
    this.#stop();
    this.#hasEnded = true;
    this.#sink.onEnd(end);
  }

  #start(codec: ConvertibleCodec): void {
    this.#stop();
    const conversion: Conversion = { codec, encoder: null, waiting: [], bytes: 0 };
    this.#conversion = conversion;
    const onError = (error: Error) => this.#fail(error);
    const begin = (path: string) => {
      if (this.#conversion !== conversion) return;
      const onPacket = (packet: AacPacket) => {
        if (this.#conversion === conversion && !this.#hasEnded) this.#emit(packet);
      };
      const encoder = encoderOf(codec, { ffmpeg: path, onPacket, onError });
      conversion.encoder = encoder;
      for (const { ms, data } of conversion.waiting.splice(0)) encoder.push(ms, data);
    };
    this.#options.ffmpeg().then(begin, onError);
  }

  /** Unsigned 32 bits that wrap, without wraps. */
  #msOf(timestamp: number): number {
    const last = this.#clock;
    return last ? last.ms + ((timestamp - last.timestamp) | 0) : timestamp;
  }

  #emit({ timeMs, data, configuration }: AacPacket): void {
    try {
      if (!this.#configuration?.equals(configuration)) {
        this.#configuration = configuration;
        this.#sink.onConfig({ kind: "audio", codec: "aac", configuration });
      }
      const timestamp = Math.round(timeMs) >>> 0;
      this.#sink.onSample({ kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data });
    } catch (error) {
      this.#connection?.stop((error as Error).message);
    }
    this.#hold.audioEncoded(timeMs);
  }

  #fail(error: Error): void {
    if (this.#hasFailed || this.#hasEnded) return;
    this.#hasFailed = true;
    this.#options.onError(error);
    this.onWarning({
      code: "configuration_missing",
      message: "The audio cannot be decoded, so it is not played. Restart the encoder, or encode the audio as AAC.",
    });
  }

  #stop(): void {
    this.#conversion?.encoder?.close();
    this.#hold.flush();
    this.#conversion = null;
    this.#configuration = null;
  }
}

const encoderOf = (codec: ConvertibleCodec, options: AudioEncoderOptions): AudioEncoder =>
  codec === "opus" ? new OpusEncoder(options) : new FrameEncoder(codec, options);
