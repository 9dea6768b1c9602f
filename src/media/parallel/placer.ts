import { join } from "node:path";
import { setTimeout } from "#lib/base";
import type { Rate } from "#lib/codecs";
import { joinSegments, readInit, shiftSegment } from "#lib/isobmff";
import type { Chunk } from "#protocol/task.ts";
import { INIT_NAME, SEGMENT_PATTERN } from "../arguments.ts";
import { readSegment } from "../package.ts";
import { listResults, makeFolder, readResult, writeResult } from "../results.ts";
import { segmentName } from "./written-rows.ts";

type PlacerOptions = {
  /** Where ffmpeg writes, and where the segments belong; on one file system. */
  workDir: string;
  outDir: string;
  chunk: Chunk;
  names: readonly string[];
  rate: Rate;
  /** The first frame of a segment of the source; null after the last one that is known. */
  firstOf: (segment: number) => number | null;
  /** Number of the first fragment of the chunk. */
  sequence: number;
  onPlaced?: ((files: string[]) => Promise<void>) | undefined;
};

const LOOK_MS = 200;
/** The last segments of the source may be joined when ffmpeg has ended. */
const UNCERTAIN = 2;

/**
 * Moves the segments of a chunk to their place in time and in `outDir`, while ffmpeg encodes the next ones. Only
 * segments with exactly their frames are moved; others are left to the check at the end. Where the source is cut at its
 * keyframes ffmpeg writes a file for each keyframe, and the files of a segment are joined. ffmpeg gives a segment its name when
 * it is complete, and so does this class.
 */
export class Placer {
  readonly #options: PlacerOptions;
  readonly #placed = new Set<string>();
  readonly #ticks = new Map<string, number>();
  /** How many segments of a rendition were placed while ffmpeg ran, and of how many files. */
  readonly #cursors = new Map<string, { segments: number; files: number }>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: PlacerOptions) {
    this.#options = options;
    this.#plan();
  }

  /** Stops, and places what is complete by then. Returns how many segments each rendition has, from the first one on. */
  async placeComplete(): Promise<number> {
    await this.stop();
    await this.#look();
    const { names, chunk } = this.#options;
    let count = 0;
    while (names.every((name) => this.#placed.has(`${name}/${segmentName(chunk.first_segment + count)}`))) count++;
    return count;
  }

  /** When this resolves, nothing is in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /** Places segment `index` of the chunk, unless it is there; `ticks` is the duration of a frame in the timescale. */
  async place(name: string, file: string, { index, ticks }: { index: number; ticks: number }): Promise<void> {
    if (this.#placed.has(this.#targetOf(name, index))) return;
    await this.#write(name, { index, ticks, data: await readResult(join(this.#options.workDir, name, file)) });
  }

  async #write(name: string, { index, ticks, data }: { index: number; ticks: number; data: Buffer }): Promise<void> {
    const { outDir, chunk, sequence } = this.#options;
    const target = this.#targetOf(name, index);
    shiftSegment(data, { time: chunk.first_frame * ticks, sequence });
    await makeFolder(join(outDir, name));
    await writeResult(join(outDir, target), data);
    this.#placed.add(target);
  }

  #targetOf = (name: string, index: number) => `${name}/${segmentName(this.#options.chunk.first_segment + index)}`;

  #plan(): void {
    this.#timer = setTimeout(() => {
      this.#looking = this.#look()
        // What could not be placed now is placed at the end, or fails there.
        .catch(() => {})
        .finally(() => this.#isStopped || this.#plan());
    }, LOOK_MS);
  }

  async #look(): Promise<void> {
    const { names, onPlaced } = this.#options;
    for (const name of names) {
      const before = this.#placed.size;
      await this.#lookAt(name);
      const files = [...this.#placed].slice(before);
      if (files.length > 0) await onPlaced?.(files);
    }
  }

  async #lookAt(name: string): Promise<void> {
    const { workDir, chunk } = this.#options;
    const folder = join(workDir, name);
    const files = (await listResults(folder)).filter((file) => SEGMENT_PATTERN.test(file)).sort();
    const certain = chunk.segments === null ? files.slice(0, -UNCERTAIN) : files;
    const cursor = this.#cursors.get(name) ?? { segments: 0, files: 0 };
    this.#cursors.set(name, cursor);
    while (cursor.files < certain.length) {
      const index = cursor.segments;
      const ticks = await this.#ticksOf(name);
      const parts = await this.#partsOf(folder, certain.slice(cursor.files), { index, ticks });
      if (parts === null) return;
      await this.#write(name, { index, ticks, data: await joined(folder, parts) });
      cursor.files += parts.length;
      cursor.segments++;
    }
  }

  async #ticksOf(name: string): Promise<number> {
    const { workDir, rate } = this.#options;
    const known = this.#ticks.get(name);
    if (known !== undefined) return known;
    const { timescale } = readInit(await readResult(join(workDir, name, INIT_NAME)));
    const ticks = (timescale * rate.den) / rate.num;
    this.#ticks.set(name, ticks);
    return ticks;
  }

  /** The first of `files`, which together have exactly the frames of segment `index`; null when they do not, or not yet. */
  async #partsOf(
    folder: string,
    files: readonly string[],
    { index, ticks }: { index: number; ticks: number },
  ): Promise<string[] | null> {
    const { chunk, firstOf } = this.#options;
    const first = firstOf(chunk.first_segment + index);
    const next = firstOf(chunk.first_segment + index + 1);
    // Where the last segment ends is only known when ffmpeg has ended.
    if (first === null || next === null) return null;
    const end = (next - chunk.first_frame) * ticks;
    let at = (first - chunk.first_frame) * ticks;
    const parts: string[] = [];
    for (const file of files) {
      const { start, duration } = await readSegment(folder, file);
      if (start !== at || start + duration > end) return null;
      parts.push(file);
      at += duration;
      if (at === end) return parts;
    }
    return null;
  }
}

/** The segment that these files are, which begin with keyframes. Throws Error when they cannot be joined. */
async function joined(folder: string, [first, ...others]: readonly string[]): Promise<Buffer> {
  let data: Buffer = await readResult(join(folder, first as string));
  for (const file of others) {
    const both = joinSegments(data, await readResult(join(folder, file)));
    if (!both) throw new Error("The segments cannot be joined.");
    data = both;
  }
  return data;
}
