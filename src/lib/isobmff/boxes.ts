export type Box = { type: string; start: number; end: number };

/**
 * The boxes between two positions; ends silently at a truncated box.
 * @example
 * const data = Buffer.concat([box("ftyp"), box("moov")]);
 * [...boxes(data, 0, data.length)].map(({ type }) => type) // => ["ftyp", "moov"]
 */
export function* boxes(data: Buffer, start: number, end: number): Generator<Box> {
  let at = start;
  while (at + 8 <= end) {
    let size = data.readUInt32BE(at);
    let header = 8;
    if (size === 1 && at + 16 <= end) {
      size = Number(data.readBigUInt64BE(at + 8));
      header = 16;
    } else if (size === 0) size = end - at;
    if (size < header) return;
    yield { type: data.toString("latin1", at + 4, at + 8), start: at + header, end: Math.min(at + size, end) };
    at += size;
  }
}

/**
 * The first box of each type of a path, from `within` down; null without one.
 * @example
 * const movie = box("moov", box("trak", Buffer.alloc(4)));
 * find(movie, ["moov", "trak"]) // => { type: "trak", start: 16, end: 20 }
 * find(movie, ["moov", "mvhd"]) // => null
 */
export function find(data: Buffer, path: string[], within: Box = { type: "", start: 0, end: data.length }): Box | null {
  let box = within;
  for (const type of path) {
    const next = boxes(data, box.start, box.end).find((child) => child.type === type);
    if (!next) return null;
    box = next;
  }
  return box;
}

/** The position of a field. Throws Error when the box ends before it does. */
export function field({ type, start, end }: Box, offset: number, bytes: number): number {
  if (start + offset + bytes > end) throw new Error(`The ${type} box is truncated.`);
  return start + offset;
}

export const uint16 = (data: Buffer, box: Box, offset: number) => data.readUInt16BE(field(box, offset, 2));
export const uint32 = (data: Buffer, box: Box, offset: number) => data.readUInt32BE(field(box, offset, 4));
export const flagsOf = (data: Buffer, box: Box) => uint32(data, box, 0) & 0xffffff;
/** The first of two layouts has times of 32 bits, the second of 64. */
export const isLong = (data: Buffer, box: Box) => data[field(box, 0, 1)] === 1;
