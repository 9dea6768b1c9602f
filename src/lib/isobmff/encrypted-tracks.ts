import { type Box, boxes, field, find, uint32 } from "./boxes.ts";

/** Sample entries of protected media (ISO/IEC 14496-12, 8.12), and those of FairPlay in QuickTime. */
const PROTECTED: ReadonlySet<string> = new Set(["encv", "enca", "drmi", "drms"]);
/** Bytes before the boxes in a sample entry: video (12.1.3), and audio (12.2.3). */
const HEADS = [78, 28] as const;
const MAX_TRACKS = 64;

/** The numbers of the tracks of a `moov` box whose media are encrypted, as ffmpeg counts streams. None of a malformed one. */
export function readEncryptedTracks(moov: Buffer): ReadonlySet<number> {
  const found = new Set<number>();
  try {
    const root = find(moov, ["moov"]);
    const tracks = root ? [...boxes(moov, root.start, root.end)].filter(({ type }) => type === "trak") : [];
    for (const [index, track] of tracks.slice(0, MAX_TRACKS).entries()) {
      const stsd = find(moov, ["mdia", "minf", "stbl", "stsd"], track);
      const [entry] = stsd ? [...boxes(moov, field(stsd, 8, 0), stsd.end)] : [];
      if (entry && PROTECTED.has(entry.type) && !isClear(moov, entry)) found.add(index);
    }
  } catch {
    // A truncated table. The demuxer reports the fault.
  }
  return found;
}

/** ISO/IEC 23001-7, 8.2: a track may announce encryption, and have none. */
function isClear(data: Buffer, entry: Box): boolean {
  for (const head of HEADS) {
    const tenc = find(data, ["sinf", "schi", "tenc"], { ...entry, start: entry.start + head });
    if (tenc) return (uint32(data, tenc, 4) & 0xff00) === 0;
  }
  return false;
}
