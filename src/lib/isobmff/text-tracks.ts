import { type Box, boxes, find, isLong, uint16, uint32 } from "./boxes.ts";

/** A track of text or images that are shown over the video. */
export type SubtitleTrack = {
  /** Number of the track, as ffmpeg counts streams. */
  index: number;
  /** What other boxes call it. */
  id: number;
  /** The type of its first sample entry: `tx3g`, `text`, `wvtt`, `stpp`, `mp4s`. */
  format: string;
  /** As in the file: BCP 47, else ISO 639-2; null where it is not stated. */
  language: string | null;
  title: string | null;
  /** All of its samples are to be shown to everyone. */
  isForced: boolean;
  /** For people who cannot hear. */
  isCaption: boolean;
};

/** Handlers of tracks with text: MPEG-4 and QuickTime (8.4.3). */
const HANDLERS: readonly string[] = ["text", "sbtl", "subt", "subp"];
const MAX_TITLE_BYTES = 1000;
/** Apple's extension of the display flags of `tx3g`. */
const ALL_FORCED = 0x80000000;
const MAX_TRACKS = 64;

/** The tracks of a `moov` box that have subtitles; without those whose text is chapters. None of a malformed one. */
export function readSubtitleTracks(moov: Buffer): SubtitleTrack[] {
  try {
    const root = find(moov, ["moov"]);
    if (!root) return [];
    const tracks = [...boxes(moov, root.start, root.end)].filter(({ type }) => type === "trak").slice(0, MAX_TRACKS);
    const chapters = new Set(tracks.flatMap((track) => chaptersOf(moov, track)));
    return tracks.flatMap((track, index) => {
      const found = readTrack(moov, track, index);
      return found && !chapters.has(found.id) ? [found] : [];
    });
  } catch {
    return [];
  }
}

function trackId(data: Buffer, track: Box): number {
  const tkhd = find(data, ["tkhd"], track);
  return tkhd ? uint32(data, tkhd, isLong(data, tkhd) ? 20 : 12) : 0;
}

/** QuickTime File Format, chapter lists: the tracks whose text a track has as chapters. */
function chaptersOf(data: Buffer, track: Box): number[] {
  const chap = find(data, ["tref", "chap"], track);
  const count = chap ? Math.min(MAX_TRACKS, Math.floor((chap.end - chap.start) / 4)) : 0;
  return chap ? Array.from({ length: count }, (_, index) => uint32(data, chap, index * 4)) : [];
}

function readTrack(data: Buffer, track: Box, index: number): SubtitleTrack | null {
  const hdlr = find(data, ["mdia", "hdlr"], track);
  const stsd = find(data, ["mdia", "minf", "stbl", "stsd"], track);
  if (!hdlr || !stsd) return null;
  const handler = data.toString("latin1", hdlr.start + 8, hdlr.start + 12);
  const entry = [...boxes(data, stsd.start + 8, stsd.end)][0];
  if (!entry || !HANDLERS.includes(handler)) return null;
  const kinds = kindsOf(data, track);
  const isAllForced = entry.type === "tx3g" && (uint32(data, entry, 8) & ALL_FORCED) !== 0;
  return {
    index,
    id: trackId(data, track),
    format: entry.type,
    language: languageOf(data, track),
    title: titleOf(data, track),
    isForced: isAllForced || kinds.some((kind) => /^forced-subtitle$|forced-only/.test(kind)),
    isCaption: kinds.some((kind) => /^caption$|transcribes-spoken-dialog|describes-music-and-sound/.test(kind)),
  };
}

/** `elng` (8.4.6), else `mdhd` (8.4.2): three letters of five bits, or a number of QuickTime. */
function languageOf(data: Buffer, track: Box): string | null {
  const elng = find(data, ["mdia", "elng"], track);
  if (elng) {
    const tag = zeroTerminated(data.subarray(elng.start + 4, elng.end)).trim();
    if (tag !== "") return tag;
  }
  const mdhd = find(data, ["mdia", "mdhd"], track);
  if (!mdhd) return null;
  const packed = uint16(data, mdhd, isLong(data, mdhd) ? 32 : 20);
  const letters = [10, 5, 0].map((shift) => String.fromCharCode(((packed >> shift) & 0x1f) + 0x60)).join("");
  return packed < FIRST_PACKED ? (MACINTOSH[packed] ?? null) : packed === UNSPECIFIED ? null : letters;
}
const FIRST_PACKED = 0x400;
const UNSPECIFIED = 0x7fff;
/** QuickTime File Format, language code values: by their number. */
const MACINTOSH =
  `en fr de it nl sv es da pt no he ja ar fi el is mt tr hr zh-Hant ur hi th ko lt pl hu et lv se fo fa ru zh-Hans nl-BE ga sq ro cs sk sl
  yi sr mk bg uk be`.split(/\s+/);

/** The name of a track in its user data; the name of its handler is that of a program. */
function titleOf(data: Buffer, track: Box): string | null {
  const name = find(data, ["udta", "name"], track);
  if (!name) return null;
  // Some programs write a version and flags before it.
  const bytes = data.subarray(name.start, Math.min(name.end, name.start + MAX_TITLE_BYTES));
  const text = zeroTerminated(bytes.length > 4 && bytes.readUInt32BE(0) === 0 ? bytes.subarray(4) : bytes);
  return text.trim() === "" ? null : text;
}

/** The values of `kind` boxes (8.10.4), and of Apple's tags of media characteristics. */
function kindsOf(data: Buffer, track: Box): string[] {
  const udta = find(data, ["udta"], track);
  if (!udta) return [];
  return [...boxes(data, udta.start, udta.end)].flatMap(({ type, start, end }) => {
    if (type === "tagc") return [zeroTerminated(data.subarray(start, Math.min(end, start + MAX_TITLE_BYTES)))];
    if (type !== "kind") return [];
    const [, value = ""] = data.toString("latin1", start + 4, Math.min(end, start + MAX_TITLE_BYTES)).split("\0");
    return [value];
  });
}

const zeroTerminated = (bytes: Buffer): string => {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end < 0 ? bytes.length : end);
};
