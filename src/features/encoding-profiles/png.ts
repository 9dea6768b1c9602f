import { Readable } from "node:stream";
import { crc32, createInflate } from "node:zlib";

/** Samples per pixel and the bit depths of each color type (ISO/IEC 15948, table 11.1). */
const COLOR_TYPES: ReadonlyMap<number, { samples: number; depths: readonly number[] }> = new Map([
  [0, { samples: 1, depths: [1, 2, 4, 8, 16] }],
  [2, { samples: 3, depths: [8, 16] }],
  [3, { samples: 1, depths: [1, 2, 4, 8] }],
  [4, { samples: 2, depths: [8, 16] }],
  [6, { samples: 4, depths: [8, 16] }],
]);
const PALETTE = 3;
/** Left, top, and the distances of columns and rows of each pass (8.2). */
const ADAM7 = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;
const NOT_INTERLACED = [[0, 0, 1, 1]] as const;

const SIGNATURE = "89504e470d0a1a0a";
/** Length and type before the content of a chunk, and the checksum after it (5.3). */
const BEFORE = 8;
const AFTER = 4;
const HEADER_BYTES = 13;

/** Width and height in pixels, as the header states them; null for anything but a PNG image. */
export function pngSize(bytes: Buffer): { width: number; height: number } | null {
  const isPng =
    bytes.length >= 24 && bytes.toString("hex", 0, 8) === SIGNATURE && bytes.toString("latin1", 12, 16) === "IHDR";
  return isPng ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) } : null;
}

/**
 * Whether a PNG image has all that a decoder needs: a possible header, a palette where there must be one, and every row.
 * Inflating stops beyond the bytes that its size requires, which the caller has to limit.
 */
export async function isDecodablePng(bytes: Buffer): Promise<boolean> {
  const chunks = chunksOf(bytes);
  const expected = chunks && rawBytesOf(chunks);
  if (!expected) return false;
  const data = chunks.filter(({ type }) => type === "IDAT").map(({ content }) => content);
  let inflated = 0;
  try {
    for await (const part of Readable.from(data).pipe(createInflate())) {
      inflated += (part as Buffer).length;
      if (inflated > expected) return false;
    }
  } catch {
    return false;
  }
  return inflated === expected;
}

/** Whether the checksums of all chunks are right (5.3), which browsers require and ffmpeg does not. */
export const hasPngChecksums = (bytes: Buffer): boolean =>
  chunksOf(bytes)?.every(({ type, content, checksum }) => crc32(content, crc32(type)) === checksum) ?? false;

type Chunk = { type: string; content: Buffer; checksum: number };

/** Null without a signature, and for an image that is truncated before its end. */
function chunksOf(bytes: Buffer): Chunk[] | null {
  if (!pngSize(bytes)) return null;
  const chunks: Chunk[] = [];
  for (let at = 8; at + BEFORE + AFTER <= bytes.length; ) {
    const type = bytes.toString("latin1", at + 4, at + BEFORE);
    const end = at + BEFORE + bytes.readUInt32BE(at);
    if (end + AFTER > bytes.length) return null;
    chunks.push({ type, content: bytes.subarray(at + BEFORE, end), checksum: bytes.readUInt32BE(end) });
    if (type === "IEND") return chunks;
    at = end + AFTER;
  }
  return null;
}

/** The length of all rows, each with the type of its filter (7.2, 9.2); null for a header that is impossible. */
function rawBytesOf([header, ...others]: Chunk[]): number | null {
  const { content } = header as Chunk;
  if (content.length !== HEADER_BYTES) return null;
  const width = content.readUInt32BE(0);
  const height = content.readUInt32BE(4);
  const [depth = 0, colorType = 0, compression, filter, interlace = 0] = content.subarray(8);
  const color = COLOR_TYPES.get(colorType);
  if (!color?.depths.includes(depth) || compression !== 0 || filter !== 0 || interlace > 1) return null;
  if (colorType === PALETTE && !others.some(({ type }) => type === "PLTE")) return null;
  return (interlace === 1 ? ADAM7 : NOT_INTERLACED).reduce((sum, [left, top, columns, rows]) => {
    const across = Math.ceil((width - left) / columns);
    const down = Math.ceil((height - top) / rows);
    return across > 0 && down > 0 ? sum + (1 + Math.ceil((across * color.samples * depth) / 8)) * down : sum;
  }, 0);
}
