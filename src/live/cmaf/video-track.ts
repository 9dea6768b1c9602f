import { type FrameClock, VIDEO_TIMESCALE } from "./frame-clock.ts";
import { type Frame, PartBuffer } from "./part-buffer.ts";
import type { TrackWriter } from "./track-writer.ts";

/** A keyframe this much before the target ends a segment: frames of 4 s need not last 4 s exactly. */
const EARLY_SECONDS = 0.1;

export type Limits = { partSeconds: number; targetSegmentSeconds: number; maxSegmentSeconds: number };
/** Where the video has been cut, in seconds from the start of the recording. */
export type Cut = { seconds: number; isSegmentEnd: boolean };

/** `presentedUntil`: the latest time at which the presentation of this frame, or of one before it, ends. */
type VideoFrame = Frame & { presentedUntil: number };

/** Cuts frames into parts and segments. The duration of a frame is known when the next one arrives. */
export class VideoTrack {
  readonly #writer: TrackWriter;
  readonly #clock: FrameClock;
  readonly #limits: Limits;
  readonly #onCut: (cut: Cut) => void;
  /** Where the first frame of the next broadcast belongs. */
  #end = 0;
  #last: VideoFrame | null = null;
  readonly #part: PartBuffer<VideoFrame>;
  #segmentTime = 0;
  /** The composition offset of the first frame, which the edit list removes. */
  #delay: number | null = null;
  /** `presentedUntil` of the frame that was added last. */
  #presented = 0;

  constructor(writer: TrackWriter, clock: FrameClock, limits: Limits, onCut: (cut: Cut) => void) {
    this.#writer = writer;
    this.#clock = clock;
    this.#limits = limits;
    this.#onCut = onCut;
    this.#part = new PartBuffer(limits.partSeconds, () => this.#flushPart(false));
  }

  get writer(): TrackWriter {
    return this.#writer;
  }
  /** Seconds from the start of the recording to the end of the video so far. */
  get seconds(): number {
    return (this.#last ? this.#last.time + this.#last.duration : this.#end) / VIDEO_TIMESCALE;
  }
  /** How long the open segment is. */
  get segmentSeconds(): number {
    return this.#last ? (this.#last.time - this.#segmentTime) / VIDEO_TIMESCALE : 0;
  }
  get hasParts(): boolean {
    return this.#end > 0;
  }

  /** `ms`: on the timeline of the broadcast. The first frame, also after `flush`, is a keyframe. */
  add(ms: number, frame: { compositionOffset: number; isKeyframe: boolean; data: Buffer }): void {
    const isFirst = this.#last === null;
    if (isFirst) {
      this.#clock.start(ms, this.#end);
      this.#segmentTime = this.#end;
    }
    const time = isFirst ? this.#end : this.#clock.next(ms);
    if (this.#last) {
      this.#last.duration = time - this.#last.time;
      this.#part.append(this.#last);
    }
    const { isKeyframe, data } = frame;
    const compositionOffset = this.#clock.compositionOffset(time, ms, frame.compositionOffset);
    const duration = this.#clock.frameDuration;
    const presentedUntil = Math.max(this.#presented, time + compositionOffset + duration);
    this.#last = { time, data, isSync: isKeyframe, compositionOffset, duration, presentedUntil };
    this.#delay ??= compositionOffset;
    this.#presented = presentedUntil;
    const elapsed = time - this.#segmentTime;
    if (isKeyframe && elapsed >= (this.#limits.targetSegmentSeconds - EARLY_SECONDS) * VIDEO_TIMESCALE) {
      this.#flushPart(true);
      this.#segmentTime = time;
    } else if (!this.#part.fits(this.#last.duration)) this.#flushPart(false);
  }

  /**
   * Ends the open segment with the last frame that arrived, which lasts until all have been presented: a broken connection may
   * have lost B-frames that are presented before it, and the next broadcast must not begin before its time. `isBroken`: frames
   * that are presented after lost ones are left out when the last part became too long otherwise. Divided, its first half
   * could be shorter than LL-HLS allows.
   */
  flush({ isBroken = false } = {}): void {
    const last = this.#last;
    if (!last) return;
    this.#last = null;
    const frames = [...this.#part.take(), last];
    const count = isBroken ? this.#undivided(frames) : frames.length;
    const kept = frames.slice(0, count);
    const end = kept.at(-1) as VideoFrame;
    end.duration = this.#untilPresented(end);
    this.#presented = end.presentedUntil;
    for (const frame of kept) this.#part.append(frame);
    this.#flushPart(true);
  }

  #untilPresented({ time, duration, presentedUntil }: VideoFrame): number {
    return Math.max(duration, presentedUntil - (this.#delay ?? 0) - time);
  }

  /** How many of these frames are one part; all of them if that cannot be. */
  #undivided(frames: readonly VideoFrame[]): number {
    const end = (frames[0] as VideoFrame).time + this.#limits.partSeconds * VIDEO_TIMESCALE;
    return frames.findLastIndex((frame) => frame.time + this.#untilPresented(frame) <= end) + 1 || frames.length;
  }

  #flushPart(isSegmentEnd: boolean): void {
    const frames = this.#part.take();
    const [first, last] = [frames[0], frames.at(-1)];
    if (first && last) {
      this.#end = last.time + last.duration;
      this.#writer.addPart(frames, first.time);
    }
    if (isSegmentEnd) this.#writer.endSegment();
    if (first || isSegmentEnd) this.#onCut({ seconds: this.#end / VIDEO_TIMESCALE, isSegmentEnd });
  }
}
