import type { FileHandle } from "node:fs/promises";
import { pacer } from "#lib/base";

/** The boxes of MP4 and QuickTime files, with and without fragments, by their heads. */

const HEADER_BYTES = 16;
const MAX_MOOV_BYTES = 64 * 2 ** 20;

/** Fewer at the end of the file. */
export async function bytesAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const data = Buffer.alloc(length);
  const { bytesRead } = await file.read(data, 0, length, offset);
  return data.subarray(0, bytesRead);
}

type TopBox = { type: string; at: number; size: number };

/** The boxes of a file, by their heads; ends at what is none. */
export async function* boxesOf(file: FileHandle, step: () => void = () => {}): AsyncGenerator<TopBox> {
  const { size: end } = await file.stat();
  const pace = pacer();
  for (let at = 0; at < end; ) {
    await pace();
    step();
    const head = await bytesAt(file, at, HEADER_BYTES);
    if (head.length < 8) return;
    const type = head.toString("latin1", 4, 8);
    const short = head.readUInt32BE(0);
    const stated = short === 1 && head.length === HEADER_BYTES ? Number(head.readBigUInt64BE(8)) : short;
    const size = stated === 0 ? end - at : stated;
    if (size < 8 || !/^[\x20-\x7e\xa9]{4}$/.test(type)) return;
    yield { type, at, size: Math.min(size, end - at) };
    at += size;
  }
}

/** Where the `moov` box is; null for a file that is not MP4 or QuickTime, or whose index is too large. */
export async function findMoov(file: FileHandle): Promise<readonly [offset: number, length: number] | null> {
  let isFirst = true;
  for await (const { type, at, size } of boxesOf(file)) {
    if (isFirst && type !== "ftyp" && type !== "moov") return null;
    isFirst = false;
    if (type === "moov") return size <= MAX_MOOV_BYTES ? [at, size] : null;
  }
  return null;
}
