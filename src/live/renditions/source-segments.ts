import type { PartEvent, SegmentEvent } from "../playlists/events.ts";

/** A segment of the publisher's video. */
export type SourceSegment = {
  number: number;
  startSeconds: number;
  /** The length of its file up to the last part that is on the disk. */
  bytes: number;
  isComplete: boolean;
};

/** A rendition that is further behind is not continued: about 30 s. */
const KEPT = 16;

/** What is on the disk of the video of a running stream: its last segments, in order. */
export class SourceSegments {
  #segments: SourceSegment[] = [];
  /** End of what is on the disk, in seconds of the stream. */
  endSeconds = 0;
  #isEnded = false;
  readonly #waiting = new Set<() => void>();

  /** Parts are reported in order, and the segment after its parts. */
  part({ segment, startSeconds, durationSeconds, offset, bytes }: PartEvent): void {
    const last = this.#segments.at(-1);
    if (last?.number === segment) last.bytes = offset + bytes;
    else this.#segments.push({ number: segment, startSeconds, bytes: offset + bytes, isComplete: false });
    if (this.#segments.length > KEPT) this.#segments.shift();
    this.endSeconds = startSeconds + durationSeconds;
    this.#wake();
  }

  segment({ segment }: SegmentEvent): void {
    const found = this.find(segment);
    if (found) found.isComplete = true;
    this.#wake();
  }

  /** No part follows. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  find(number: number): SourceSegment | undefined {
    return this.#segments.find((one) => one.number === number);
  }

  /** The segment that contains a time; null before the first one that is known. */
  at(seconds: number): SourceSegment | null {
    return this.#segments.findLast(({ startSeconds }) => startSeconds <= seconds) ?? null;
  }

  /** Number of the last complete segment; 0 without one. */
  get lastComplete(): number {
    return this.#segments.findLast(({ isComplete }) => isComplete)?.number ?? 0;
  }

  /** Resolves at the next change, or when `signal` aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    if (this.#isEnded || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    this.#waiting.delete(wake);
    signal.removeEventListener("abort", wake);
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
  }
}
