/** Bytes of a file: [offset, length]. */
export type ByteRange = readonly [offset: number, length: number];

/** Reads up to `length` bytes of a file: fewer at its end. */
export type ReadBytes = (offset: number, length: number) => Promise<Buffer>;

/** The top-level boxes of an MP4 or QuickTime file (ISO/IEC 14496-12, 4.2). */
export type Mp4Layout = {
  /** The box `moov`, with its header. */
  moov: ByteRange;
  /** All boxes that describe the media data, without `moov`. */
  others: ByteRange[];
};

const MAX_BOXES = 1000;
/** The index of a day at 60 frames per second has about 100 MB; such a source is read as a whole. */
const MAX_INDEX_BYTES = 64 * 2 ** 20;
const HEADER_BYTES = 16;
/** Media data, and boxes that a reader skips. */
const SKIPPED = new Set(["mdat", "free", "skip", "wide"]);
/** Fragments have indexes of their own, spread over the file. */
const FRAGMENTED = new Set(["moof", "sidx", "styp"]);

/**
 * Where the index of a file of `size` bytes is; null for other files, fragmented ones, and those whose index is too
 * large. Reads only the headers of boxes. `isCut`: media data may be longer than the file.
 */
export async function readLayout(size: number, read: ReadBytes, { isCut = false } = {}): Promise<Mp4Layout | null> {
  let moov: ByteRange | null = null;
  const others: ByteRange[] = [];
  let total = 0;
  let hasMedia = false;
  for (let at = 0, count = 0; at < size; count++) {
    const header = await read(at, HEADER_BYTES);
    if (header.length < 8 || count >= MAX_BOXES) return null;
    const type = header.toString("latin1", 4, 8);
    const length = boxLength(header, size - at, isCut && type === "mdat");
    if (length === null || !/^[\x20-\x7e\xa9]{4}$/.test(type) || FRAGMENTED.has(type)) return null;
    if (count === 0 && !["ftyp", "moov", "mdat", "wide", "free", "skip"].includes(type)) return null;
    if (type === "mdat") hasMedia = true;
    if (!SKIPPED.has(type)) {
      total += length;
      if (total > MAX_INDEX_BYTES) return null;
      if (type === "moov" && moov) return null;
      if (type === "moov") moov = [at, length];
      else others.push([at, length]);
    } else others.push([at, Math.min(length, HEADER_BYTES)]);
    at += length;
  }
  return moov && hasMedia ? { moov, others } : null;
}

/** At most what is left of the file. Null when it is not a possible length: one with more, unless that is missing. */
function boxLength(header: Buffer, left: number, isCut: boolean): number | null {
  const short = header.readUInt32BE(0);
  if (short === 0) return left;
  if (short === 1 && header.length < HEADER_BYTES) return null;
  const stated = short === 1 ? Number(header.readBigUInt64BE(8)) : short;
  if (stated < (short === 1 ? HEADER_BYTES : 8) || (stated > left && !isCut)) return null;
  return Math.min(stated, left);
}

/**
 * The ranges in order, those closer to each other than `gap` bytes as one.
 * @example
 * joinRanges([[10, 5], [0, 8]], 2) // => [[0, 15]]
 */
export function joinRanges(ranges: readonly ByteRange[], gap = 0): ByteRange[] {
  const sorted = ranges.filter(([, length]) => length > 0).toSorted(([a], [b]) => a - b);
  const joined: [number, number][] = [];
  for (const [offset, length] of sorted) {
    const last = joined.at(-1);
    if (last && offset <= last[0] + last[1] + gap) last[1] = Math.max(last[1], offset + length - last[0]);
    else joined.push([offset, length]);
  }
  return joined;
}

export const bytesOf = (ranges: readonly ByteRange[]) => ranges.reduce((sum, [, length]) => sum + length, 0);
