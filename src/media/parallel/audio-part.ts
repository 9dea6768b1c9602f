import { rm } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "#lib/base";
import { audioCodecs } from "#lib/codecs";
import { shiftSegment } from "#lib/isobmff";
import type { Chunk, WrittenRendition } from "#protocol/task.ts";
import { INIT_NAME, SEGMENT_PATTERN } from "../arguments.ts";
import { runDecoded } from "../audio-decoding.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { UNTIL_STALLED } from "../ffmpeg.ts";
import { prepareFolders, readSegment, readWritten, type Segment } from "../package.ts";
import { listResults, makeFolder, moveResult, readResult, writeResult } from "../results.ts";
import type { AudioOptions } from "./audio.ts";
import { audioPart } from "./audio-arguments.ts";
import { firstSampleOf } from "./audio-grid.ts";
import { Inexact } from "./inexact.ts";
import { segmentName, toRows } from "./written-rows.ts";

export type AudioPart = {
  range: Chunk;
  /** Parts begin at multiples of so many segments. */
  step: number;
  /** Private, on the same file system as `outDir`. */
  workDir: string;
  /** Receives the names of segments, relative to `outDir`, as soon as they are there. */
  onPlaced?: ((files: string[]) => Promise<void>) | undefined;
};

const LOOK_MS = 200;
/** Packets after the part: the encoder looks ahead, and ends its last packets with silence. */
const MORE_PACKETS = 4;
/** The last segments of the source may be joined when ffmpeg has ended. */
const UNCERTAIN = 2;

/**
 * Encodes a range of segments of all audio tracks, with the packets and times of a run over the whole source. The encoder
 * starts earlier, so that it decides about the first packets as in that run; what it writes before the range is discarded.
 * Throws MediaError, and Inexact when the result is not exactly the range.
 */
export async function encodeAudioPart(options: AudioOptions, part: AudioPart): Promise<WrittenRendition[]> {
  const { input, outDir, plan, spec, binaries, onProgress } = options;
  const { range, step, workDir } = part;
  const { first_segment: first, segments } = range;
  if (first % step !== 0) throw new Inexact(`part ${range.number} of the audio does not begin where it can be cut.`);
  const begin = Math.max(0, first - step);
  const { packetSamples } = audioCodecs[spec.audio.codec];
  const end = segments === null ? null : firstSampleOf(first + segments, spec) + MORE_PACKETS * packetSamples;
  const samples = { first: firstSampleOf(begin, spec), end };
  // A run without samples writes nothing, and must not find files of an earlier one.
  await rm(workDir, { recursive: true, force: true });
  await prepareFolders(workDir, { ...plan, video: null });
  const placers = plan.audio.map(({ name }) => new AudioPlacer({ name, outDir, part, begin, spec }));
  const seconds =
    ((end ?? (plan.durationSeconds ?? 0) * spec.audio.sample_rate) - samples.first) / spec.audio.sample_rate;
  const ended = new AbortController();
  const placing = placeWhile(ended.signal, placers);
  try {
    for (const [done, one] of plan.audio.entries())
      await runDecoded(binaries.ffmpeg, {
        ...options.run,
        writes: [...(options.run.writes ?? []), workDir],
        ...audioPart(one, { input, outDir: workDir, spec, samples }),
        precedence: range.is_urgent ? "urgent" : "background",
        ...UNTIL_STALLED,
        onPosition: (position) =>
          seconds > 0 && onProgress?.((done + Math.min(1, position / seconds)) / plan.audio.length),
      });
  } finally {
    ended.abort();
    await placing;
  }
  const rows: WrittenRendition[] = [];
  for (const placer of placers) rows.push(await placer.finish());
  await rm(workDir, { recursive: true, force: true });
  return rows;
}

async function placeWhile(signal: AbortSignal, placers: readonly AudioPlacer[]): Promise<void> {
  while (!signal.aborted) {
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    // What could not be placed now is placed at the end, or fails there.
    for (const placer of placers) await placer.look().catch(() => {});
  }
}

type PlacerOptions = {
  name: string;
  outDir: string;
  part: AudioPart;
  /** The segment with which ffmpeg begins. */
  begin: number;
  spec: EncodingSpec;
};

/** Moves the segments of one track to their place in time and in `outDir`, while ffmpeg encodes those that follow. */
class AudioPlacer {
  readonly #options: PlacerOptions;
  #placed = 0;

  constructor(options: PlacerOptions) {
    this.#options = options;
  }

  /** The segments that are there; ffmpeg gives a segment its name when it is complete. */
  async look(): Promise<void> {
    const { name, part } = this.#options;
    const { segments } = part.range;
    const folder = join(part.workDir, name);
    const files = (await listResults(folder)).filter((file) => SEGMENT_PATTERN.test(file)).sort();
    const certain = segments === null ? files.slice(0, -UNCERTAIN) : files;
    const placed: string[] = [];
    for (const file of certain.slice(
      this.#lead + this.#placed,
      segments === null ? undefined : this.#lead + segments,
    )) {
      const segment = await readSegment(folder, file);
      if (!this.#isExact(segment, this.#placed)) break;
      placed.push(await this.#place(file));
    }
    if (placed.length > 0) await part.onPlaced?.(placed);
  }

  /** Places the others, and returns what was written. Throws Inexact. */
  async finish(): Promise<WrittenRendition> {
    const { name, outDir, part, begin, spec } = this.#options;
    const { number, segments: count, first_segment: first } = part.range;
    const written = await readWritten(part.workDir, name, { joinLast: count === null }).catch((error) => {
      if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
      // Without a packet the init segment describes nothing.
      return null;
    });
    const kept = written?.segments.slice(this.#lead, count === null ? undefined : this.#lead + count) ?? [];
    if (!written || kept.length === 0 || (count !== null && kept.length !== count))
      throw new Inexact(`part ${number} of ${name} has ${kept.length} segments instead of ${count ?? "some"}.`);
    for (const [index, segment] of kept.entries()) {
      const isLast = count === null && index === kept.length - 1;
      if (!this.#isExact(segment, index, isLast))
        throw new Inexact(`segment ${first + index} of ${name} has other packets.`);
      if (index >= this.#placed) await this.#place(segment.name);
    }
    await makeFolder(join(outDir, name));
    await moveResult(join(part.workDir, name, INIT_NAME), join(outDir, name, INIT_NAME));
    const time = firstSampleOf(begin, spec);
    const moved = kept.map((segment) => ({ ...segment, start: segment.start + time }));
    return toRows(join(outDir, name), { ...written, segments: moved }, first);
  }

  /** Segments before the part. */
  get #lead(): number {
    return this.#options.part.range.first_segment - this.#options.begin;
  }

  /** Whether segment `index` of the part has the packets that it has in a run over the whole source. */
  #isExact({ start, duration }: Segment, index: number, isLast = false): boolean {
    const { part, begin, spec } = this.#options;
    const number = part.range.first_segment + index;
    const from = firstSampleOf(number, spec);
    return (
      start === from - firstSampleOf(begin, spec) && (isLast || duration === firstSampleOf(number + 1, spec) - from)
    );
  }

  async #place(file: string): Promise<string> {
    const { name, outDir, part, begin, spec } = this.#options;
    const target = `${name}/${segmentName(part.range.first_segment + this.#placed)}`;
    const path = join(part.workDir, name, file);
    const data = await readResult(path);
    shiftSegment(data, { time: firstSampleOf(begin, spec), sequence: begin });
    await makeFolder(join(outDir, name));
    await writeResult(join(outDir, target), data);
    this.#placed++;
    return target;
  }
}
