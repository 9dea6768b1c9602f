import { open } from "node:fs/promises";
import { find, flagsOf, isLong, SEGMENT_HEAD, uint32 } from "#lib/isobmff";

/** A whole fragment in the file of a segment. Times are in the timescale of its track. */
export type Fragment = {
  /** Position of the byte after it. */
  end: number;
  time: number;
  duration: number;
  /** The presentation time of its first sample. */
  presentation: number;
  samples: number;
};

/** A part has at most 1000 samples of 16 bytes each. */
const MAX_MOOF_BYTES = 64 * 1024;
/** Duration, size, flags and composition offset of each sample, and the offset of the data. */
const TRUN_FLAGS = 0xf01;
/** Each has a sample. A segment has at most 100,000. */
const MAX_FRAGMENTS = 100_000;

/** The whole fragments of a segment, up to the first one that is not: a process may have been killed while it wrote. */
export async function scanSegment(path: string): Promise<Fragment[]> {
  await using file = await open(path);
  const { size } = await file.stat();
  const read = async (offset: number, length: number) => {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  };
  const fragments: Fragment[] = [];
  for (let at = SEGMENT_HEAD.length; fragments.length < MAX_FRAGMENTS; ) {
    const header = await read(at, 8);
    if (header.length < 8 || header.toString("latin1", 4) !== "moof") break;
    const bytes = header.readUInt32BE(0);
    if (bytes < 8 || bytes > MAX_MOOF_BYTES) break;
    // With the header of the `mdat` that follows.
    const moof = await read(at, bytes + 8);
    const fragment = moof.length === bytes + 8 ? readFragment(moof, bytes, at) : null;
    if (!fragment || fragment.end > size) break;
    fragments.push(fragment);
    at = fragment.end;
  }
  return fragments;
}

/** Null when it is not one that the packager wrote. */
function readFragment(data: Buffer, bytes: number, at: number): Fragment | null {
  try {
    const moof = data.subarray(0, bytes);
    const tfdt = find(moof, ["moof", "traf", "tfdt"]);
    const trun = find(moof, ["moof", "traf", "trun"]);
    if (!tfdt || !trun || !isLong(moof, tfdt) || flagsOf(moof, trun) !== TRUN_FLAGS) return null;
    const samples = uint32(moof, trun, 4);
    if (samples === 0 || trun.start + 12 + samples * 16 !== trun.end) return null;
    let duration = 0;
    let size = 8;
    for (let row = trun.start + 12; row < trun.end; row += 16) {
      duration += moof.readUInt32BE(row);
      size += moof.readUInt32BE(row + 4);
    }
    if (data.toString("latin1", bytes + 4) !== "mdat" || data.readUInt32BE(bytes) !== size) return null;
    const time = Number(moof.readBigUInt64BE(tfdt.start + 4));
    const presentation = Math.max(0, time + moof.readInt32BE(trun.start + 24));
    return { end: at + bytes + size, time, duration, presentation, samples };
  } catch {
    // A truncated box.
    return null;
  }
}
