import type { FileHandle } from "node:fs/promises";

/*
 * Where a file ends, for containers that state it in their header, and how the ends of other containers look. A stranger
 * chose all numbers.
 */

export async function bytesAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

/** Chunks of CAF. */
const MAX_CHUNKS = 1000;
const UNKNOWN = 0xffff_ffff;
/** Writers of MP3 disagree on whether the first frame counts. */
const MP3_FRAME_BYTES = 2048;

/** Where a file should end, from its first bytes; null for another container, and for one that does not state it. */
export async function statedEnd(file: FileHandle, head: Buffer, size: number): Promise<number | null> {
  const first = head.toString("latin1", 0, 4);
  switch (first) {
    case "FLV\x01":
      return endOfFlv(head);
    case "FORM":
      return head.readUInt32BE(4) + 8;
    case ".snd":
      return head.readUInt32BE(8) === UNKNOWN ? null : head.readUInt32BE(4) + head.readUInt32BE(8);
    case "caff":
      return endOfCaf(file, size);
    default:
      if (head.subarray(0, 16).equals(W64)) return Number(head.readBigInt64LE(16));
      if (head.subarray(0, 16).equals(ASF)) return endOfAsf(head);
      return first.startsWith("ID3") || (head[0] === 0xff && ((head[1] as number) & 0xe0) === 0xe0)
        ? endOfMp3(file, head)
        : null;
  }
}

const W64 = Buffer.from("726966662e91cf11a5d628db04c10000", "hex");

/** The size in the metadata of FLV, which is a number of AMF 0 (2.2): as ffmpeg and as OBS call it. */
function endOfFlv(head: Buffer): number | null {
  for (const name of ["filesize", "fileSize"]) {
    const at = head.indexOf(name, 0, "latin1");
    if (at < 0 || at + 17 > head.length || head[at + 8] !== 0) continue;
    const bytes = head.readDoubleBE(at + 9);
    if (Number.isFinite(bytes) && bytes > 0) return bytes;
  }
  return null;
}

/** Objects of ASF (3.1 and 3.2). */
const ASF = Buffer.from("3026b2758e66cf11a6d900aa0062ce6c", "hex");
const FILE_PROPERTIES = Buffer.from("a1dcab8c47a9cf118ee400c00c205365", "hex");
const IS_BROADCAST = 1;

function endOfAsf(head: Buffer): number | null {
  const at = head.indexOf(FILE_PROPERTIES);
  if (at < 0 || at + 92 > head.length || head.readUInt32LE(at + 88) & IS_BROADCAST) return null;
  return Number(head.readBigUInt64LE(at + 40));
}

/** From the sizes of its chunks; null when its data last until the end of the file, whatever that is. */
async function endOfCaf(file: FileHandle, size: number): Promise<number | null> {
  let at = 8;
  for (let count = 0; at + 12 <= size && count < MAX_CHUNKS; count++) {
    const header = await bytesAt(file, at, 12);
    const length = Number(header.readBigInt64BE(4));
    if (length < 0) return null;
    at += 12 + length;
  }
  return at;
}

/** The bytes that the first frame of MP3 states (Xing or Info), behind the tag. */
async function endOfMp3(file: FileHandle, head: Buffer): Promise<number | null> {
  const isTagged = head.toString("latin1", 0, 3) === "ID3";
  // Seven bits of each byte.
  const tag = isTagged ? [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((head[at] as number) & 0x7f), 0) + 10 : 0;
  const frame = await bytesAt(file, tag, 256);
  const at = Math.max(frame.indexOf("Xing", 0, "latin1"), frame.indexOf("Info", 0, "latin1"));
  if (at < 0 || at + 16 > frame.length) return null;
  const flags = frame.readUInt32BE(at + 4);
  if ((flags & 2) === 0) return null;
  const bytes = frame.readUInt32BE(at + (flags & 1 ? 12 : 8));
  return tag + bytes - MP3_FRAME_BYTES;
}

/** The largest page of Ogg (RFC 3533, 6). */
const OGG_PAGE_BYTES = 65_307;
const TAIL_BYTES = 1024;
/** The end of the data of an image, and the trailer (GIF89a, 27). */
const GIF_END = Buffer.from([0, 0x3b]);

/** Whether the end of a file is missing, because it ends within what it consists of. */
export async function endsWithin(file: FileHandle, head: Buffer, size: number): Promise<boolean> {
  const tail = (length: number) => bytesAt(file, Math.max(0, size - length), length);
  const first = head.toString("latin1", 0, 4);
  if (first === "GIF8") return !(await tail(TAIL_BYTES)).includes(GIF_END);
  if (first === "\x89PNG") return !(await tail(TAIL_BYTES)).includes("IEND", 0, "latin1");
  if (first !== "OggS") return false;
  const pages = await tail(2 * OGG_PAGE_BYTES);
  const at = pages.lastIndexOf("OggS", undefined, "latin1");
  const segments = pages[at + 26];
  if (at < 0 || segments === undefined) return true;
  const lengths = pages.subarray(at + 27, at + 27 + segments);
  return lengths.length < segments || at + 27 + segments + lengths.reduce((sum, each) => sum + each, 0) > pages.length;
}

const BLANK_BYTES = 4096;
const BLANK_PLACES = [0.9, 0.95, 1];
const LEAST_BYTES = 64 * 1024;
/** Matroska, FLV, Ogg, MPEG-PS and MPEG-TS: nothing in them has so many zeros. */
const NEVER_BLANK = ["\x1aE\xdf\xa3", "FLV\x01", "OggS", "\0\0\x01\xba", "G"];

/** Whether the last tenth of a file is zeros: it was given its size first, and a download or a copy of it ended early. */
export async function isBlank(file: FileHandle, head: Buffer, size: number): Promise<boolean> {
  const first = head.toString("latin1", 0, 4);
  if (size < LEAST_BYTES || !NEVER_BLANK.some((start) => first.startsWith(start))) return false;
  for (const share of BLANK_PLACES) {
    const data = await bytesAt(file, Math.floor((size - BLANK_BYTES) * share), BLANK_BYTES);
    if (data.some((byte) => byte !== 0)) return false;
  }
  return true;
}
