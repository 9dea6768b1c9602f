import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeAll } from "#lib/base";
import { type Box, box, boxes, field, find, isLong } from "#lib/isobmff";
import { INIT_NAME } from "#media/arguments.ts";
import type { Written } from "#media/package.ts";

/*
 * A recording as one file, from which other renditions can be encoded: its tracks are files of their own, and an encoder
 * reads one source. A fragmented MP4 of the same samples (ISO/IEC 14496-12, 8.8): nothing is encoded.
 */

/** Positions in boxes after their header: 8.3.2, 8.8.3, 8.8.7, and 8.2.2, 8.3.2, 8.4.2 for durations. */
const TRACK_ID = { tkhd: { short: 12, long: 20 }, trex: 4, tfhd: 4 };
const DURATION = { mvhd: { short: 16, long: 24 }, tkhd: { short: 20, long: 28 }, mdhd: { short: 16, long: 24 } };
const MOVIE_TIMESCALE = { short: 12, long: 20 };

/**
 * Writes the tracks, which are in directories of `folder`, to the file `path`. Returns its size. `admit` is called
 * before each segment; throws its error, and that of the file.
 */
export async function writeSource(
  folder: string,
  tracks: readonly Written[],
  { path, admit }: { path: string; admit: () => Promise<void> },
): Promise<number> {
  await using file = await open(path, "w");
  let at = 0;
  const write = async (...chunks: Buffer[]) => {
    await writeAll(file, chunks, at);
    at += chunks.reduce((sum, { length }) => sum + length, 0);
  };
  const inits = await Promise.all(tracks.map(({ name }) => readFile(join(folder, name, INIT_NAME))));
  await write(movieOf(inits, tracks));
  const count = Math.max(...tracks.map(({ segments }) => segments.length));
  for (let index = 0; index < count; index++)
    for (const [track, { name, segments }] of tracks.entries()) {
      const segment = segments[index];
      if (segment) await admit();
      if (segment) await write(...fragmentsOf(await readFile(join(folder, name, segment.name)), track + 1));
    }
  await file.datasync();
  return at;
}

/** The `ftyp` and `moov` of all tracks, whose ids count from 1. */
function movieOf(inits: readonly Buffer[], tracks: readonly Written[]): Buffer {
  const [first] = inits as [Buffer];
  const seconds = Math.max(...tracks.map(({ durationSeconds }) => durationSeconds));
  const header = whole(first, boxAt(first, ["moov", "mvhd"]));
  const timescale = header.readUInt32BE(fieldAt(header, MOVIE_TIMESCALE, 4));
  writeDuration(header, DURATION.mvhd, seconds * timescale);
  // next_track_ID is the last field.
  header.writeUInt32BE(tracks.length + 1, header.length - 4);
  const children = inits.map((init, index) => trackOf(init, index + 1, { track: tracks[index] as Written, timescale }));
  const movie = box(
    "moov",
    header,
    ...children.map(({ trak }) => trak),
    box("mvex", ...children.map(({ trex }) => trex)),
  );
  return Buffer.concat([whole(first, boxAt(first, ["ftyp"])), movie]);
}

type Track = { track: Written; timescale: number };
function trackOf(init: Buffer, id: number, { track, timescale }: Track): { trak: Buffer; trex: Buffer } {
  const trak = whole(init, boxAt(init, ["moov", "trak"]));
  const tkhd = boxAt(trak, ["trak", "tkhd"]);
  const at = isLong(trak, tkhd) ? "long" : "short";
  trak.writeUInt32BE(id, field(tkhd, TRACK_ID.tkhd[at], 4));
  const mdhd = boxAt(trak, ["trak", "mdia", "mdhd"]);
  setDuration(trak, tkhd, { at: DURATION.tkhd, duration: track.durationSeconds * timescale });
  setDuration(trak, mdhd, { at: DURATION.mdhd, duration: track.durationSeconds * track.init.timescale });
  const trex = whole(init, boxAt(init, ["moov", "mvex", "trex"]));
  trex.writeUInt32BE(id, 8 + TRACK_ID.trex);
  return { trak, trex };
}

/** The `moof` and `mdat` boxes of a segment, with `id` as the number of their track. */
function fragmentsOf(segment: Buffer, id: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (const one of boxes(segment, 0, segment.length)) {
    if (one.type === "moof") {
      const tfhd = find(segment, ["traf", "tfhd"], one);
      if (tfhd) segment.writeUInt32BE(id, field(tfhd, TRACK_ID.tfhd, 4));
    }
    if (one.type === "moof" || one.type === "mdat") chunks.push(segment.subarray(one.start - 8, one.end));
  }
  return chunks;
}

type Layouts = { short: number; long: number };

function setDuration(data: Buffer, within: Box, { at, duration }: { at: Layouts; duration: number }): void {
  if (isLong(data, within)) data.writeBigUInt64BE(BigInt(Math.round(duration)), field(within, at.long, 8));
  else data.writeUInt32BE(Math.min(2 ** 32 - 1, Math.round(duration)), field(within, at.short, 4));
}

/** Writes the duration into a box that begins the data. */
function writeDuration(data: Buffer, at: Layouts, duration: number): void {
  setDuration(data, { type: "mvhd", start: 8, end: data.length }, { at, duration });
}

const fieldAt = (data: Buffer, at: Layouts, bytes: number): number => {
  const within = { type: "mvhd", start: 8, end: data.length };
  return field(within, isLong(data, within) ? at.long : at.short, bytes);
};

function boxAt(data: Buffer, path: string[]): Box {
  const found = find(data, path);
  if (!found) throw new Error(`The init segment has no ${path.at(-1)} box.`);
  return found;
}

/** A copy of a box with its header of 8 bytes. */
const whole = (data: Buffer, { start, end }: Box): Buffer => Buffer.from(data.subarray(start - 8, end));
