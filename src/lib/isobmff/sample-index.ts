import { type Box, boxes, field, find, isLong, uint32 } from "./boxes.ts";
import type { ByteRange } from "./layout.ts";

/** The samples of one track, in the order in which they are decoded. */
export type TrackIndex = {
  kind: "video" | "audio" | "other";
  /** Number of the track, as ffmpeg counts streams. */
  index: number;
  /** Units of time per second. */
  timescale: number;
  offsets: Float64Array;
  sizes: Uint32Array;
  /** Seconds on the timeline of the file, after its edit list. */
  dts: Float64Array;
  pts: Float64Array;
  /** Whether decoding may begin with the sample. */
  isKey: Uint8Array;
  /** Whether all samples have the same parameters, and the edit list ends behind the last one. */
  isUniform: boolean;
  /** When the track ends, in seconds on the timeline of the file. */
  endSeconds: number;
};

/** The most samples of all tracks together: nine hours at 60 frames per second. Longer sources are read as a whole. */
const MAX_SAMPLES = 2_000_000;
const MAX_TRACKS = 64;

/**
 * The samples of all tracks of a `moov` box (ISO/IEC 14496-12, 8.6 and 8.7). Null when it cannot be interpreted with
 * certainty: fragments, several edits in a track, tables that do not fit together.
 */
export function readIndex(moov: Buffer): TrackIndex[] | null {
  try {
    const root = find(moov, ["moov"]);
    if (!root || find(moov, ["mvex"], root)) return null;
    const mvhd = find(moov, ["mvhd"], root);
    const movieScale = mvhd ? uint32(moov, mvhd, isLong(moov, mvhd) ? 20 : 12) : 0;
    const tracks = [...boxes(moov, root.start, root.end)].filter(({ type }) => type === "trak");
    if (tracks.length === 0 || tracks.length > MAX_TRACKS || movieScale === 0) return null;
    let left = MAX_SAMPLES;
    const read: TrackIndex[] = [];
    for (const [index, track] of tracks.entries()) {
      const samples = readTrack(moov, track, { index, movieScale, limit: left });
      if (!samples) return null;
      left -= samples.sizes.length;
      read.push(samples);
    }
    return read;
  } catch {
    // A truncated table. The demuxer reports the fault.
    return null;
  }
}

const KINDS: Record<string, TrackIndex["kind"]> = { vide: "video", soun: "audio" };

type TrackOptions = { index: number; movieScale: number; limit: number };

function readTrack(data: Buffer, track: Box, { index, movieScale, limit }: TrackOptions): TrackIndex | null {
  const mdhd = find(data, ["mdia", "mdhd"], track);
  const hdlr = find(data, ["mdia", "hdlr"], track);
  const stbl = find(data, ["mdia", "minf", "stbl"], track);
  if (!mdhd || !hdlr || !stbl) return null;
  const scale = uint32(data, mdhd, isLong(data, mdhd) ? 20 : 12);
  const edit = editOf(data, track, { scale, movieScale });
  const sizes = readSizes(data, stbl, limit);
  if (scale === 0 || edit === null || !sizes) return null;
  const offsets = readOffsets(data, stbl, sizes);
  const times = readTimes(data, stbl, { count: sizes.length, scale, shift: edit.shift });
  if (!offsets || !times) return null;
  const { ticks, shownUntil, ...secondsOf } = times;
  const stsd = find(data, ["stsd"], stbl);
  const handler = data.toString("latin1", field(hdlr, 8, 4), hdlr.start + 12);
  return {
    kind: KINDS[handler] ?? "other",
    index,
    timescale: scale,
    sizes,
    offsets,
    ...secondsOf,
    isKey: readKeys(data, stbl, sizes.length),
    // The duration of an edit is rounded to the clock of the movie.
    isUniform: stsd !== null && uint32(data, stsd, 4) === 1 && edit.endSeconds + 1 / movieScale >= ticks / scale - 1e-6,
    endSeconds: Math.min(shownUntil, edit.endSeconds + edit.shift),
  };
}

/**
 * The samples up to the first one that is not, or not entirely, in a file of `size` bytes: a reader ends there. The track itself
 * when it has all.
 */
export function withinFile(track: TrackIndex, size: number): TrackIndex {
  const { offsets, sizes, dts, pts, isKey } = track;
  const count = sizes.findIndex((bytes, sample) => (offsets[sample] as number) + bytes > size);
  if (count < 0) return track;
  const shown = pts.subarray(0, count);
  const last = shown.reduce((most, seconds) => Math.max(most, seconds), shown[0] ?? 0);
  const apart = count > 1 ? ((dts[count - 1] as number) - (dts[0] as number)) / (count - 1) : 0;
  return {
    ...track,
    offsets: offsets.subarray(0, count),
    sizes: sizes.subarray(0, count),
    dts: dts.subarray(0, count),
    pts: shown,
    isKey: isKey.subarray(0, count),
    endSeconds: Math.min(track.endSeconds, last + apart),
  };
}

/**
 * The edit of a track (8.6.6): seconds to add to its times, and where it ends in its media, in seconds. Empty edits, then
 * one edit; null for any other list.
 */
export function editOf(data: Buffer, track: Box, { scale, movieScale }: { scale: number; movieScale: number }) {
  const all = { shift: 0, endSeconds: Number.POSITIVE_INFINITY };
  const elst = find(data, ["edts", "elst"], track);
  if (!elst) return all;
  const isWide = isLong(data, elst);
  const step = isWide ? 20 : 12;
  const count = uint32(data, elst, 4);
  let empty = 0;
  for (let number = 0; number < Math.min(count, 100); number++) {
    const at = field(elst, 8 + number * step, step);
    const duration = isWide ? Number(data.readBigUInt64BE(at)) : data.readUInt32BE(at);
    const time = isWide ? Number(data.readBigInt64BE(at + 8)) : data.readInt32BE(at + 4);
    const rate = data.readInt32BE(at + step - 4);
    if (time < 0) empty += duration;
    else if (number !== count - 1 || rate !== 0x10000) return null;
    else
      return {
        shift: empty / movieScale - time / scale,
        endSeconds: duration === 0 ? Number.POSITIVE_INFINITY : time / scale + duration / movieScale,
      };
  }
  return count === 0 ? all : null;
}

/** 8.7.3. */
export function readSizes(data: Buffer, stbl: Box, limit: number): Uint32Array | null {
  const stsz = find(data, ["stsz"], stbl);
  if (!stsz) return null;
  const equal = uint32(data, stsz, 4);
  const count = uint32(data, stsz, 8);
  if (count > limit) return null;
  if (equal > 0) return new Uint32Array(count).fill(equal);
  field(stsz, 12, count * 4);
  return Uint32Array.from({ length: count }, (_, sample) => data.readUInt32BE(stsz.start + 12 + sample * 4));
}

/** 8.7.4 and 8.7.5: where each sample is, from the offsets of chunks and the number of samples in each. */
export function readOffsets(data: Buffer, stbl: Box, sizes: Uint32Array): Float64Array | null {
  const stsc = find(data, ["stsc"], stbl);
  const stco = find(data, ["stco"], stbl);
  const co64 = find(data, ["co64"], stbl);
  const table = co64 ?? stco;
  if (!stsc || !table) return null;
  const width = co64 ? 8 : 4;
  const chunks = uint32(data, table, 4);
  field(table, 8, chunks * width);
  const runs = uint32(data, stsc, 4);
  field(stsc, 8, runs * 12);
  const firstOf = (run: number) => (run < runs ? data.readUInt32BE(stsc.start + 8 + run * 12) : chunks + 1);
  const offsets = new Float64Array(sizes.length);
  let sample = 0;
  for (let run = 0; run < runs; run++) {
    // They ascend, so that the loops end after as many steps as there are chunks.
    if (firstOf(run) < 1 || firstOf(run + 1) <= firstOf(run)) return null;
    const each = data.readUInt32BE(stsc.start + 8 + run * 12 + 4);
    for (let chunk = firstOf(run); chunk < Math.min(firstOf(run + 1), chunks + 1); chunk++) {
      const at = table.start + 8 + (chunk - 1) * width;
      let offset = co64 ? Number(data.readBigUInt64BE(at)) : data.readUInt32BE(at);
      for (let number = 0; number < each && sample < sizes.length; number++, sample++) {
        offsets[sample] = offset;
        offset += sizes[sample] as number;
      }
    }
  }
  return sample === sizes.length ? offsets : null;
}

/** 8.6.1.2 and 8.6.1.3. */
export function readTimes(
  data: Buffer,
  stbl: Box,
  { count, scale, shift }: { count: number; scale: number; shift: number },
): { dts: Float64Array; pts: Float64Array; ticks: number; shownUntil: number } | null {
  const stts = find(data, ["stts"], stbl);
  if (!stts) return null;
  const dts = new Float64Array(count);
  let time = 0;
  let sample = 0;
  eachRun(data, stts, (length, delta) => {
    for (let number = 0; number < length && sample < count; number++, sample++) {
      dts[sample] = time / scale + shift;
      time += delta;
    }
  });
  if (sample !== count) return null;
  const pts = dts.slice();
  const ctts = find(data, ["ctts"], stbl);
  sample = 0;
  // Signed in the second version, and in practice in the first one.
  if (ctts)
    eachRun(data, ctts, (length, offset) => {
      for (let number = 0; number < length && sample < count; number++, sample++)
        pts[sample] = (dts[sample] as number) + (offset | 0) / scale;
    });
  const end = time / scale + shift;
  // Frames that are stored out of order are shown later than they are decoded. How long each is shown is only known of the last one.
  const lastShown = pts.reduce((most, seconds) => Math.max(most, seconds), Number.NEGATIVE_INFINITY);
  const shownUntil = lastShown + (end - (dts[count - 1] as number));
  return { dts, pts, ticks: time, shownUntil: count > 0 ? shownUntil : end };
}

/** Entries of two numbers: how many samples, and their value. */
function eachRun(data: Buffer, box: Box, use: (length: number, value: number) => void): void {
  const runs = uint32(data, box, 4);
  field(box, 8, runs * 8);
  for (let run = 0; run < runs; run++)
    use(data.readUInt32BE(box.start + 8 + run * 8), data.readUInt32BE(box.start + 12 + run * 8));
}

/** 8.6.2: without a table every sample is a sync sample. */
function readKeys(data: Buffer, stbl: Box, count: number): Uint8Array {
  const stss = find(data, ["stss"], stbl);
  const keys = new Uint8Array(count);
  if (!stss) return keys.fill(1);
  const entries = uint32(data, stss, 4);
  field(stss, 8, entries * 4);
  for (let entry = 0; entry < entries; entry++) keys[data.readUInt32BE(stss.start + 8 + entry * 4) - 1] = 1;
  return keys;
}

/** Where samples `from` to before `to` are stored. */
export const rangesOf = ({ offsets, sizes }: TrackIndex, from: number, to: number): ByteRange[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, at) => [offsets[from + at] as number, sizes[from + at] as number]);
