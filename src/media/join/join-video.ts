import { mapBounded } from "#lib/base";
import {
  boxes,
  field,
  find,
  readFirstSample,
  readInit,
  readSegmentTimes,
  SEGMENT_HEAD_BYTES,
  shiftSegment,
} from "#lib/isobmff";
import { readSamples } from "../clip/fragments.ts";
import type { Segment, Written } from "../package.ts";
import { segmentName } from "../parallel/written-rows.ts";
import { JoinImpossible } from "./faults.ts";
import { legible, type Part, type PartRendition } from "./read-part.ts";

export type WriteFile = (rendition: string, file: string, data: Buffer) => Promise<void>;

const AT_ONCE = 4;
/** Positions are rounded to the units of a timescale. */
const ROUNDED_SECONDS = 0.001;

/** A position on the joined timeline, in units of the timescale of the first rendition. */
export type Position = { time: number; timescale: number };
export const secondsOf = ({ time, timescale }: Position) => time / timescale;

/** One rendition of video: segments of the parts, moved in time, with their samples as they are. */
export class VideoJoiner {
  readonly #name: string;
  readonly #init: ReturnType<typeof readInit>;
  readonly #segments: Segment[] = [];
  /** The end of the last part in the order of decoding, and the next number of a fragment. */
  #end = 0;
  #sequence = 1;

  constructor(name: string, init: Buffer) {
    this.#name = name;
    this.#init = readInit(init);
  }

  /**
   * Appends a part at a position. Resolves with its length in seconds, and the time of its media at which it begins.
   * Throws JoinImpossible, and the errors of `read` and `write`.
   */
  async add(
    { read }: Part,
    { segments, defaults }: PartRendition,
    position: Position,
    { write, signal }: { write: WriteFile; signal: AbortSignal },
  ): Promise<{ seconds: number; start: number }> {
    const { timescale, delay } = this.#init;
    const firstPath = segments[0];
    const lastPath = segments.at(-1);
    if (firstPath === undefined || lastPath === undefined) throw new JoinImpossible("a rendition has no segments");
    const head = await read(firstPath);
    const first = legible(() => readSamples(head, defaults));
    const tail = lastPath === firstPath ? head : await read(lastPath);
    const last = legible(() => readSamples(tail, defaults)).at(-1);
    const [begin] = first;
    if (!begin || !last) throw new JoinImpossible("one of their segments is empty");
    const start = first.reduce((least, { cts }) => Math.min(least, cts), Number.POSITIVE_INFINITY) - delay;
    const time = Math.round(secondsOf(position) * timescale) - start;
    if (begin.dts + time < this.#end - ROUNDED_SECONDS * timescale || begin.dts + time < 0)
      throw new JoinImpossible("the frames of a part begin before those of the one before it end");
    const length = last.dts + last.duration - begin.dts;
    if (!(length > 0)) throw new JoinImpossible("the times of their segments are not in order");
    const sequence = this.#sequence - (sequencesOf(head)[0] ?? 0);
    const from = this.#segments.length;
    const added = await mapBounded(segments.entries(), { atOnce: AT_ONCE, signal }, async ([index, path]) => {
      const data = index === 0 ? head : await read(path);
      const row = legible(() => {
        shiftSegment(data, { time, sequence });
        return rowOf(segmentName(from + index), data);
      });
      await write(this.#name, row.name, data);
      return { row, sequence: sequencesOf(data).at(-1) ?? 0 };
    });
    this.#segments.push(...added.map(({ row }) => row));
    this.#sequence = added.reduce((most, one) => Math.max(most, one.sequence), this.#sequence) + 1;
    this.#end = begin.dts + time + length;
    return { seconds: length / timescale, start: start / timescale };
  }

  get written(): Written {
    const durationSeconds = this.#segments.reduce((sum, one) => sum + one.durationSeconds, 0);
    return { name: this.#name, init: this.#init, segments: this.#segments, durationSeconds };
  }
}

/** What the manifests need of a segment. Throws Error when it has no index. */
export function rowOf(name: string, data: Buffer): Segment {
  const head = data.subarray(0, SEGMENT_HEAD_BYTES);
  const { timescale, start, duration } = readSegmentTimes(head);
  return {
    name,
    bytes: data.length,
    start,
    duration,
    durationSeconds: duration / timescale,
    first: readFirstSample(head),
  };
}

/** The numbers of the fragments of a segment (8.8.5). */
function sequencesOf(segment: Buffer): number[] {
  const numbers: number[] = [];
  for (const moof of boxes(segment, 0, segment.length)) {
    const mfhd = moof.type === "moof" ? find(segment, ["mfhd"], moof) : null;
    if (mfhd) numbers.push(segment.readUInt32BE(field(mfhd, 4, 4)));
  }
  return numbers;
}
