import { type Box, field, find, isLong, uint32 } from "./boxes.ts";

/** A part of an edit list that presents media, in seconds: of the movie, and of the media. `rate` is 0 where one moment is held. */
export type Edit = { from: number; to: number; mediaFrom: number; rate: number };

const ALL: readonly Edit[] = [{ from: 0, to: Number.POSITIVE_INFINITY, mediaFrom: 0, rate: 1 }];
/** More than an editor writes. */
const MAX_EDITS = 10_000;
const RATE_ONE = 0x10000;

type Options = {
  /** Units of time per second, of the media and of the movie. */
  scale: number;
  movieScale: number;
  /** The end of a single edit does not count: it is written before the media. */
  isFragmented?: boolean;
};

/** The edits of a track that present media (ISO/IEC 14496-12, 8.6.6); null for more than a file has. Throws Error for a truncated box. */
export function editsOf(data: Buffer, track: Box, { scale, movieScale, isFragmented = false }: Options) {
  const elst = find(data, ["edts", "elst"], track);
  const count = elst ? uint32(data, elst, 4) : 0;
  if (!elst || count === 0) return ALL;
  if (count > MAX_EDITS) return null;
  const isWide = isLong(data, elst);
  const step = isWide ? 20 : 12;
  const edits: Edit[] = [];
  let units = 0;
  for (let number = 0; number < count; number++) {
    const at = field(elst, 8 + number * step, step);
    const duration = isWide ? Number(data.readBigUInt64BE(at)) : data.readUInt32BE(at);
    const time = isWide ? Number(data.readBigInt64BE(at + 8)) : data.readInt32BE(at + 4);
    const rate = data.readInt32BE(at + step - 4) / RATE_ONE;
    const isOpen = number === count - 1 && duration === 0;
    const from = units / movieScale;
    units += duration;
    const to = isOpen ? Number.POSITIVE_INFINITY : units / movieScale;
    // Negative times are of empty edits; media that plays backwards has no text.
    if (time >= 0 && rate >= 0 && to > from) edits.push({ from, to, mediaFrom: time / scale, rate });
  }
  const [first] = edits;
  return first && edits.length === 1 && isFragmented ? [{ ...first, to: Number.POSITIVE_INFINITY }] : edits;
}

type Range = { start: number; end: number };

/** When an edit presents a range of the media, in seconds of the movie; null: not at all. */
export function presentedIn({ from, to, mediaFrom, rate }: Edit, { start, end }: Range): Range | null {
  if (rate === 0) return start <= mediaFrom && mediaFrom < end ? { start: from, end: to } : null;
  const moved = { start: from + (start - mediaFrom) / rate, end: from + (end - mediaFrom) / rate };
  const shown = { start: Math.max(from, moved.start), end: Math.min(to, moved.end) };
  return shown.end > shown.start ? shown : null;
}
