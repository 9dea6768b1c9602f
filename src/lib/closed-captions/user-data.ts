/**
 * Closed captions in the supplemental data of H.264 and HEVC (ATSC A/53 Part 4, 6.2.3; the same bytes in SCTE 128). Samples
 * come from strangers: nothing is read beyond them, and the work is linear in the bytes of their SEI units.
 */

/** Byte pairs of CEA-608, by the field of the frame that they belong to, and bytes of packets of CEA-708. */
export type CaptionBytes = { first: number[]; second: number[]; packets: PacketBytes[] };
/** Two bytes of a packet. */
export type PacketBytes = { isStart: boolean; bytes: readonly [number, number] };

/** A frame has 31 pairs at most; a unit of captions has some hundred bytes. */
const MAX_SEI_BYTES = 4096;
const MAX_UNITS = 512;
const USER_DATA = 4;
/** United States, ATSC, "GA94", and the type of captions. */
const CAPTIONS = Buffer.from([0xb5, 0x00, 0x31, 0x47, 0x41, 0x39, 0x34, 0x03]);
const VALID = 0x04;
const PACKET_DATA = 2;
const PACKET_START = 3;

/** Codecs whose captions are read. */
export type CaptionedCodec = keyof typeof isSei;
export const isCaptioned = (codec: string): codec is CaptionedCodec => codec in isSei;

const isSei = {
  h264: (unit: Buffer) => ((unit[0] as number) & 0x1f) === 6,
  // Before the frame, or after it.
  hevc: (unit: Buffer) => [39, 40].includes(((unit[0] as number) >> 1) & 0x3f),
};
const HEADER_BYTES = { h264: 1, hevc: 2 };

/** The captions of an access unit, whose NAL units have their lengths in 4 bytes; null without any. */
export function captionBytes(sample: Buffer, codec: CaptionedCodec): CaptionBytes | null {
  let found: CaptionBytes | null = null;
  for (let at = 0, units = 0; at + 4 < sample.length && units < MAX_UNITS; units++) {
    const from = at + 4;
    at = from + sample.readUInt32BE(at);
    if (at > sample.length || at <= from) break;
    const unit = sample.subarray(from, at);
    if (!isSei[codec](unit) || unit.length > MAX_SEI_BYTES) continue;
    for (const payload of userData(withoutEscapes(unit.subarray(HEADER_BYTES[codec])))) {
      found ??= { first: [], second: [], packets: [] };
      readPairs(payload, found);
    }
  }
  return found;
}

/** Without the bytes that keep start codes from occurring (ISO/IEC 14496-10, 7.4.1). */
function withoutEscapes(escaped: Buffer): Buffer {
  const plain = Buffer.allocUnsafe(escaped.length);
  let length = 0;
  let zeros = 0;
  for (const byte of escaped) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    plain[length++] = byte;
  }
  return plain.subarray(0, length);
}

/** The messages of captions in an SEI unit (7.3.2.3.1), from after their identification. */
function* userData(unit: Buffer): Generator<Buffer> {
  let at = 0;
  /** A number of bytes of 255, and one that is smaller. */
  const number = () => {
    let sum = 0;
    for (; unit[at] === 0xff; at++) sum += 0xff;
    return sum + (unit[at++] ?? 0);
  };
  // The last byte ends the unit.
  while (at + 2 < unit.length) {
    const type = number();
    const size = number();
    const payload = unit.subarray(at, at + size);
    at += size;
    if (type === USER_DATA && payload.length === size && payload.subarray(0, CAPTIONS.length).equals(CAPTIONS))
      yield payload.subarray(CAPTIONS.length);
  }
}

/** `cc_data` (A/53 Part 4, table 6.10): a count, a reserved byte, and three bytes for each pair. */
function readPairs(data: Buffer, into: CaptionBytes): void {
  const count = (data[0] ?? 0) & 0x1f;
  for (let at = 2, pair = 0; pair < count && at + 3 <= data.length; pair++, at += 3) {
    const head = data[at] as number;
    if ((head & VALID) === 0) continue;
    const type = head & 3;
    const bytes = [data[at + 1] as number, data[at + 2] as number] as const;
    if (type >= PACKET_DATA) into.packets.push({ isStart: type === PACKET_START, bytes });
    else (type === 0 ? into.first : into.second).push(...bytes);
  }
}
