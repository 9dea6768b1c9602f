import { iso } from "#lib/base";
import type { InitEvent, PartEvent, SegmentEvent } from "./events.ts";
import { EPSILON, type Part, PartList } from "./part-list.ts";

/** A complete segment. */
export type Segment = {
  startSeconds: number;
  durationSeconds: number;
  /** 0: it is missing, and listed as a gap. */
  bytes: number;
  name: string;
  isDiscontinuous: boolean;
  /** EXT-X-DISCONTINUITY and EXT-X-PROGRAM-DATE-TIME. Made once: a window of 12 hours has 10,800 of them. */
  head: string;
  /** EXTINF. */
  info: string;
  parts: readonly Part[];
};

/** The segment that is being written. `parts.listed` is empty until its first part. */
export type OpenSegment = {
  number: number;
  isDiscontinuous: boolean;
  head: string;
  startSeconds: number;
  parts: PartList;
};

/** What another window needs to continue the playlist. */
export type TrackState = {
  init: InitEvent;
  nextNumber: number | null;
  isDiscontinuityNext: boolean;
  /** End of all that is listed. */
  endSeconds: number;
  /** Earlier versions do not state it. */
  isIndependent?: boolean;
};

export type WindowOptions = { dvrSeconds: number; partTargetSeconds: number };

/** 12 hours of segments of 2 s. Segments that are shorter leave the window earlier. */
const MAX_SEGMENTS = 21_600;
/**
 * In target durations: what stays in the playlist even if `dvrSeconds` is less. draft-pantos-hls-rfc8216bis, 6.2.2 requires
 * 3. A player starts at 3 from the end, so with 3 it would start at the segment that leaves next.
 */
export const MIN_WINDOW = 6;
/** In target durations: how long a part can be requested. 6.2.2: 3 after it has left the playlist, which is after 3. */
const PARTS_KEPT = 7;
/** Removed segments stay in the array until there are so many, and more than others: removing them costs a copy of the others. */
const COMPACT_AT = 64;
const NO_PARTS: readonly Part[] = [];

/** The segments of one track that are in the playlist. Segments have consecutive numbers. */
export class TrackWindow {
  readonly init: InitEvent;
  /** EXT-X-DISCONTINUITY-SEQUENCE. */
  discontinuitySequence = 0;
  open: OpenSegment | null = null;
  /** All segments so far began with a keyframe. */
  isIndependent = true;
  /** The parts of completed segments that were too long; see PartList. */
  partsOver = 0;
  partsUnder = 0;
  readonly #options: WindowOptions;
  /** The track of the publisher that an encoded one follows. */
  readonly #source: TrackWindow | null;
  #isDiscontinuityNext = false;
  #segments: Segment[] = [];
  #head = 0;
  /** Segments at lower indexes have no parts any more. */
  #withoutParts = 0;
  /** Number of the segment at index 0. */
  #numberAtZero = 0;
  #durationSeconds = 0;
  #nextNumber: number | null = null;
  #restoredSeconds = 0;
  #isRestored = false;

  constructor(init: InitEvent, options: WindowOptions, source: TrackWindow | null = null) {
    this.init = init;
    this.#options = options;
    this.#source = source;
  }

  /** A worker encodes it. */
  get isEncoded(): boolean {
    return this.#source !== null;
  }
  /** The next segment begins after an interruption. */
  get isDiscontinuityNext(): boolean {
    if (!this.#source || this.#nextNumber === null) return this.#isDiscontinuityNext;
    return this.#source.#isDiscontinuousAt(this.#nextNumber);
  }
  set isDiscontinuityNext(isNext: boolean) {
    this.#isDiscontinuityNext = isNext;
  }

  state(): TrackState {
    const { init, nextNumber, isDiscontinuityNext, endSeconds, isIndependent } = this;
    return { init, nextNumber, isDiscontinuityNext, endSeconds, ...(isIndependent ? {} : { isIndependent }) };
  }

  /** Restores an empty window. `discontinuities`: the stream's; one of them may not be in this playlist yet. */
  restore(
    { nextNumber, isDiscontinuityNext, endSeconds, isIndependent = true }: TrackState,
    discontinuities: number,
  ): void {
    this.#isRestored = true;
    this.isIndependent = isIndependent;
    this.#nextNumber = nextNumber;
    this.#restoredSeconds = endSeconds;
    this.isDiscontinuityNext = isDiscontinuityNext;
    this.discontinuitySequence = discontinuities - (isDiscontinuityNext ? 1 : 0);
  }

  /** Number of complete segments. */
  get length(): number {
    return this.#segments.length - this.#head;
  }
  get firstNumber(): number {
    return this.#numberAtZero + this.#head;
  }
  /** Number of the last complete segment; only if there is one. */
  get lastNumber(): number {
    return this.#numberAtZero + this.#segments.length - 1;
  }
  /**
   * Number of the first segment that clients may still request. 6.2.2: after a segment has left the playlist, for as long
   * as the playlist is.
   */
  get firstAvailable(): number {
    return this.firstNumber - this.length;
  }
  /** Number of the segment that is open or comes next. Null before the first event. */
  get nextNumber(): number | null {
    return this.#nextNumber;
  }
  /** Start of the first complete segment; without one, where the next one begins. */
  get firstSeconds(): number {
    return this.segment(this.firstNumber)?.startSeconds ?? this.completeSeconds;
  }
  /** End of the last complete segment, also of one before the window was restored. */
  get completeSeconds(): number {
    const last = this.#segments.at(-1);
    return last ? last.startSeconds + last.durationSeconds : this.#restoredSeconds;
  }
  /** End of all that is listed. */
  get endSeconds(): number {
    return Math.max(this.completeSeconds, this.open?.parts.endSeconds ?? 0);
  }

  /** The complete segment `number`, if it is in the window. */
  segment(number: number): Segment | undefined {
    return number < this.firstNumber ? undefined : this.#segments[number - this.#numberAtZero];
  }

  /** Parts of segment `number`, complete or open. Empty when there are none any more. */
  parts(number: number): readonly Part[] {
    if (this.open?.number === number) return this.open.parts.listed;
    return this.segment(number)?.parts ?? NO_PARTS;
  }

  /** The part that will be listed next. */
  get nextPart(): { segment: number; part: number } | null {
    if (this.#nextNumber === null) return null;
    if (!this.open) return { segment: this.#nextNumber, part: 0 };
    const { number, parts } = this.open;
    return parts.isClosed ? { segment: number + 1, part: 0 } : { segment: number, part: parts.listed.length };
  }

  /** Returns whether the playlist has changed. `wallMs` is the time of day of `startSeconds`. */
  addPart(event: PartEvent, wallMs: number): boolean {
    this.#requireNext(event.segment);
    if (event.part === 0 && !event.isIndependent) this.isIndependent = false;
    this.open ??= this.#begin(event, wallMs);
    return this.open.parts.add(event);
  }

  complete(event: SegmentEvent, wallMs: number, targetSeconds: number): void {
    this.#requireNext(event.segment);
    if (this.#isBeforeRestored(event.segment)) return;
    if (event.isIndependent === false) this.isIndependent = false;
    const { isDiscontinuous, head, startSeconds, parts } = this.open ?? this.#begin(event, wallMs);
    parts.close();
    this.partsOver += parts.over;
    this.partsUnder += parts.under;
    const { bytes, durationSeconds, name } = event;
    const info = flat(["#EXTINF:", durationSeconds.toFixed(5), ",\n"]);
    const times = { startSeconds, durationSeconds, bytes, name, isDiscontinuous, head, info };
    this.#push(event.segment, { ...times, parts: parts.listed.length > 0 ? parts.listed : NO_PARTS }, targetSeconds);
  }

  /**
   * Lists a segment of an encoded track that is missing, instead of what there is of it (4.4.4.7). Throws a RangeError when
   * the track of the publisher does not have it.
   */
  gap(number: number, targetSeconds: number): void {
    this.#requireNext(number);
    if (this.#isBeforeRestored(number)) return;
    const of = this.#source?.segment(number);
    if (!of) throw new RangeError(`The publisher has no segment ${number}.`);
    if (!this.open) this.#countDiscontinuities(number);
    const head = flat([of.head, "#EXT-X-GAP\n"]);
    this.#push(number, { ...of, bytes: 0, head, parts: NO_PARTS }, targetSeconds);
  }

  /** An encoded track is behind the publisher's, which does not list that segment since it was restored: it is left out. */
  #isBeforeRestored(segment: number): boolean {
    const source = this.#source;
    if (source === null || !source.#isRestored || this.length > 0 || source.segment(segment)) return false;
    this.#nextNumber = segment + 1;
    this.discontinuitySequence = source.discontinuitySequence;
    return true;
  }

  #push(number: number, segment: Segment, targetSeconds: number): void {
    this.open = null;
    if (this.#segments.length === 0) this.#numberAtZero = number;
    this.#nextNumber = number + 1;
    this.#segments.push(segment);
    this.#durationSeconds += segment.durationSeconds;
    this.#trim(targetSeconds);
  }

  #requireNext(segment: number): void {
    if (this.#nextNumber !== null && segment !== this.#nextNumber)
      throw new RangeError(`Segment ${segment} of ${this.init.track} follows ${this.#nextNumber - 1}.`);
  }

  #begin({ segment, startSeconds }: PartEvent | SegmentEvent, wallMs: number): OpenSegment {
    if (this.#source) return this.#beginWith(this.#source, segment, startSeconds);
    const isDiscontinuous = this.isDiscontinuityNext;
    this.isDiscontinuityNext = false;
    this.#nextNumber = segment;
    const date = ["#EXT-X-PROGRAM-DATE-TIME:", iso(Math.round(wallMs)), "\n"];
    const head = flat(isDiscontinuous ? ["#EXT-X-DISCONTINUITY\n", ...date] : date);
    const parts = new PartList(this.#options.partTargetSeconds, startSeconds);
    return { number: segment, isDiscontinuous, head, startSeconds, parts };
  }

  #beginWith(source: TrackWindow, segment: number, startSeconds: number): OpenSegment {
    const of = source.open?.number === segment ? source.open : source.segment(segment);
    if (!of) throw new RangeError(`The publisher has no segment ${segment}.`);
    this.#countDiscontinuities(segment);
    this.#nextNumber = segment;
    const parts = new PartList(this.#options.partTargetSeconds, startSeconds);
    return { number: segment, isDiscontinuous: of.isDiscontinuous, head: of.head, startSeconds, parts };
  }

  /** An encoded track begins with the discontinuities that the publisher's track had before its first segment. */
  #countDiscontinuities(first: number): void {
    if (!this.#source || this.#nextNumber !== null) return;
    this.discontinuitySequence = this.#source.discontinuitySequence;
    for (let number = this.#source.firstNumber; number < first; number++)
      if (this.#source.segment(number)?.isDiscontinuous) this.discontinuitySequence++;
  }

  #isDiscontinuousAt(number: number): boolean {
    if (this.open?.number === number) return this.open.isDiscontinuous;
    return this.segment(number)?.isDiscontinuous ?? (number === this.#nextNumber && this.#isDiscontinuityNext);
  }

  #trim(targetSeconds: number): void {
    const wanted = Math.max(this.#options.dvrSeconds, MIN_WINDOW * targetSeconds);
    for (;;) {
      const first = this.#segments[this.#head] as Segment;
      const isFull = this.length > MAX_SEGMENTS;
      if (!isFull && this.#durationSeconds - first.durationSeconds < wanted - EPSILON) break;
      this.#durationSeconds -= first.durationSeconds;
      // 4.4.3.3: the number of EXT-X-DISCONTINUITY tags that have left.
      if (first.isDiscontinuous) this.discontinuitySequence++;
      this.#head++;
    }
    this.#withoutParts = Math.max(this.#withoutParts, this.#head);
    for (; this.#withoutParts < this.#segments.length; this.#withoutParts++) {
      const segment = this.#segments[this.#withoutParts] as Segment;
      if (this.completeSeconds - segment.startSeconds <= PARTS_KEPT * targetSeconds) break;
      segment.parts = NO_PARTS;
    }
    if (this.#head < Math.max(COMPACT_AT, this.length)) return;
    this.#segments = this.#segments.slice(this.#head);
    this.#numberAtZero += this.#head;
    this.#withoutParts -= this.#head;
    this.#head = 0;
  }
}

/** One flat string: V8 keeps the string of a template as a tree of its pieces, which takes several times the memory. */
const flat = (pieces: string[]) => pieces.join("");
