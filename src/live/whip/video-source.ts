import { readH264 } from "#lib/codecs";
import { AccessUnitReader, h264 } from "#lib/mpegts";
import { H264Depacketizer } from "./h264-depacketizer.ts";
import { JitterBuffer } from "./jitter-buffer.ts";
import { bufferOptions, type WhipLimits } from "./limits.ts";
import type { RtpPacket } from "./rtp.ts";
import type { SourceClock } from "./sender-clock.ts";

/** An access unit of one source. `sets`: the parameter sets that it needs; empty unless it is a keyframe. */
export type VideoFrame = { timestamp: number; isKeyframe: boolean; data: Buffer; sets: readonly Buffer[] };

type VideoSourceOptions = {
  clock: SourceClock;
  limits: WhipLimits;
  /** Parameter sets of the offer. */
  sets: readonly Buffer[];
  hasNack: boolean;
};

/** One layer of video: its packets in order, and the frames in them. */
export class VideoSource {
  readonly id: number;
  readonly clock: SourceClock;
  readonly buffer: JitterBuffer<RtpPacket>;
  readonly #depacketizer: H264Depacketizer;
  readonly #reader = new AccessUnitReader(h264);
  #configuration: Buffer | null = null;
  #pixels = 0;
  /** Frames refer to one that is lost. */
  #needsKeyframe = true;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #keyframeAt = Number.NEGATIVE_INFINITY;
  #frameAt = Number.NEGATIVE_INFINITY;

  constructor(id: number, { clock, limits, sets, hasNack }: VideoSourceOptions) {
    this.id = id;
    this.clock = clock;
    this.buffer = new JitterBuffer(bufferOptions(limits, hasNack));
    this.#depacketizer = new H264Depacketizer(limits.frameBytes);
    // The parameter sets of the offer, for an encoder that does not send them again.
    if (sets.length > 0) this.#reader.readUnits(sets);
  }

  /** The size of its last keyframe; 0 before the first one. */
  get pixels(): number {
    return this.#pixels;
  }
  /** When its last complete frame was read. */
  get frameAt(): number {
    return this.#frameAt;
  }
  /** The decoder configuration of its last keyframe; null before it. */
  get configuration(): Buffer | null {
    return this.#configuration;
  }

  /** The frames that are complete and can be decoded. Throws RejectedMedia. */
  read(now: number): VideoFrame[] {
    const frames: VideoFrame[] = [];
    for (let next = this.buffer.take(); next; next = this.buffer.take()) {
      if (next.isAfterLoss) {
        this.#depacketizer.lose();
        this.#needsKeyframe = true;
      }
      for (const { timestamp, units } of this.#depacketizer.push(next.packet)) {
        const frame = this.#frameOf(timestamp, units, now);
        if (frame) frames.push(frame);
      }
    }
    return frames;
  }

  /** Whether a keyframe is to be requested: regularly, and after a loss. To be called often. */
  shouldRequestKeyframe(now: number, { everyMs, repeatMs }: { everyMs: number; repeatMs: number }): boolean {
    const isDue = this.#needsKeyframe || now - this.#keyframeAt >= everyMs;
    if (!isDue || now - this.#requestedAt < repeatMs) return false;
    this.#requestedAt = now;
    return true;
  }

  #frameOf(timestamp: number, units: readonly Buffer[], now: number): VideoFrame | null {
    const unit = this.#reader.readUnits(units);
    if (!unit) return null;
    const { isKeyframe, data, configuration } = unit;
    if (configuration) {
      this.#configuration = configuration;
      const { width, height } = readH264(configuration);
      this.#pixels = width * height;
    }
    if (isKeyframe) {
      this.#keyframeAt = now;
      this.#needsKeyframe = this.#configuration === null;
    }
    if (this.#needsKeyframe) return null;
    this.#frameAt = now;
    return { timestamp, isKeyframe, data, sets: isKeyframe ? this.#reader.sets : [] };
  }
}
