import { isSync, readFirstSample, readInit, readSegmentTimes, SEGMENT_HEAD_BYTES } from "#lib/isobmff";
import { SHORT_SECONDS } from "../package.ts";
import { canDecode, withDecoderConfiguration } from "./decoder-configuration.ts";
import { type Encoding, encodeFrames } from "./encode-frames.ts";
import { type Defaults, readDefaults, readSamples, type Sample, writeSegment } from "./fragments.ts";
import { ClipImpossible } from "./impossible.ts";

/** Seconds on the clock of the media; `end` is exclusive. */
export type MediaRange = { start: number; end: number };

export type Rendition = {
  kind: "video" | "audio";
  init: Buffer;
  /** Its number of segments. */
  count: number;
  read(index: number): Promise<Buffer>;
  /** Whether the clip can refer to a segment; otherwise it is copied. */
  isShared(index: number): boolean;
};

/** A segment of the clip's own, in place of those from `from` to before `to`. Times are in the rendition's timescale. */
export type OwnSegment = {
  from: number;
  to: number;
  data: Buffer;
  /** How much later it begins than the segment `from`, as the segments' own indexes state it. */
  skipped: number;
  duration: number;
  /** Byte range of its first frame. */
  first: { offset: number; bytes: number } | null;
};

/** The segments from `first` to before `end` are those of the clip. */
export type RenditionCut = {
  first: number;
  end: number;
  own: OwnSegment[];
  /** An init segment of the clip's own. */
  init: Buffer | null;
  timescale: number;
  /** The range of the presented frames or packets. */
  range: MediaRange;
};

/** Times that are nearer to each other than this are meant to be the same; a frame lasts at least 16 ms. */
const ROUNDED_SECONDS = 0.002;

type Loaded = { samples: Sample[]; kept: Sample[]; start: number };

/** Cuts one rendition at frames or packets, and encodes at most the GOPs at both ends. `encoding`: null for audio. */
export async function cutRendition(
  rendition: Rendition,
  range: MediaRange,
  encoding: Encoding | null,
): Promise<RenditionCut> {
  const cutter = new Cutter(rendition, range);
  const { first, end } = await cutter.bounds();
  const parts = await cutter.ownParts(first, end);
  let init: Buffer | null = null;
  let own = await joined(cutter, parts, encoding, { isForeign: false });
  if (own === null) {
    // The encoder writes other parameter sets than the rendition has: it was not encoded here, or from other frames.
    own = await joined(cutter, parts, encoding, { isForeign: true });
    if (cutter.init !== rendition.init) init = cutter.init;
  }
  return { first, end, own: own ?? [], init, timescale: cutter.timescale, range: await cutter.presented(first, end) };
}

/** The range that a rendition presents from its segment `index` on. */
export async function startOf(rendition: Rendition): Promise<number> {
  const cutter = new Cutter(rendition, { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY });
  return (await cutter.presented(0, 1)).start;
}

type Part = { from: number; to: number };

class Cutter {
  readonly #rendition: Rendition;
  readonly #range: MediaRange;
  readonly #loaded = new Map<number, Promise<Loaded>>();
  readonly #delay: number;
  readonly originalInit: Buffer;
  readonly defaults: Defaults;
  readonly timescale: number;
  /** With added parameter sets, once frames were encoded that need them. */
  init: Buffer;

  constructor(rendition: Rendition, range: MediaRange) {
    this.#rendition = rendition;
    this.#range = range;
    this.originalInit = rendition.init;
    this.init = rendition.init;
    const { timescale, delay } = readInit(rendition.init);
    this.timescale = timescale;
    this.#delay = delay;
    this.defaults = readDefaults(rendition.init);
  }

  timeOf(sample: Pick<Sample, "cts">): number {
    return (sample.cts - this.#delay) / this.timescale;
  }

  isKept(sample: Sample): boolean {
    const { start, end } = this.#range;
    const at = this.timeOf(sample);
    // A clip has all audio packets that overlap the range.
    const until = this.#rendition.kind === "audio" ? at + sample.duration / this.timescale - 2 * ROUNDED_SECONDS : at;
    return until >= start - ROUNDED_SECONDS && at < end - ROUNDED_SECONDS;
  }

  load(index: number): Promise<Loaded> {
    const loading =
      this.#loaded.get(index) ??
      this.#rendition.read(index).then((data) => {
        const samples = readSamples(data, this.defaults);
        if (samples.length === 0) throw new ClipImpossible("one of its segments is empty");
        const start = readSegmentTimes(data.subarray(0, SEGMENT_HEAD_BYTES)).start;
        return { samples, kept: samples.filter((one) => this.isKept(one)), start };
      });
    this.#loaded.set(index, loading);
    return loading;
  }

  /** The segments that have any frame of the range. */
  async bounds(): Promise<{ first: number; end: number }> {
    let first = 0;
    let end = this.#rendition.count;
    while (first < end && (await this.load(first)).kept.length === 0) first++;
    while (end > first && (await this.load(end - 1)).kept.length === 0) end--;
    if (first === end) throw new ClipImpossible("a rendition has no frames in this range");
    return { first, end };
  }

  async #seconds(index: number): Promise<number> {
    const { kept } = await this.load(index);
    return kept.reduce((sum, { duration }) => sum + duration, 0) / this.timescale;
  }

  /** Which segments the clip cannot share. */
  async ownParts(first: number, end: number): Promise<Part[]> {
    const shortest = Math.max(SHORT_SECONDS, this.#delay / this.timescale);
    const isPartial = async (index: number) => {
      const { samples, kept } = await this.load(index);
      return kept.length < samples.length;
    };
    const parts: Part[] = [];
    for (let index = first; index < end; index++) {
      const isAtEdge = index === first || index === end - 1;
      if (this.#rendition.isShared(index) && !(isAtEdge && (await isPartial(index)))) continue;
      parts.push({ from: index, to: index + 1 });
    }
    const head = parts[0];
    const tail = parts.at(-1);
    if (head?.from === first && first + 1 < end && (await this.#seconds(first)) <= shortest) head.to = first + 2;
    if (tail && tail.to === end && end - 1 > first && (await this.#seconds(end - 1)) <= shortest)
      tail.from = Math.min(tail.from, Math.max(first, end - 2));
    // Parts that overlap are one.
    return parts.reduce<Part[]>((all, part) => {
      const before = all.at(-1);
      if (before && part.from < before.to) before.to = Math.max(before.to, part.to);
      else all.push({ ...part });
      return all;
    }, []);
  }

  async presented(first: number, end: number): Promise<MediaRange> {
    const kept = [...(await this.load(first)).kept, ...(await this.load(end - 1)).kept];
    let range = { start: Number.POSITIVE_INFINITY, end: Number.NEGATIVE_INFINITY };
    for (const one of kept) {
      const at = this.timeOf(one);
      range = { start: Math.min(range.start, at), end: Math.max(range.end, at + one.duration / this.timescale) };
    }
    return range;
  }

  get trackId(): number {
    return this.defaults.trackId;
  }

  get isVideo(): boolean {
    return this.#rendition.kind === "video";
  }
}

type Mode = { isForeign: boolean };

/** The clip's own segments; null when encoded frames do not fit to the init segment. */
async function joined(
  cutter: Cutter,
  parts: Part[],
  encoding: Encoding | null,
  mode: Mode,
): Promise<OwnSegment[] | null> {
  const own: OwnSegment[] = [];
  for (const { from, to } of parts) {
    const loaded = await Promise.all(Array.from({ length: to - from }, (_, index) => cutter.load(from + index)));
    const all = loaded.flatMap(({ samples }) => samples);
    const samples = cutter.isVideo
      ? await keptFrames(cutter, all, encoding as Encoding, mode)
      : all.filter((one) => cutter.isKept(one));
    if (samples === null) return null;
    const earliest = (list: readonly Sample[]) => list.reduce((least, { cts }) => Math.min(least, cts), Infinity);
    const skipped = earliest(samples) - earliest(all);
    const [before] = loaded;
    const { trackId, timescale } = cutter;
    const start = (before?.start ?? 0) + skipped;
    const data = writeSegment(samples, { trackId, timescale, sequence: from + 1, start });
    const duration = samples.reduce((sum, one) => sum + one.duration, 0);
    own.push({ from, to, data, skipped, duration, first: readFirstSample(data) });
  }
  return own;
}

async function keptFrames(
  cutter: Cutter,
  samples: readonly Sample[],
  encoding: Encoding,
  { isForeign }: Mode,
): Promise<Sample[] | null> {
  const result: Sample[] = [];
  for (const group of groupsOf(samples)) {
    const shown = group.toSorted((a, b) => a.cts - b.cts);
    const from = shown.findIndex((one) => cutter.isKept(one));
    const count = shown.filter((one) => cutter.isKept(one)).length;
    if (count === group.length) result.push(...group);
    if (count === 0 || count === group.length) continue;
    const { originalInit: init, defaults } = cutter;
    const encoded = await encodeFrames({ init, defaults, samples: group }, { from, count }, encoding, { isForeign });
    if (!canDecode({ init: cutter.init, samples: group }, encoded)) {
      if (!isForeign) return null;
      cutter.init = withDecoderConfiguration(cutter.init, encoded.init);
    }
    result.push(...placed(encoded.samples, group.slice(from, from + count), shown.slice(from, from + count)));
  }
  return result;
}

/** Groups of frames, each of which begins with a keyframe. Throws ClipImpossible when a frame refers to frames of another group. */
function groupsOf(samples: readonly Sample[]): Sample[][] {
  const groups: Sample[][] = [];
  for (const sample of samples) {
    if (isSync(sample)) groups.push([]);
    const group = groups.at(-1);
    if (!group) throw new ClipImpossible("a segment does not begin with a keyframe");
    group.push(sample);
    if (sample.cts < (group[0] as Sample).cts) throw new ClipImpossible("its GOPs are open");
  }
  return groups;
}

/** Encoded frames at the times of those that they replace: `decoded` and `shown` are in the order of either. */
function placed(encoded: readonly Sample[], decoded: readonly Sample[], shown: readonly Sample[]): Sample[] {
  const order = encoded.map(({ cts }, index) => ({ cts, index })).toSorted((a, b) => a.cts - b.cts);
  const rank = new Map(order.map(({ index }, position) => [index, position]));
  return encoded.map(({ data, flags }, index) => {
    const slot = decoded[index] as Sample;
    const { cts } = shown[rank.get(index) as number] as Sample;
    if (cts < slot.dts) throw new ClipImpossible("its frames are not in the order that the encoder writes");
    return { data, flags, dts: slot.dts, duration: slot.duration, cts };
  });
}
