import { type FrameClock, VIDEO_TIMESCALE } from "./frame-clock.ts";
import { HeldGop } from "./held-gop.ts";
import { type Frame, PartBuffer } from "./part-buffer.ts";
import type { SegmentPlan } from "./segment-plan.ts";
import type { TrackWriter } from "./track-writer.ts";
import type { AddedFrame } from "./types.ts";

/** Where the video has been cut, in seconds from the start of the recording. */
export type Cut = { seconds: number; isSegmentEnd: boolean };

type Events = { onCut: (cut: Cut) => void; onFrame: (frame: AddedFrame) => void };

/** `presentedUntil`: the latest time at which the presentation of this frame, or of one before it, ends. */
type VideoFrame = Frame & { presentedUntil: number };

/** Sums of rounded durations. */
const ROUNDING = VIDEO_TIMESCALE / 10_000;
/** A share of the longest part: each part but the last of a segment is at least as long; after a frame that lasts as long, some are missing. */
const MIN_PART_SHARE = 0.88;
const GAP_SHARE = 1 / 3;
/** A frame that lasts so many times as long as expected is not of a constant rate. */
const IRREGULAR_RATIO = 1.5;
/** So many frames that last at most a share of a part each are no slides: a frame that is late then is a pause. */
const NO_SLIDES = { frames: 10, share: 0.5 };
const unitsOf = (seconds: number) => Math.round(seconds * VIDEO_TIMESCALE);

/** Cuts frames into parts and segments. The duration of a frame is known when the next one arrives. */
export class VideoTrack {
  readonly #writer: TrackWriter;
  readonly #clock: FrameClock;
  readonly #plan: SegmentPlan;
  readonly #events: Events;
  readonly #gop = new HeldGop();
  /** Where the first frame of the next stream belongs. */
  #end = 0;
  #last: VideoFrame | null = null;
  #part: PartBuffer<VideoFrame>;
  #longestPart = 0;
  /** A segment had more than one part. */
  #isDivided = false;
  #segmentTime = 0;
  #segmentFrames = 0;
  /** The composition offset of the first frame, which the edit list removes. */
  #delay: number | null = null;
  /** `presentedUntil` of the frame that was added last. */
  #presented = 0;
  /** The time of the last frame that arrived. */
  #arrived = 0;
  /** The composition offset of the first frame, in milliseconds, and whether others differ. */
  #offsetMs: number | null = null;
  #isReordered = false;
  /** The last frame is repeated, because the next one is late. */
  #isHeld = false;

  constructor(writer: TrackWriter, clock: FrameClock, plan: SegmentPlan, events: Events) {
    this.#writer = writer;
    this.#clock = clock;
    this.#plan = plan;
    this.#events = events;
    this.#part = new PartBuffer(
      () => unitsOf(plan.partSeconds),
      () => this.#flushPart(false),
    );
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
  get segmentFrames(): number {
    return this.#segmentFrames;
  }
  get isHeld(): boolean {
    return this.#isHeld;
  }
  /** For how long the last frame that arrived has been shown. */
  get heldSeconds(): number {
    return this.#isHeld ? this.seconds - this.#arrived / VIDEO_TIMESCALE : 0;
  }

  /**
   * Begins a track later than the recording, with a keyframe that is presented at `seconds`: it is shown from the start on, in
   * segments that end at `ends`. The frames that follow are added as usual, the keyframe first.
   */
  begin(
    frame: { compositionOffset: number; data: Buffer },
    { seconds, ends }: { seconds: number; ends: readonly number[] },
  ): void {
    const { data, compositionOffset } = frame;
    this.#delay = compositionOffset;
    const first: VideoFrame = {
      data,
      time: 0,
      duration: 1,
      isSync: true,
      compositionOffset,
      presentedUntil: compositionOffset + 1,
    };
    this.#gop.add(first);
    this.#last = first;
    this.#segmentFrames = 1;
    this.#isHeld = true;
    for (const end of ends.map(unitsOf)) {
      this.#holdUntil(end, { isBounded: false });
      this.#repeatAt(end, true);
    }
    this.#holdUntil(unitsOf(seconds), { isBounded: false });
  }

  /** `ms`: on the timeline of the stream. The first frame, also after `flush`, is a keyframe. `at`: where it belongs, in seconds. */
  add(ms: number, frame: { compositionOffset: number; isKeyframe: boolean; data: Buffer }, at?: number): void {
    const isFirst = this.#last === null;
    if (isFirst) {
      this.#clock.start(ms, this.#end);
      this.#segmentTime = this.#end;
      this.#segmentFrames = 0;
    }
    if (at !== undefined) this.#clock.start(ms, Math.max(0, unitsOf(at)));
    const wanted = isFirst ? this.#end : at === undefined ? this.#clock.next(ms) : unitsOf(at);
    if (!isFirst) this.#holdUntil(wanted);
    const { isKeyframe, data } = frame;
    const fitted = this.#fitted(wanted, isKeyframe);
    const time = this.#last ? Math.max(fitted, this.#last.time + 1) : fitted;
    if (this.#last) this.#append(this.#last, time);
    this.#isHeld = false;
    // Frames that are decoded in the order of presentation are shown that much earlier too: there is no gap between them.
    this.#offsetMs ??= frame.compositionOffset;
    this.#isReordered ||= frame.compositionOffset !== this.#offsetMs;
    const isMoved = fitted < wanted && !this.#isReordered;
    const compositionOffset = this.#clock.compositionOffset(isMoved ? wanted : time, ms, frame.compositionOffset);
    const duration = this.#clock.frameDuration;
    const presentedUntil = Math.max(this.#presented, time + compositionOffset + duration);
    this.#last = { time, data, isSync: isKeyframe, compositionOffset, duration, presentedUntil };
    this.#arrived = time;
    this.#gop.add(this.#last);
    this.#segmentFrames++;
    this.#delay ??= compositionOffset;
    this.#presented = presentedUntil;
    const [decoded, presented] = [time, time + compositionOffset].map((units) => units - (this.#delay ?? 0));
    this.#events.onFrame({
      decodedSeconds: (decoded as number) / VIDEO_TIMESCALE,
      presentedSeconds: (presented as number) / VIDEO_TIMESCALE,
      data,
    });
    if (isKeyframe) this.#plan.keyframe(time / VIDEO_TIMESCALE);
    const elapsed = time - this.#segmentTime;
    if (isKeyframe && elapsed > 0 && this.#plan.endsAt(elapsed / VIDEO_TIMESCALE)) {
      this.#flushPart(true);
      this.#segmentFrames = 1;
    } else if (!this.#part.fits(duration) && !(this.#plan.targets && this.#isShort)) this.#flushPart(false);
  }

  /** The open part is too short to end with the last frame. */
  get #isShort(): boolean {
    const length = this.#last && this.#part.first ? this.#last.time - this.#part.first.time : 0;
    return length > 0 && length < unitsOf(this.#plan.partSeconds) * MIN_PART_SHARE;
  }

  /**
   * When a frame is decoded that comes at `wanted`: at a variable rate, the part before it may be too short without the last frame,
   * and too long with it. Then it comes where the part ends.
   */
  #fitted(wanted: number, isKeyframe: boolean): number {
    const last = this.#last;
    const first = this.#part.first;
    if (!last || !first || !this.#isShort) return wanted;
    const end = first.time + unitsOf(this.#plan.partSeconds);
    const isRegular = !this.#plan.targets && wanted - last.time <= IRREGULAR_RATIO * this.#clock.frameDuration;
    // One that is much later would be long itself, and shown too early.
    const isLate = wanted - end > unitsOf(this.#plan.partSeconds) * GAP_SHARE;
    if (wanted <= end + ROUNDING || isRegular || isLate) return wanted;
    const isSegmentEnd = isKeyframe && this.#plan.endsAt((wanted - this.#segmentTime) / VIDEO_TIMESCALE);
    return isSegmentEnd ? wanted : end;
  }

  /** The next frame comes after `seconds`: the last one lasts at least until then. */
  hold(seconds: number): void {
    if (this.#last) this.#holdUntil(unitsOf(seconds));
  }

  /**
   * Ends the open segment with the last frame that arrived, which lasts until all have been presented: a broken connection may
   * have lost B-frames that are presented before it, and the next stream must not begin before its time. `isBroken`: frames
   * that are presented after lost ones are left out when the last part became too long otherwise. Divided, its first half
   * could be shorter than LL-HLS allows. `until`: the last frame lasts at least so long, in seconds.
   */
  flush({ isBroken = false, until = 0 } = {}): void {
    if (this.#last && unitsOf(until) > this.#last.time) this.#holdUntil(unitsOf(until));
    const last = this.#last;
    if (!last) return;
    if (unitsOf(until) > last.time)
      last.presentedUntil = Math.max(last.presentedUntil, unitsOf(until) + (this.#delay ?? 0));
    this.#last = null;
    this.#isHeld = false;
    this.#plan.interrupted();
    const frames = [...this.#part.take(), last];
    const count = isBroken ? this.#undivided(frames) : frames.length;
    const kept = frames.slice(0, count);
    const end = kept.at(-1) as VideoFrame;
    end.duration = this.#untilPresented(end);
    this.#presented = end.presentedUntil;
    for (const frame of kept) this.#part.append(frame);
    this.#flushPart(true);
  }

  /** The duration of the last frame is known: the next one comes at `end`. */
  #append(last: VideoFrame, end: number): void {
    last.duration = end - last.time;
    const isFirst = last.time <= this.#segmentTime;
    if (!isFirst && this.#plan.isTooLong((end - this.#segmentTime) / VIDEO_TIMESCALE, this.#segmentFrames)) {
      this.#flushPart(true);
      this.#segmentFrames = 1;
    }
    this.#part.append(last);
  }

  /**
   * Ends parts, and segments, in which the last frame lasts too long, and repeats it in the next ones. Before playlists state how
   * long they are, a frame may last as long as a segment. `isBounded`: segments end when they are as long as their target.
   */
  #holdUntil(until: number, { isBounded = true } = {}): void {
    const { targets, limits } = this.#plan;
    const units = unitsOf(this.#plan.partSeconds);
    const { frames, share } = NO_SLIDES;
    const isPause = this.#segmentFrames >= frames && this.#clock.frameDuration <= units * share;
    // Slides: PART-TARGET becomes as long as they last.
    const isSlide = !targets && isBounded && !isPause;
    if (isSlide && until - (this.#last?.time ?? until) <= unitsOf(limits.maxSegmentSeconds / 2)) return;
    for (let last = this.#last; last && this.#gop.isComplete; last = this.#last) {
      const start = this.#part.first?.time ?? last.time;
      const end = start + units;
      // Else the part before the frame is long enough, or the frame fits into a part of its own.
      const isShort = last.time - start > 0 && last.time - start < units * MIN_PART_SHARE;
      const isGap = isShort && until - last.time > units * GAP_SHARE && until > end;
      if (end <= last.time || (!isGap && until - last.time <= units + ROUNDING)) return;
      const elapsed = (end - this.#segmentTime) / VIDEO_TIMESCALE;
      const isLong =
        elapsed >= limits.targetSegmentSeconds || elapsed + this.#plan.partSeconds > this.#plan.longestSeconds;
      this.#repeatAt(end, isBounded && isLong);
    }
  }

  /** Ends the part, or the segment, at `end`, and begins the next one with the last frame. */
  #repeatAt(end: number, isSegmentEnd: boolean): void {
    const last = this.#last;
    if (!last || end <= last.time) return;
    last.duration = end - last.time;
    this.#part.append(last);
    this.#flushPart(isSegmentEnd);
    const delay = this.#delay ?? 0;
    // What was decoded before may be presented a little later.
    const presentation = Math.max(end + delay, this.#presented);
    const frames = this.#gop
      .repeated(end, presentation)
      .map((frame) => ({ ...frame, presentedUntil: presentation + frame.time + 1 - end }));
    this.#last = frames.pop() ?? null;
    this.#presented = this.#last?.presentedUntil ?? this.#presented;
    for (const frame of frames) this.#part.append(frame);
    if (isSegmentEnd) this.#segmentFrames = 1;
    this.#isHeld = true;
  }

  /** How long parts of these frames are, at most: in a first segment of one part, as many frames as fit. */
  get #partEvidence(): number {
    const { partSeconds } = this.#plan.limits;
    if (this.#isDivided) return this.#longestPart;
    const frame = this.#clock.frameDuration / VIDEO_TIMESCALE;
    return Math.max(this.#longestPart, Math.max(1, Math.floor(partSeconds / frame)) * frame);
  }

  #untilPresented({ time, duration, presentedUntil }: VideoFrame): number {
    return Math.max(duration, presentedUntil - (this.#delay ?? 0) - time);
  }

  /** How many of these frames are one part; all of them if that cannot be. */
  #undivided(frames: readonly VideoFrame[]): number {
    const end = (frames[0] as VideoFrame).time + unitsOf(this.#plan.partSeconds);
    return frames.findLastIndex((frame) => frame.time + this.#untilPresented(frame) <= end) + 1 || frames.length;
  }

  #flushPart(isSegmentEnd: boolean): void {
    const frames = this.#part.take();
    const first = frames[0];
    const last = frames.at(-1);
    if (first && last) {
      this.#end = last.time + last.duration;
      this.#longestPart = Math.max(this.#longestPart, (this.#end - first.time) / VIDEO_TIMESCALE);
      this.#writer.addPart(frames, first.time);
    }
    if (!isSegmentEnd && first) this.#isDivided = true;
    if (isSegmentEnd) {
      this.#plan.complete((this.#end - this.#segmentTime) / VIDEO_TIMESCALE, this.#partEvidence);
      this.#writer.endSegment();
      this.#segmentTime = this.#end;
    }
    if (first || isSegmentEnd) this.#events.onCut({ seconds: this.#end / VIDEO_TIMESCALE, isSegmentEnd });
  }
}
