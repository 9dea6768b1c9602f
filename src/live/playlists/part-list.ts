import type { PartEvent } from "./events.ts";

/** A partial segment as listed. `offset` is the position in the file of its segment. */
export type Part = { offset: number; bytes: number; durationSeconds: number; isIndependent: boolean };

/** Where a listed part is: a byte range of the file of its segment. */
export type PartLocation = { segment: number; offset: number; bytes: number };

/**
 * draft-pantos-hls-rfc8216bis, 4.4.3.7 and 4.4.4.9: a part is at most PART-TARGET long, and all but the last of a segment
 * are at least 85 % of it.
 */
export const MIN_PART_RATIO = 0.85;
/** In seconds; sums of durations are not exact. */
export const EPSILON = 1e-6;
/** With PART-TARGET 0.5 s, more than two minutes in one segment. */
const MAX_PARTS = 512;

/**
 * The parts of the segment that is being written. Fragments that are shorter than 85 % of PART-TARGET are joined with the
 * next if the sum fits, so two parts in sequence are together longer than PART-TARGET, and their number is bounded by the
 * duration however short the fragments are.
 */
export class PartList {
  readonly listed: Part[] = [];
  /** No part follows. */
  isClosed = false;
  /** End of the last listed part. */
  endSeconds: number;
  /** Parts that break the rules above because the publisher's frames allow no other division. */
  over = 0;
  under = 0;
  readonly #target: number;
  #fragments = 0;
  #bytesEnd = -1;
  #short: Part | null = null;

  constructor(partTargetSeconds: number, startSeconds: number) {
    this.#target = partTargetSeconds;
    this.endSeconds = startSeconds;
  }

  /** Returns whether the list has grown. Throws a RangeError for a part out of order. */
  add({ part, offset, bytes, durationSeconds, isIndependent, isLast }: PartEvent): boolean {
    if (this.isClosed || part !== this.#fragments) throw new RangeError(`Part ${part} is not the next of its segment.`);
    if (this.#bytesEnd !== -1 && offset !== this.#bytesEnd)
      throw new RangeError(`Part ${part} does not follow the previous one in the file.`);
    if (this.listed.length >= MAX_PARTS) throw new RangeError(`A segment has over ${MAX_PARTS} parts.`);
    this.#fragments++;
    this.#bytesEnd = offset + bytes;
    const before = this.listed.length;
    let next: Part = { offset, bytes, durationSeconds, isIndependent };
    const short = this.#short;
    if (short && short.durationSeconds + durationSeconds <= this.#target + EPSILON)
      next = { ...short, bytes: short.bytes + bytes, durationSeconds: short.durationSeconds + durationSeconds };
    else this.#list(short, false);
    this.#short = next;
    if (isLast) this.close();
    else if (next.durationSeconds >= this.#target * MIN_PART_RATIO - EPSILON) {
      this.#list(next, false);
      this.#short = null;
    }
    return this.listed.length > before || this.isClosed;
  }

  /** The segment ends: a short part may be its last. */
  close(): void {
    this.isClosed = true;
    this.#list(this.#short, true);
    this.#short = null;
  }

  #list(part: Part | null, isLast: boolean): void {
    if (!part) return;
    if (part.durationSeconds > this.#target + EPSILON) this.over++;
    if (!isLast && part.durationSeconds < this.#target * MIN_PART_RATIO - EPSILON) this.under++;
    this.listed.push(part);
    this.endSeconds += part.durationSeconds;
  }
}
