import type { ConvertibleAudio, LiveSample, TrackConfig } from "#lib/codecs";
import { AccessUnitReader, type VideoSyntax } from "./access-unit-reader.ts";
import { AdtsReader, type AudioFrame } from "./adts-reader.ts";
import { convertibleReader } from "./convertible-reader.ts";
import { h264 } from "./h264.ts";
import { hevc } from "./hevc.ts";
import { LatmReader } from "./latm-reader.ts";
import type { PesPacket } from "./pes-reader.ts";
import type { SelectedAudio, TsVideoCodec } from "./stream-types.ts";
import { millisecondsOf, type ProgramClock, TICKS_PER_SECOND, tickDifference, timestampOf } from "./timestamps.ts";

/** Reads the samples of a track from its PES packets. */
export type TrackReader = {
  read(packet: PesPacket): void;
  /** A packet was lost. */
  reset(): void;
};

export type TrackOutput = {
  /** Called before the first sample of a track, and again when it changes; may be repeated. */
  onConfig: (config: TrackConfig) => void;
  onSample: (sample: LiveSample) => void;
  /** `name`: of the codec, for people. */
  onConvertible: (audio: ConvertibleAudio, name: string) => void;
};

const SYNTAX: Record<TsVideoCodec, VideoSyntax> = { h264, hevc };

export class VideoTrackReader implements TrackReader {
  readonly #codec: TsVideoCodec;
  readonly #clock: ProgramClock;
  readonly #output: TrackOutput;
  readonly #units: AccessUnitReader;

  constructor(codec: TsVideoCodec, clock: ProgramClock, output: TrackOutput) {
    this.#codec = codec;
    this.#clock = clock;
    this.#output = output;
    this.#units = new AccessUnitReader(SYNTAX[codec]);
  }

  read({ times, data }: PesPacket): void {
    if (times === null) return;
    const { pts, dts } = times;
    const unit = this.#units.read(data);
    if (unit === null) return;
    const { isKeyframe, configuration } = unit;
    if (configuration) this.#output.onConfig({ kind: "video", codec: this.#codec, configuration });
    const decoded = this.#clock.unwrap(dts);
    // Both are rounded alike, so that equal presentation times stay equal.
    const compositionOffset = millisecondsOf(decoded + tickDifference(pts, dts)) - millisecondsOf(decoded);
    const timestamp = timestampOf(decoded);
    this.#output.onSample({ kind: "video", timestamp, compositionOffset, isKeyframe, data: unit.data });
  }

  /** Decoders conceal a missing frame until the next keyframe. */
  reset(): void {}
}

type TimedFrame = { offsetSeconds: number; durationSeconds: number };

/** Frames of audio with their times. `Frame`: what `frames` reads. */
export class AudioTrackReader<Frame extends TimedFrame> implements TrackReader {
  readonly #clock: ProgramClock;
  readonly #frames: { read(packet: Buffer): Frame[]; reset(): void };
  readonly #onFrame: (frame: Frame, timestamp: number) => void;
  /** The end of the last frame, in ticks without wraps; null before the first timestamp, and after a loss. */
  #end: number | null = null;

  constructor(
    frames: { read(packet: Buffer): Frame[]; reset(): void },
    clock: ProgramClock,
    onFrame: (frame: Frame, timestamp: number) => void,
  ) {
    this.#frames = frames;
    this.#clock = clock;
    this.#onFrame = onFrame;
  }

  read({ times, data }: PesPacket): void {
    const frames = this.#frames.read(data);
    const [first] = frames;
    // Without a timestamp its frames follow those before.
    const continued = this.#end === null || !first ? null : this.#end - first.offsetSeconds * TICKS_PER_SECOND;
    const start = times ? this.#clock.unwrap(times.pts) : continued;
    if (start === null) return;
    for (const frame of frames) {
      const begins = start + frame.offsetSeconds * TICKS_PER_SECOND;
      this.#end = begins + frame.durationSeconds * TICKS_PER_SECOND;
      this.#onFrame(frame, timestampOf(begins));
    }
  }

  reset(): void {
    this.#frames.reset();
    this.#end = null;
  }
}

/** Throws RejectedMedia for audio that cannot be converted. */
export function audioTrackReader(audio: SelectedAudio, clock: ProgramClock, output: TrackOutput): TrackReader {
  if ("stream" in audio) {
    const { codec, name, stream } = audio;
    return new AudioTrackReader(convertibleReader(codec, stream), clock, ({ data }, timestamp) =>
      output.onConvertible({ codec, timestamp, data }, name),
    );
  }
  const reader = audio.codec === "latm" ? new LatmReader() : new AdtsReader();
  return new AudioTrackReader(reader, clock, ({ data, configuration }: AudioFrame, timestamp) => {
    output.onConfig({ kind: "audio", codec: "aac", configuration });
    output.onSample({ kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data });
  });
}
