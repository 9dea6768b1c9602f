import { open } from "node:fs/promises";
import { type Box, boxes, field, find, isLong, uint32 } from "./boxes.ts";
import { readLayout } from "./layout.ts";

/** A time in which an edit list shows nothing new, in seconds of the movie. */
export type EmptyEdit = {
  from: number;
  to: number;
  /** One frame is shown all the time (`media_rate` 0); otherwise nothing is. */
  isFrozen: boolean;
};

/** A recorder has a few. More would be a file that is made to be slow. */
const MAX_EMPTY = 100;
const MAX_EDITS = 10_000;
const MAX_TRACKS = 64;

/**
 * The empty and frozen edits behind the first edit of each track of a file (ISO/IEC 14496-12, 8.6.6), by the number of the
 * track. Files with fragments have none: their edits behind the first one are not followed.
 */
export async function readEmptyEdits(path: string): Promise<ReadonlyMap<number, readonly EmptyEdit[]>> {
  const found = new Map<number, EmptyEdit[]>();
  await using file = await open(path);
  const { size } = await file.stat();
  const read = async (offset: number, length: number) => {
    const data = Buffer.alloc(Math.min(length, Math.max(0, size - offset)));
    const { bytesRead } = await file.read(data, 0, data.length, offset);
    return data.subarray(0, bytesRead);
  };
  const layout = await readLayout(size, read);
  const moov = layout && (await read(...layout.moov));
  const root = moov && find(moov, ["moov"]);
  if (!root || find(moov, ["mvex"], root)) return found;
  const mvhd = find(moov, ["mvhd"], root);
  const scale = mvhd ? uint32(moov, mvhd, isLong(moov, mvhd) ? 20 : 12) : 0;
  if (scale === 0) return found;
  let index = 0;
  for (const track of boxes(moov, root.start, root.end)) {
    if (track.type !== "trak") continue;
    if (index === MAX_TRACKS) break;
    const edits = emptyEdits(moov, track, scale);
    if (edits.length > 0) found.set(index, edits);
    index++;
  }
  return found;
}

function emptyEdits(data: Buffer, track: Box, scale: number): EmptyEdit[] {
  const elst = find(data, ["edts", "elst"], track);
  if (!elst) return [];
  const isWide = isLong(data, elst);
  const step = isWide ? 20 : 12;
  const count = Math.min(uint32(data, elst, 4), MAX_EDITS);
  const found: EmptyEdit[] = [];
  let units = 0;
  let hasBegun = false;
  for (let number = 0; number < count && found.length < MAX_EMPTY; number++) {
    const at = field(elst, 8 + number * step, step);
    const duration = isWide ? Number(data.readBigUInt64BE(at)) : data.readUInt32BE(at);
    const isEmpty = (isWide ? data.readBigInt64BE(at + 8) : data.readInt32BE(at + 4)) < 0;
    const isFrozen = !isEmpty && data.readInt32BE(at + step - 4) === 0;
    if ((isEmpty && hasBegun) || isFrozen)
      found.push({ from: units / scale, to: (units + duration) / scale, isFrozen });
    hasBegun ||= !isEmpty;
    units += duration;
  }
  return found;
}
