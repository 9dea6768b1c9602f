/** Just enough of ISO/IEC 14496-12 to read back what the encoder really wrote into an init segment and its fragments. */

type Box = { type: string; start: number; end: number };

/** The boxes between two positions; stops quietly at a torn end. */
function* boxes(data: Buffer, start: number, end: number): Generator<Box> {
  let at = start;
  while (at + 8 <= end) {
    let size = data.readUInt32BE(at);
    let header = 8;
    if (size === 1 && at + 16 <= end) {
      size = Number(data.readBigUInt64BE(at + 8));
      header = 16;
    } else if (size === 0) size = end - at;
    if (size < header) return;
    yield { type: data.toString("latin1", at + 4, at + 8), start: at + header, end: Math.min(at + size, end) };
    at += size;
  }
}

function find(data: Buffer, path: string[]): Box | null {
  let box: Box = { type: "", start: 0, end: data.length };
  for (const type of path) {
    const next = boxes(data, box.start, box.end).find((child) => child.type === type);
    if (!next) return null;
    box = next;
  }
  return box;
}

export type InitSegment = {
  timescale: number;
  codec: string;
  width: number;
  height: number;
  /** By how much its edit list has everything shown earlier than the segments say, in its timescale. */
  delay: number;
};

/** Codec (RFC 6381), size and timescale from an init segment. Throws when it holds neither avc1 nor mp4a. */
export function readInit(data: Buffer): InitSegment {
  const media = ["moov", "trak", "mdia"];
  const mdhd = find(data, [...media, "mdhd"]);
  const stsd = find(data, [...media, "minf", "stbl", "stsd"]);
  const entry = stsd && boxes(data, stsd.start + 8, stsd.end).next().value;
  if (!mdhd || !entry) throw new Error("The init segment has no sample description.");
  const timescale = data.readUInt32BE(mdhd.start + (data[mdhd.start] === 1 ? 20 : 12));
  const delay = delayOf(data);
  if (entry.type === "avc1") {
    const avcC = boxes(data, entry.start + 78, entry.end).find((box) => box.type === "avcC");
    if (!avcC) throw new Error("The init segment has no avcC.");
    // Profile, constraint flags and level as they stand in the record (ISO/IEC 14496-15, 5.3.3.1). Of High, level 9 is
    // the 1b of tiny pictures (A.3.4), which browsers say that they cannot play; whoever plays 1.1 plays it.
    const [profile, flags, level = 0] = data.subarray(avcC.start + 1, avcC.start + 4);
    const codec = `avc1.${Buffer.from([profile ?? 0, flags ?? 0, level === 9 ? 11 : level]).toString("hex")}`;
    return {
      timescale,
      delay,
      codec,
      width: data.readUInt16BE(entry.start + 24),
      height: data.readUInt16BE(entry.start + 26),
    };
  }
  if (entry.type === "mp4a") {
    const esds = boxes(data, entry.start + 28, entry.end).find((box) => box.type === "esds");
    if (!esds) throw new Error("The init segment has no esds.");
    return {
      timescale,
      delay,
      codec: `mp4a.40.${audioObjectType(data.subarray(esds.start + 4, esds.end))}`,
      width: 0,
      height: 0,
    };
  }
  throw new Error(`The init segment holds ${entry.type}.`);
}

/** The media time of the first edit that is not empty (8.6.6); 0 without any. */
function delayOf(data: Buffer): number {
  const elst = find(data, ["moov", "trak", "edts", "elst"]);
  if (!elst) return 0;
  const isLong = data[elst.start] === 1;
  const step = isLong ? 20 : 12;
  for (let at = elst.start + 8; at + step <= elst.end; at += step) {
    const time = isLong ? Number(data.readBigInt64BE(at + 8)) : data.readInt32BE(at + 4);
    if (time >= 0) return time;
  }
  return 0;
}

/** Walks the nested descriptors (ISO/IEC 14496-1, 7.2.6) down to the AudioSpecificConfig; its first five bits tell. */
function audioObjectType(data: Buffer): number {
  let at = 0;
  while (at + 2 < data.length) {
    const tag = data[at++];
    while (at < data.length && (data[at] as number) & 0x80) at++;
    at++;
    if (tag === 0x03) at += 3;
    else if (tag === 0x04) at += 13;
    else if (tag === 0x05) return (data[at] as number) >> 3;
    else break;
  }
  return 2;
}

/** Bytes that are enough to hold a segment's styp and sidx, and of its moof what tells of the first sample. */
export const SEGMENT_HEAD_BYTES = 512;

/**
 * A segment of two: the fragment of `next` behind those of `segment`, in whose index it is counted in. Null where one of
 * them has no index or no fragment.
 */
export function joinSegments(segment: Buffer, next: Buffer): Buffer | null {
  const sidx = find(segment, ["sidx"]);
  const moof = find(next, ["moof"]);
  if (!sidx || !moof || !find(next, ["sidx"])) return null;
  const fragment = next.subarray(moof.start - 8);
  const joined = Buffer.concat([segment, fragment]);
  const at = lastReference(joined, sidx);
  joined.writeUInt32BE(joined.readUInt32BE(at) + fragment.length, at);
  joined.writeUInt32BE(joined.readUInt32BE(at + 4) + readSegmentTimes(next).duration, at + 4);
  return joined;
}

/** 8.16.3: each is of twelve bytes: the size with a flag in front, the duration, and what kind of start it has. */
function lastReference(data: Buffer, sidx: Box): number {
  const countAt = sidx.start + (data[sidx.start] === 1 ? 30 : 22);
  return countAt + 2 + (data.readUInt16BE(countAt) - 1) * 12;
}

/** Start and duration in timescale units, from the segment's own index (sidx). Throws when it has none. */
export function readSegmentTimes(head: Buffer): { timescale: number; start: number; duration: number } {
  const sidx = find(head, ["sidx"]);
  if (!sidx) throw new Error("The segment has no sidx.");
  const isLong = head[sidx.start] === 1;
  const timescale = head.readUInt32BE(sidx.start + 8);
  const start = isLong ? Number(head.readBigUInt64BE(sidx.start + 12)) : head.readUInt32BE(sidx.start + 12);
  const countAt = sidx.start + (isLong ? 30 : 22);
  const count = head.readUInt16BE(countAt);
  let duration = 0;
  for (let i = 0; i < count; i++) duration += head.readUInt32BE(countAt + 2 + i * 12 + 4);
  return { timescale, start, duration };
}

/**
 * Where in a segment its first fragment lies up to the end of its first sample, in bytes: all that a player needs to
 * show that picture. Null when nothing says how large the sample is.
 */
export function readFirstSample(head: Buffer): { offset: number; bytes: number } | null {
  const moof = find(head, ["moof"]);
  const tfhd = find(head, ["moof", "traf", "tfhd"]);
  const trun = find(head, ["moof", "traf", "trun"]);
  if (!moof || !tfhd || !trun) return null;
  const flagsOf = (box: Box) => head.readUInt32BE(box.start) & 0xffffff;
  // 8.8.7 and 8.8.8: which fields there are, in this order, is told by the flags.
  const flags = flagsOf(trun);
  if (!(flags & 0x1)) return null;
  const sized = flags & 0x200;
  const at = sized
    ? trun.start + 12 + (flags & 0x4 ? 4 : 0) + (flags & 0x100 ? 4 : 0)
    : defaultSizeAt(tfhd, flagsOf(tfhd));
  if (at === null || at + 4 > head.length) return null;
  return { offset: moof.start - 8, bytes: head.readInt32BE(trun.start + 8) + head.readUInt32BE(at) };
}

function defaultSizeAt(tfhd: Box, flags: number): number | null {
  if (!(flags & 0x10)) return null;
  return tfhd.start + 8 + (flags & 0x1 ? 8 : 0) + (flags & 0x2 ? 4 : 0) + (flags & 0x8 ? 4 : 0);
}
