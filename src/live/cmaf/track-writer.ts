import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SEGMENT_HEAD, type TimedSample, writeFragment } from "#lib/isobmff";
import { INIT_NAME, segmentFileName } from "#media/arguments.ts";
import { SegmentFile } from "./segment-file.ts";
import type { PackagerOptions, TrackInfo } from "./types.ts";

/** 8.16.3: 31 bits. The index also has to fit. */
const MAX_SEGMENT_BYTES = 2 ** 30;
const MAX_SEGMENT_SAMPLES = 100_000;

type WriterOptions = {
  info: TrackInfo;
  folder: string;
  init: Buffer;
  timescale: number;
  /** Media time of the start of the recording, in the timescale. */
  startTime: number;
  callbacks: Pick<PackagerOptions, "admit" | "onInit" | "onPart" | "onSegment">;
  /** Nothing more is stored, of this track at once, and of the other one by the caller. */
  onFailure: (error: unknown) => void;
};

type OpenSegment = {
  number: number;
  parts: number;
  samples: number;
  /** The size of the file so far. */
  bytes: number;
  /** Decode time of the first sample, and its earliest presentation time. */
  time: number;
  presentation: number;
  duration: number;
  isIndependent: boolean;
};

/**
 * Writes the parts of a track to segment files in the order of the calls, which return at once. What is not written yet
 * is in memory: `pendingBytes`.
 */
export class TrackWriter {
  readonly #options: WriterOptions;
  readonly #folder: string;
  #work: Promise<void> = Promise.resolve();
  #file: SegmentFile | null = null;
  #open: OpenSegment | null = null;
  #isStored = true;
  #sequence = 0;
  #started = 0;
  #pending = 0;
  #stored = { segments: 0, bytes: 0, duration: 0 };

  constructor(options: WriterOptions) {
    this.#options = options;
    const { info, init, callbacks } = options;
    this.#folder = join(options.folder, info.name);
    const path = join(this.#folder, INIT_NAME);
    this.#enqueue(async () => {
      await this.#store(init.length, async () => {
        await mkdir(this.#folder, { recursive: true });
        await writeFile(path, init, { flush: true });
        this.#stored.bytes += init.length;
      });
      callbacks.onInit?.({ ...info, path });
    });
  }

  get info(): TrackInfo {
    return this.#options.info;
  }
  get timescale(): number {
    return this.#options.timescale;
  }
  get pendingBytes(): number {
    return this.#pending;
  }
  /** Totals of the complete segments that are stored. */
  get stored(): Readonly<{ segments: number; bytes: number; duration: number }> {
    return this.#stored;
  }
  /** From the start of the recording to the open segment. */
  get seconds(): number {
    const { startTime, timescale } = this.#options;
    return this.#open ? (this.#open.time - startTime) / timescale : 0;
  }
  /** Whether the open segment is as large as a segment may become. */
  get isFull(): boolean {
    const segment = this.#open;
    return segment !== null && (segment.bytes > MAX_SEGMENT_BYTES || segment.samples > MAX_SEGMENT_SAMPLES);
  }

  /** Adds samples, of which there is at least one, as the next part. `time` is the decode time of the first. */
  addPart(samples: readonly TimedSample[], time: number): void {
    const [first] = samples as [TimedSample];
    const presentation = Math.max(0, time + first.compositionOffset);
    const start = {
      parts: 0,
      samples: 0,
      bytes: SEGMENT_HEAD.length,
      time,
      presentation,
      duration: 0,
      isIndependent: first.isSync,
    };
    this.#open ??= { number: ++this.#started, ...start };
    const segment = this.#open;
    const data = writeFragment(samples, { sequence: ++this.#sequence, time });
    const bytes = data.reduce((sum, { length }) => sum + length, 0);
    const duration = samples.reduce((sum, sample) => sum + sample.duration, 0);
    const { info, timescale, startTime, callbacks } = this.#options;
    const part = {
      track: info.kind,
      segment: segment.number,
      part: segment.parts,
      offset: segment.bytes,
      bytes,
      durationSeconds: duration / timescale,
      isIndependent: first.isSync,
      startSeconds: (time - startTime) / timescale,
    };
    segment.parts++;
    segment.samples += samples.length;
    segment.bytes += bytes;
    segment.duration = time + duration - segment.time;
    this.#pending += bytes;
    this.#enqueue(async () => {
      await this.#store(bytes, async () => {
        this.#file ??= await SegmentFile.create(this.#folder, part.segment);
        await this.#file.append(part.offset, data);
      });
      this.#pending -= bytes;
      // By now the caller has ended the segment, if it ends with this part.
      const isLast = this.#open !== segment && part.part === segment.parts - 1;
      const path = this.#file && join(this.#folder, segmentFileName(part.segment));
      callbacks.onPart?.({ ...part, isLast, path, data });
    });
  }

  /** Completes the open segment, if there is one. */
  endSegment(): void {
    const segment = this.#open;
    if (!segment) return;
    this.#open = null;
    const { number, bytes, duration, presentation } = segment;
    const { info, timescale, startTime, callbacks } = this.#options;
    this.#enqueue(async () => {
      const isStored = await this.#store(0, async () => {
        const index = { timescale, start: presentation, duration, bytes: bytes - SEGMENT_HEAD.length };
        await this.#file?.complete(index);
        this.#file = null;
        this.#stored.segments++;
        this.#stored.bytes += bytes;
        this.#stored.duration += duration;
      });
      callbacks.onSegment?.({
        track: info.kind,
        segment: number,
        bytes,
        name: isStored ? segmentFileName(number) : null,
        durationSeconds: duration / timescale,
        startSeconds: (segment.time - startTime) / timescale,
        ...(segment.isIndependent ? {} : { isIndependent: false }),
      });
    });
  }

  /** Deletes the open segment, if there is one. The next one has the number `next`, which is later than those before. */
  skipTo(next: number): void {
    this.#open = null;
    this.#started = next - 1;
    this.#enqueue(() => this.#discard());
  }

  /** Calls `report` when everything before is reported. */
  inOrder(report: () => void): void {
    this.#enqueue(async () => report());
  }

  /** What follows is written and reported after `earlier`. */
  waitFor(earlier: Promise<void>): void {
    this.#enqueue(() => earlier);
  }

  /** Stops storing, and deletes the segment that is not complete. Parts and segments are still reported. */
  stopStoring(): Promise<void> {
    this.#isStored = false;
    this.#enqueue(() => this.#discard());
    return this.#work;
  }

  /** Resolves when all calls before are done. */
  async settled(): Promise<void> {
    await this.#work;
  }

  #enqueue(work: () => Promise<void>): void {
    this.#work = this.#work.then(work);
  }

  /** Never throws; false when it is not stored. */
  async #store(bytes: number, write: () => Promise<void>): Promise<boolean> {
    if (!this.#isStored) return false;
    try {
      if (bytes > 0) await this.#options.callbacks.admit?.(bytes);
      await write();
      return true;
    } catch (error) {
      this.#isStored = false;
      await this.#discard();
      this.#options.onFailure(error);
      return false;
    }
  }

  async #discard(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    // The disk already failed; a file that cannot be deleted is ignored by readers of complete segments.
    await file?.discard().catch(() => {});
  }
}
