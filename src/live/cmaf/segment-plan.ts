/** A keyframe this much before the target ends a segment: frames of 4 s need not last 4 s exactly. */
const EARLY_SECONDS = 0.1;
/** Durations are rounded to the nearest second before they are compared with TARGETDURATION (4.4.3.1); the rest is for sums. */
const OVER_SECONDS = 0.45;
/** As the target is fixed: a first segment of 4.3 s makes it 5, so that one of 4.6 s may follow. Audio may be a packet longer. */
const TARGET_MARGIN_SECONDS = 0.2;
/** Shorter segments cost more requests than they gain. */
const MIN_SEGMENT_SECONDS = 0.25;
/** Intervals between keyframes that are remembered, and how many equal ones are a rule. */
const INTERVALS = 16;
const REGULAR = { count: 4, ratio: 0.1 };
/** In a first segment that is too long: fewer frames are slides, which have no more keyframes. */
const MAX_SLIDES = 24;

export type Limits = { partSeconds: number; targetSegmentSeconds: number; maxSegmentSeconds: number };
/** What playlists state, and no later segment or part exceeds. */
export type Targets = { segmentSeconds: number; partSeconds: number };

/**
 * Decides where segments end. Durations are in seconds. What playlists state follows from the first segment: before it is
 * complete, a segment lasts until the first keyframe after the target. Then none is longer than TARGETDURATION allows.
 */
export class SegmentPlan {
  readonly limits: Limits;
  #targets: Targets | null = null;
  #keyframeAt: number | null = null;
  readonly #intervals: number[] = [];

  constructor(limits: Limits) {
    this.limits = limits;
  }

  /** Null before the first segment is complete. */
  get targets(): Targets | null {
    return this.#targets;
  }

  /** The longest part. */
  get partSeconds(): number {
    return this.#targets?.partSeconds ?? this.limits.partSeconds;
  }

  /** The longest segment. */
  get longestSeconds(): number {
    return this.#targets ? this.#targets.segmentSeconds + OVER_SECONDS : this.limits.maxSegmentSeconds;
  }

  /** The first segment is complete; `longestPart`: of its parts, of the track that cuts. Later calls have no effect. */
  complete(durationSeconds: number, longestPart: number): void {
    const longest = Math.max(durationSeconds, this.limits.targetSegmentSeconds);
    const segmentSeconds = Math.max(1, Math.ceil(longest - TARGET_MARGIN_SECONDS));
    this.#targets ??= { segmentSeconds, partSeconds: longestPart };
  }

  /** A keyframe, by the time of the recording. */
  keyframe(seconds: number): void {
    if (this.#keyframeAt !== null) this.#intervals.push(seconds - this.#keyframeAt);
    if (this.#intervals.length > INTERVALS) this.#intervals.shift();
    this.#keyframeAt = seconds;
  }

  /** The keyframes that follow do not continue those before. */
  interrupted(): void {
    this.#keyframeAt = null;
  }

  /** Whether a keyframe so long after the start of a segment ends it: the target is reached, or the next keyframe may come too late. */
  endsAt(elapsed: number): boolean {
    if (elapsed >= this.limits.targetSegmentSeconds - EARLY_SECONDS) return true;
    return this.#targets !== null && elapsed >= MIN_SEGMENT_SECONDS && elapsed + this.#expected > this.longestSeconds;
  }

  /** Whether a segment is so long that it ends without a keyframe. */
  isTooLong(elapsed: number, frames: number): boolean {
    return elapsed > this.longestSeconds && (this.#targets !== null || frames <= MAX_SLIDES);
  }

  /** When the next keyframe comes, at the latest. Scene cuts add keyframes between the regular ones, whose interval is not known. */
  get #expected(): number {
    const last = this.#intervals.slice(-REGULAR.count);
    const least = Math.min(...last);
    const most = Math.max(...last);
    if (last.length > 0 && most - least <= REGULAR.ratio * most && this.#isRule(last.length)) return most;
    return Math.max(this.limits.targetSegmentSeconds, ...this.#intervals);
  }

  /** All intervals so far, or several in sequence. */
  #isRule(count: number): boolean {
    return count === REGULAR.count || count === this.#intervals.length;
  }
}
