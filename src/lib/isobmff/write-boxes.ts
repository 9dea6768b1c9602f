/** Writes boxes of ISO/IEC 14496-12, 4.2. */

/**
 * A box with its header.
 * @example
 * box("free", Buffer.of(1, 2)).toString("latin1") // => "\0\0\0\x0afree\x01\x02"
 */
export function box(type: string, ...contents: Uint8Array[]): Buffer {
  const size = contents.reduce((sum, { length }) => sum + length, 8);
  return Buffer.concat([words(size), Buffer.from(type, "latin1"), ...contents], size);
}

/** A box with version and flags. */
export const fullBox = (type: string, version: number, flags: number, ...contents: Uint8Array[]): Buffer =>
  box(type, words(version * 2 ** 24 + flags), ...contents);

/** 32 bits each, with or without a sign. */
export function words(...values: number[]): Buffer {
  const data = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) data.writeInt32BE(value | 0, index * 4);
  return data;
}

/** 16 bits each, unsigned. */
export function shorts(...values: number[]): Buffer {
  const data = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) data.writeUInt16BE(value & 0xffff, index * 2);
  return data;
}

/** 64 bits, unsigned. */
export function long(value: number): Buffer {
  const data = Buffer.alloc(8);
  data.writeBigUInt64BE(BigInt(value));
  return data;
}

export const fourCharacters = (...codes: string[]): Buffer => Buffer.from(codes.join(""), "latin1");

/** Size of the result of `segmentIndex`. */
export const SEGMENT_INDEX_BYTES = 52;

/**
 * The `sidx` of a segment (8.16.3): one reference to all of its fragments, which begin with a sync sample (SAP type 1).
 * `start` is its earliest presentation time. `bytes` are those of the fragments, below 2^31.
 */
export const segmentIndex = (segment: {
  trackId: number;
  timescale: number;
  start: number;
  duration: number;
  bytes: number;
}): Buffer =>
  fullBox(
    "sidx",
    1,
    0,
    words(segment.trackId, segment.timescale),
    long(segment.start),
    long(0),
    words(1, segment.bytes, segment.duration, 0x90000000),
  );
