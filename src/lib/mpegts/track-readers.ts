import type { LiveSample, TrackConfig } from "#lib/codecs";
import { AccessUnitReader, type VideoSyntax } from "./access-unit-reader.ts";
import { AdtsReader } from "./adts-reader.ts";
import { h264 } from "./h264.ts";
import { hevc } from "./hevc.ts";
import type { PesPacket } from "./pes-reader.ts";
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

  read({ pts, dts, data }: PesPacket): void {
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
  readonly #frames = new AdtsReader();

  constructor(clock: ProgramClock, output: TrackOutput) {
    this.#clock = clock;
    this.#output = output;
  }

  read({ pts, data }: PesPacket): void {
    const start = this.#clock.unwrap(pts);
    for (const { offsetSeconds, data: block, configuration } of this.#frames.read(data)) {
      this.#output.onConfig({ kind: "audio", codec: "aac", configuration });
      const timestamp = timestampOf(start + offsetSeconds * TICKS_PER_SECOND);
      this.#output.onSample({ kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data: block });
    }
  }

  reset(): void {
    this.#frames.reset();
  }
}
