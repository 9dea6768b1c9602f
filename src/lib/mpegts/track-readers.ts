import type { LiveSample, TrackConfig } from "#lib/codecs";
import { AccessUnitReader, type VideoSyntax } from "./access-unit-reader.ts";
import { AdtsReader } from "./adts-reader.ts";
import { h264 } from "./h264.ts";
import { hevc } from "./hevc.ts";
import { LatmReader } from "./latm-reader.ts";
import type { PesPacket } from "./pes-reader.ts";
import type { AudioFraming } from "./stream-kinds.ts";
import type { TsVideoCodec } from "./stream-types.ts";
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

export class AudioTrackReader implements TrackReader {
  readonly #clock: ProgramClock;
  readonly #output: TrackOutput;
  readonly #frames: AdtsReader | LatmReader;
  /** The end of the last frame, in ticks without wraps; null before the first timestamp, and after a loss. */
  #end: number | null = null;

  constructor(framing: AudioFraming, clock: ProgramClock, output: TrackOutput) {
    this.#frames = framing === "latm" ? new LatmReader() : new AdtsReader();
    this.#clock = clock;
    this.#output = output;
  }

  read({ times, data }: PesPacket): void {
    const frames = this.#frames.read(data);
    const [first] = frames;
    // Without a timestamp its frames follow those before.
    const continued = this.#end === null || !first ? null : this.#end - first.offsetSeconds * TICKS_PER_SECOND;
    const start = times ? this.#clock.unwrap(times.pts) : continued;
    if (start === null) return;
    for (const { offsetSeconds, durationSeconds, data: block, configuration } of frames) {
      this.#output.onConfig({ kind: "audio", codec: "aac", configuration });
      const begins = start + offsetSeconds * TICKS_PER_SECOND;
      this.#end = begins + durationSeconds * TICKS_PER_SECOND;
      const timestamp = timestampOf(begins);
      this.#output.onSample({ kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data: block });
    }
  }

  reset(): void {
    this.#frames.reset();
    this.#end = null;
  }
}
