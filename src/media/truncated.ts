import { type FileHandle, open } from "node:fs/promises";
import { bytesAt, endsWithin, isBlank, statedEnd } from "./truncated/stated-ends.ts";

/** Fragmented files have two boxes every few seconds. */
const MAX_BOXES = 100_000;
/** Writers disagree on padding at the end. */
const TOLERANCE_BYTES = 8;
/** Larger sizes of RIFF mean that the writer could not seek. */
const MAX_RIFF_BYTES = 0x7fff_0000;

/**
 * Whether a file is shorter than its container states, ends within what it consists of, or has zeros where its end should be. MPEG
 * streams and ADTS have no size. Reads headers, and a little of the end. False for a file that cannot be read.
 */
export async function isTruncated(path: string): Promise<boolean> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const head = await bytesAt(file, 0, HEAD_BYTES);
    if (head.length < LEAST_BYTES) return false;
    const end =
      (await endOfBoxes(file, head, size)) ??
      (await endOfRiff(file, head, size)) ??
      endOfSegment(head) ??
      (await statedEnd(file, head, size));
    if (end !== null && end > size + TOLERANCE_BYTES) return true;
    return (await endsWithin(file, head, size)) || (await isBlank(file, head, size));
  } catch {
    return false;
  }
}

const HEAD_BYTES = 64 * 1024;
const LEAST_BYTES = 64;

const BOXES = ["ftyp", "moov", "mdat", "wide", "free", "skip", "pnot", "styp"];

/** Where the last box of an MP4 file ends (ISO/IEC 14496-12, 4.2); null for another file. */
async function endOfBoxes(file: FileHandle, head: Buffer, size: number): Promise<number | null> {
  if (!BOXES.includes(head.toString("latin1", 4, 8))) return null;
  let at = 0;
  for (let count = 0; at + 8 <= size && count < MAX_BOXES; count++) {
    const header = await bytesAt(file, at, 16);
    const short = header.readUInt32BE(0);
    const length = short === 1 ? Number(header.readBigUInt64BE(8)) : short;
    // 0: to the end of the file. Otherwise it is no box: damaged, or missing in a file of which only a part was downloaded.
    if (length < 8 || !/^[\x20-\x7e\xa9]{4}$/.test(header.toString("latin1", 4, 8))) return size;
    at += length;
  }
  return at;
}

/** The same for AVI, which has one RIFF chunk for each gigabyte, and WAV. */
async function endOfRiff(file: FileHandle, head: Buffer, size: number): Promise<number | null> {
  if (head.toString("latin1", 0, 4) !== "RIFF") return null;
  let at = 0;
  for (let count = 0; at + 8 <= size && count < MAX_BOXES; count++) {
    const header = await bytesAt(file, at, 8);
    const length = header.readUInt32LE(4);
    if (header.toString("latin1", 0, 4) !== "RIFF" || length === 0 || length > MAX_RIFF_BYTES) return size;
    at += 8 + length + (length % 2);
  }
  return at;
}

const EBML = 0x1a45dfa3;
const SEGMENT = 0x18538067;

/** The same for the segment of Matroska (RFC 8794, 6); null for another file, and for a segment of unknown size. */
function endOfSegment(head: Buffer): number | null {
  if (head.readUInt32BE(0) !== EBML) return null;
  const header = sizeAt(head, 4);
  if (!header || header.value === null) return null;
  const at = header.end + header.value;
  if (at + 12 > head.length || head.readUInt32BE(at) !== SEGMENT) return null;
  const segment = sizeAt(head, at + 4);
  return segment && segment.value !== null ? segment.end + segment.value : null;
}

/** A variable-size integer and where it ends; its value is null when all bits are set, which means unknown. */
function sizeAt(bytes: Buffer, at: number): { value: number | null; end: number } | null {
  const first = bytes[at];
  if (!first) return null;
  const length = Math.clz32(first) - 23;
  let value = first & (0xff >> length);
  let isUnknown = value === 0xff >> length;
  for (const byte of bytes.subarray(at + 1, at + length)) {
    value = value * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  return { value: isUnknown ? null : value, end: at + length };
}
