import { type CicpColors, codecOfSampleEntry, type HdrFormat, hdrOfCicp } from "#lib/codecs";
import { type Box, boxes, field, find, flagsOf, isLong, uint16, uint32 } from "./boxes.ts";

/** Reads those parts of ISO/IEC 14496-12 that show what the encoder wrote into an init segment and its fragments. */

export type InitSegment = {
  timescale: number;
  codec: string;
  width: number;
  height: number;
  /** As its `colr` box states; null for SDR and for audio. */
  hdr: HdrFormat | null;
  /** How much earlier its edit list presents everything than the segments' timestamps, in its timescale. */
  delay: number;
};

/** The fields of a sample entry before its boxes (8.5.2, 12.1.3, 12.2.3). */
const SAMPLE_ENTRY_BYTES = { video: 78, audio: 28 };

/** The first sample entry of an init segment; `fieldsEnd` is where its boxes begin. Null for a codec that is not in the registry. */
export function sampleEntryOf(data: Buffer): (Box & { fieldsEnd: number }) | null {
  const stsd = find(data, ["moov", "trak", "mdia", "minf", "stbl", "stsd"]);
  const entry: Box | undefined = stsd ? boxes(data, stsd.start + 8, stsd.end).next().value : undefined;
  const codec = entry && codecOfSampleEntry(entry.type);
  return codec ? { ...entry, fieldsEnd: entry.start + SAMPLE_ENTRY_BYTES[codec.kind] } : null;
}

/** The content of the box that configures the decoder; null without one, and for a codec that is not in the registry. */
export function configurationOf(data: Buffer): Buffer | null {
  const entry = sampleEntryOf(data);
  const codec = entry && codecOfSampleEntry(entry.type);
  if (!entry || !codec) return null;
  const found = boxes(data, entry.fieldsEnd, entry.end).find(({ type }) => type === codec.configurationBox);
  return found ? data.subarray(found.start, found.end) : null;
}

/** Codec (RFC 6381), size and timescale from an init segment. Throws Error when its codec is not in the registry. */
export function readInit(data: Buffer): InitSegment {
  const media = ["moov", "trak", "mdia"];
  const mdhd = find(data, [...media, "mdhd"]);
  const stsd = find(data, [...media, "minf", "stbl", "stsd"]);
  const entry = stsd && boxes(data, stsd.start + 8, stsd.end).next().value;
  if (!mdhd || !entry) throw new Error("The init segment has no sample description.");
  const codec = codecOfSampleEntry(entry.type);
  if (!codec) throw new Error(`The init segment has the unsupported sample entry ${entry.type}.`);
  const { kind, configurationBox } = codec;
  const children = boxes(data, entry.start + SAMPLE_ENTRY_BYTES[kind], entry.end);
  const configuration = children.find((box) => box.type === configurationBox);
  if (!configuration) throw new Error(`The init segment has no ${configurationBox}.`);
  const colors = kind === "video" ? readColors(data).colors : null;
  return {
    timescale: uint32(data, mdhd, isLong(data, mdhd) ? 20 : 12),
    delay: delayOf(data),
    codec: codec.codecString(data.subarray(configuration.start, configuration.end), entry.type, colors),
    hdr: colors && hdrOfCicp(colors.transfer),
    width: kind === "video" ? uint16(data, entry, 24) : 0,
    height: kind === "video" ? uint16(data, entry, 26) : 0,
  };
}

/**
 * Size and the colors that the `colr` box of type `nclx` states (12.1.5), as values of ISO/IEC 23091-2; null without one.
 * All zero and null where there is no video.
 */
export function readColors(data: Buffer): {
  width: number;
  height: number;
  colors: CicpColors | null;
} {
  const stsd = find(data, ["moov", "trak", "mdia", "minf", "stbl", "stsd"]);
  const entry = stsd && boxes(data, stsd.start + 8, stsd.end).next().value;
  if (!entry || entry.end - entry.start < SAMPLE_ENTRY_BYTES.video) return { width: 0, height: 0, colors: null };
  const colr = boxes(data, entry.start + SAMPLE_ENTRY_BYTES.video, entry.end).find(({ type }) => type === "colr");
  const isStated =
    colr && colr.end - colr.start >= 11 && data.toString("latin1", colr.start, colr.start + 4) === "nclx";
  return {
    width: uint16(data, entry, 24),
    height: uint16(data, entry, 26),
    colors: isStated
      ? {
          primaries: uint16(data, colr, 4),
          transfer: uint16(data, colr, 6),
          matrix: uint16(data, colr, 8),
          isFullRange: ((data[colr.start + 10] ?? 0) & 0x80) !== 0,
        }
      : null,
  };
}

/** The media time of the first edit that is not empty (8.6.6); 0 without one. */
function delayOf(data: Buffer): number {
  const elst = find(data, ["moov", "trak", "edts", "elst"]);
  if (!elst) return 0;
  const isWide = isLong(data, elst);
  const step = isWide ? 20 : 12;
  for (let at = elst.start + 8; at + step <= elst.end; at += step) {
    const time = isWide ? Number(data.readBigInt64BE(at + 8)) : data.readInt32BE(at + 4);
    if (time >= 0) return time;
  }
  return 0;
}

/** Enough bytes for a segment's styp and sidx, and for the part of its moof that describes the first sample. */
export const SEGMENT_HEAD_BYTES = 512;

/**
 * Joins two segments: appends the fragment of `next` to `segment` and includes it in its index. Null when one of them
 * has no index or no fragment, or the index cannot describe both. Throws Error when an index is truncated.
 */
export function joinSegments(segment: Buffer, next: Buffer): Buffer | null {
  const sidx = find(segment, ["sidx"]);
  const moof = find(next, ["moof"]);
  if (!sidx || !moof || !find(next, ["sidx"])) return null;
  const last = referencesOf(segment, sidx).at(-1);
  if (last === undefined) return null;
  const fragment = next.subarray(moof.start - 8);
  const size = segment.readUInt32BE(last) + fragment.length;
  const duration = segment.readUInt32BE(last + 4) + readSegmentTimes(next).duration;
  // 31 and 32 bits.
  if (size >= 2 ** 31 || duration >= 2 ** 32) return null;
  const joined = Buffer.concat([segment, fragment]);
  joined.writeUInt32BE(size, last);
  joined.writeUInt32BE(duration, last + 4);
  return joined;
}

/**
 * Moves a segment, in place, by `time` timescale units, and its fragments by `sequence` numbers: what a run over the
 * whole source would have written, for a segment of a run that started later (8.8.5, 8.8.12, 8.16.3). Throws Error when
 * a time does not fit into its field.
 */
export function shiftSegment(segment: Buffer, { time, sequence }: { time: number; sequence: number }): void {
  for (const box of boxes(segment, 0, segment.length)) {
    if (box.type === "sidx") addTime(segment, box, 12, time);
    if (box.type !== "moof") continue;
    for (const part of boxes(segment, box.start, box.end)) {
      if (part.type === "mfhd") {
        const at = field(part, 4, 4);
        segment.writeUInt32BE(segment.readUInt32BE(at) + sequence, at);
      }
      if (part.type !== "traf") continue;
      for (const child of boxes(segment, part.start, part.end))
        if (child.type === "tfdt") addTime(segment, child, 4, time);
    }
  }
}

/** The field has 64 bits in the long layout, else 32. */
function addTime(data: Buffer, box: Box, offset: number, time: number): void {
  if (isLong(data, box)) {
    const at = field(box, offset, 8);
    data.writeBigUInt64BE(data.readBigUInt64BE(at) + BigInt(time), at);
  } else {
    const at = field(box, offset, 4);
    data.writeUInt32BE(data.readUInt32BE(at) + time, at);
  }
}

/** 8.16.3: positions of entries of twelve bytes: the size with a flag bit, the duration, and the type of start. */
function referencesOf(data: Buffer, sidx: Box): number[] {
  const countAt = isLong(data, sidx) ? 30 : 22;
  const count = uint16(data, sidx, countAt);
  return Array.from({ length: count }, (_, index) => field(sidx, countAt + 2 + index * 12, 12));
}

/** Start and duration in timescale units, from the segment's own index (sidx). Throws Error when there is none. */
export function readSegmentTimes(head: Buffer): { timescale: number; start: number; duration: number } {
  const sidx = find(head, ["sidx"]);
  if (!sidx) throw new Error("The segment has no sidx.");
  const start = isLong(head, sidx) ? Number(head.readBigUInt64BE(field(sidx, 12, 8))) : uint32(head, sidx, 12);
  const duration = referencesOf(head, sidx).reduce((sum, at) => sum + head.readUInt32BE(at + 4), 0);
  return { timescale: uint32(head, sidx, 8), start, duration };
}

/**
 * Byte range of a segment's first fragment up to the end of its first sample: all that a player needs to show that
 * frame. Null when the sample size is unknown.
 */
export function readFirstSample(head: Buffer): { offset: number; bytes: number; isSync: boolean } | null {
  const moof = find(head, ["moof"]);
  const tfhd = find(head, ["moof", "traf", "tfhd"]);
  const trun = find(head, ["moof", "traf", "trun"]);
  if (!moof || !tfhd || !trun) return null;
  // 8.8.7 and 8.8.8: the flags determine which fields are present, in this order.
  const flags = flagsOf(head, trun);
  if (!(flags & 0x1)) return null;
  const isSized = flags & 0x200;
  const box = isSized ? trun : tfhd;
  const offset = isSized
    ? 12 + (flags & 0x4 ? 4 : 0) + (flags & 0x100 ? 4 : 0)
    : defaultSizeOffset(flagsOf(head, tfhd));
  // It may be after the part of the segment that was read.
  if (offset === null || box.start + offset + 4 > box.end) return null;
  const dataOffset = head.readInt32BE(field(trun, 8, 4));
  const flagsAt = sampleFlagsOffset(flags);
  const isKnown = flagsAt !== null && trun.start + flagsAt + 4 <= trun.end;
  const isSync = !isKnown || (uint32(head, trun, flagsAt) & NON_SYNC) === 0;
  return { offset: moof.start - 8, bytes: dataOffset + uint32(head, box, offset), isSync };
}

/** 8.8.3.1: sample_is_non_sync_sample. */
const NON_SYNC = 0x10000;

/** Where a trun has the flags of its first sample; null where it does not. */
function sampleFlagsOffset(flags: number): number | null {
  if (flags & 0x4) return 12;
  return flags & 0x400 ? 12 + (flags & 0x100 ? 4 : 0) + (flags & 0x200 ? 4 : 0) : null;
}

function defaultSizeOffset(flags: number): number | null {
  if (!(flags & 0x10)) return null;
  return 8 + (flags & 0x1 ? 8 : 0) + (flags & 0x2 ? 4 : 0) + (flags & 0x8 ? 4 : 0);
}
