import { type Box, boxes, field, find, isLong, uint32 } from "./boxes.ts";
import { box, fourCharacters, fullBox, long, words } from "./write-boxes.ts";

/**
 * Joins renditions that were packaged apart, each with one track, into one fragmented file (ISO/IEC 14496-12, 8.8). Segments keep
 * their bytes, except for the number of the audio track.
 */

type JoinedInit = {
  init: Buffer;
  /** The number that the fragments of the audio need; null where they keep theirs. */
  audioTrack: number | null;
};

/**
 * The init segment of a file with a track of `main`, and of `audio` if there is one. `durationSeconds` is that of the whole
 * file. Throws Error when one of them is malformed, or `main` has several tracks next to `audio`.
 */
export function joinedInit(main: Buffer, audio: Buffer | null, durationSeconds: number): JoinedInit {
  const moov = required(main, ["moov"]);
  const mvhd = required(main, ["mvhd"], moov);
  const numbers = tracksOf(main, moov).map((trak) => uint32(main, ...trackIdAt(main, trak)));
  if (numbers.length === 0 || (audio && numbers.length > 1)) throw new Error("The init segment has not one track.");
  const audioTrack = audio ? (numbers[0] as number) + 1 : null;
  const header = Buffer.from(whole(main, mvhd));
  header.writeUInt32BE(Math.max(...numbers, audioTrack ?? 0) + 1, header.length - 4);
  const timescale = Math.max(1, uint32(main, mvhd, isLong(main, mvhd) ? 20 : 12));
  const duration = fullBox("mehd", 1, 0, long(Math.round(durationSeconds * timescale)));
  const traks = tracksOf(main, moov).map((trak) => whole(main, trak));
  const extensions = trexOf(main, moov).map((trex) => whole(main, trex));
  if (audio && audioTrack !== null) {
    const own = required(audio, ["moov"]);
    const [trak, second] = tracksOf(audio, own);
    const [trex] = trexOf(audio, own);
    if (!trak || !trex || second) throw new Error("The init segment of the audio has not one track.");
    traks.push(renumbered(audio, trak, trackIdAt(audio, trak), audioTrack));
    extensions.push(renumbered(audio, trex, [trex, 4], audioTrack));
  }
  const init = Buffer.concat([
    box("ftyp", fourCharacters("isom"), words(512), fourCharacters("isom", "iso6", "mp41")),
    box("moov", header, ...traks, box("mvex", duration, ...extensions)),
  ]);
  return { init, audioTrack };
}

/** Gives the fragments of a segment, and its index, another track number, in place. Throws Error when it is malformed. */
export function renumberSegment(segment: Buffer, track: number): void {
  for (const part of boxes(segment, 0, segment.length)) {
    if (part.type === "sidx") segment.writeUInt32BE(track, field(part, 4, 4));
    if (part.type !== "moof") continue;
    for (const traf of boxes(segment, part.start, part.end)) {
      if (traf.type !== "traf") continue;
      segment.writeUInt32BE(track, field(required(segment, ["tfhd"], traf), 4, 4));
    }
  }
}

const HEADER_BYTES = 8;
const whole = (data: Buffer, { start, end }: Box) => data.subarray(start - HEADER_BYTES, end);
const childrenOf = (data: Buffer, { start, end }: Box, type: string): Box[] =>
  [...boxes(data, start, end)].filter((child) => child.type === type);
const tracksOf = (data: Buffer, moov: Box) => childrenOf(data, moov, "trak");
const trexOf = (data: Buffer, moov: Box) => childrenOf(data, required(data, ["mvex"], moov), "trex");

function trackIdAt(data: Buffer, trak: Box): [box: Box, offset: number] {
  const tkhd = required(data, ["tkhd"], trak);
  return [tkhd, isLong(data, tkhd) ? 20 : 12];
}

/** A copy of a box with another number in the field at `offset` of `inner`. */
function renumbered(data: Buffer, outer: Box, [inner, offset]: [Box, number], track: number): Buffer {
  const copy = Buffer.from(whole(data, outer));
  copy.writeUInt32BE(track, field(inner, offset, 4) - (outer.start - HEADER_BYTES));
  return copy;
}

function required(data: Buffer, path: string[], within?: Box): Box {
  const found = find(data, path, within);
  if (!found) throw new Error(`The ${path.at(-1)} box is missing.`);
  return found;
}
