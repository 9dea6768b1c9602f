import { type FrameClock, VIDEO_TIMESCALE } from "./frame-clock.ts";
import { type Frame, PartBuffer } from "./part-buffer.ts";
import type { TrackWriter } from "./track-writer.ts";

/** A keyframe this much before the target ends a segment: frames of 4 s need not last 4 s exactly. */
const EARLY_SECONDS = 0.1;

export type Limits = { partSeconds: number; targetSegmentSeconds: number; maxSegmentSeconds: number };
/** Where the video has been cut, in seconds from the start of the recording. */
export type Cut = { seconds: number; isSegmentEnd: boolean };

/** Cuts frames into parts and segments. The duration of a frame is known when the next one arrives. */
export class VideoTrack {
  readonly #writer: TrackWriter;
  readonly #clock: FrameClock;
  readonly #limits: Limits;
  readonly #onCut: (cut: Cut) => void;
  /** Where the first frame of the next broadcast belongs. */
  #end = 0;
  #last: Frame | null = null;
  readonly #part: PartBuffer;
  #segmentTime = 0;
  /** The composition offset of the first frame, which the edit list removes. */
  #delay: number | null = null;
  /** Latest presentation time at which a frame ends. */
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
    this.#last = { time, data, isSync: isKeyframe, compositionOffset, duration };
    this.#delay ??= compositionOffset;
    this.#presented = Math.max(this.#presented, time + compositionOffset + duration);
    const elapsed = time - this.#segmentTime;
    if (isKeyframe && elapsed >= (this.#limits.targetSegmentSeconds - EARLY_SECONDS) * VIDEO_TIMESCALE) {
      this.#flushPart(true);
      this.#segmentTime = time;
    } else if (!this.#part.fits(this.#last.duration)) this.#flushPart(false);
  }

  /**
   * Ends the open segment with the last frame that arrived. It lasts until all frames have been presented: a broken connection
   * may have lost B-frames that are presented before it, and the next broadcast must not begin before its time.
   */
  flush(): void {
    if (!this.#last) return;
    this.#last.duration = Math.max(this.#last.duration, this.#presented - (this.#delay ?? 0) - this.#last.time);
    this.#part.append(this.#last);
    this.#last = null;
    this.#flushPart(true);
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
