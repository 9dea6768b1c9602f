import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Chunk, firstFrameOf } from "../../protocol/task.ts";
import { INIT_NAME, SEGMENT_PATTERN } from "../arguments.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { readInit, shiftSegment } from "../isobmff.ts";
import type { Rate } from "../ladder.ts";
import { readSegment } from "../package.ts";
import { segmentName } from "./written-rows.ts";

type PlacerOptions = {
  /** Where ffmpeg writes, and where the segments belong; on one file system. */
  workDir: string;
  outDir: string;
  chunk: Chunk;
  names: readonly string[];
  rate: Rate;
  spec: EncodingSpec;
  /** Whether segments are placed while ffmpeg encodes those that follow. */
  isWatching: boolean;
  onPlaced?: ((files: string[]) => Promise<void>) | undefined;
};

const LOOK_MS = 200;
/** The last segments of the source may be joined when ffmpeg has ended. */
const UNCERTAIN = 2;

/**
 * Moves the segments of a chunk to their place in time and in `outDir`, while ffmpeg encodes those that follow. Only
 * segments with exactly their frames; the others are left to the check at the end. ffmpeg gives a segment its name when it
 * is complete, and so does this.
 */
export class Placer {
  readonly #options: PlacerOptions;
  readonly #placed = new Set<string>();
  readonly #ticks = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: PlacerOptions) {
    this.#options = options;
    if (options.isWatching) this.#plan();
  }

  /** Stops, and places what is complete by then. Returns how many segments each rendition has, from the first one on. */
  async placeComplete(): Promise<number> {
    await this.stop();
    if (!this.#options.isWatching) return 0;
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

  /**
   * Places segment `index` of the chunk, unless it is there; `ticks` is the duration of a frame in the timescale,
   * `sequence` the number of the first fragment of the chunk.
   */
  async place(
    name: string,
    file: string,
    { index, ticks, sequence = this.#options.chunk.first_segment }: { index: number; ticks: number; sequence?: number },
  ): Promise<void> {
    const { workDir, outDir, chunk } = this.#options;
    const target = `${name}/${segmentName(chunk.first_segment + index)}`;
    if (this.#placed.has(target)) return;
    const path = join(workDir, name, file);
    const data = await readFile(path);
    shiftSegment(data, { time: chunk.first_frame * ticks, sequence });
    await mkdir(join(outDir, name), { recursive: true });
    await writeFile(`${path}.placed`, data);
    await rename(`${path}.placed`, join(outDir, target));
    this.#placed.add(target);
  }

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
    const files = (await readdir(folder)).filter((file) => SEGMENT_PATTERN.test(file)).sort();
    const certain = chunk.segments === null ? files.slice(0, -UNCERTAIN) : files;
    for (const [index, file] of certain.entries()) {
      if (this.#placed.has(`${name}/${segmentName(chunk.first_segment + index)}`)) continue;
      const ticks = await this.#ticksOf(name);
      if (!(await this.#isExact(folder, file, { index, ticks }))) return;
      await this.place(name, file, { index, ticks });
    }
  }

  async #ticksOf(name: string): Promise<number> {
    const { workDir, rate } = this.#options;
    const known = this.#ticks.get(name);
    if (known !== undefined) return known;
    const { timescale } = readInit(await readFile(join(workDir, name, INIT_NAME)));
    const ticks = (timescale * rate.den) / rate.num;
    this.#ticks.set(name, ticks);
    return ticks;
  }

  async #isExact(folder: string, file: string, { index, ticks }: { index: number; ticks: number }): Promise<boolean> {
    const { chunk, spec, rate } = this.#options;
    const { start, duration } = await readSegment(folder, file);
    const frame = (number: number) => firstFrameOf(chunk.first_segment + number, spec.segment_seconds, rate);
    return (
      start === (frame(index) - chunk.first_frame) * ticks && duration === (frame(index + 1) - frame(index)) * ticks
    );
  }
}
