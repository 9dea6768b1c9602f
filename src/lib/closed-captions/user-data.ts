/**
 * Closed captions in the supplemental data of H.264 and HEVC, and in the user data of MPEG-2 (ATSC A/53 Part 4, 6.2.3; the same
 * bytes in SCTE 128). Samples come from strangers: nothing is read beyond them, what they contain is limited, and the work is linear
 * in their bytes.
 */

/** Byte pairs of CEA-608, by the field of the frame that they belong to, and bytes of packets of CEA-708. */
export type CaptionBytes = { first: number[]; second: number[]; packets: PacketBytes[] };
/** Two bytes of a packet. */
export type PacketBytes = { isStart: boolean; bytes: readonly [number, number] };

/** A frame has 31 pairs at most; a unit of captions has some hundred bytes. */
const MAX_SEI_BYTES = 4096;
const MAX_UNITS = 512;
/** Two fields of 31 pairs, twice: more has no encoder. It limits what waits for frames that are shown before. */
const MAX_PAIRS = 124;
const USER_DATA = 4;
/** United States, ATSC, "GA94", and the type of captions. */
const CAPTIONS = Buffer.from([0xb5, 0x00, 0x31, 0x47, 0x41, 0x39, 0x34, 0x03]);
const VALID = 0x04;
const PACKET_DATA = 2;
const PACKET_START = 3;

/** Codecs whose captions are read. */
export type CaptionedCodec = keyof typeof payloadsIn;
export const isCaptioned = (codec: string): codec is CaptionedCodec => Object.hasOwn(payloadsIn, codec);

/** What follows the identification of captions in each message of an access unit, with the codecs named as by ffmpeg. */
const payloadsIn = {
  h264: (sample: Buffer) =>
    seiPayloads(sample, { headerBytes: 1, typeOf: (head) => head & 0x1f, types: unitTypes.h264 }),
  hevc: (sample: Buffer) =>
    seiPayloads(sample, { headerBytes: 2, typeOf: (head) => (head >> 1) & 0x3f, types: unitTypes.hevc }),
  mpeg2video: userDataPayloads,
};

/** The types of the NAL units that may have captions, before or after the frame; none for a codec without such units. */
export const unitTypes: Readonly<Record<CaptionedCodec, readonly number[]>> = {
  h264: [6],
  hevc: [39, 40],
  mpeg2video: [],
};

/**
 * The captions of an access unit; null without any. NAL units have their lengths in 4 bytes, or start codes (ITU-T H.264, annex
 * B).
 * @example
 * // An access unit delimiter, without any message.
 * captionBytes(Buffer.of(0, 0, 0, 2, 9, 16), "h264") // => null
 */
export function captionBytes(sample: Buffer, codec: CaptionedCodec): CaptionBytes | null {
  let found: CaptionBytes | null = null;
  for (const payload of payloadsIn[codec](sample)) {
    found ??= { first: [], second: [], packets: [] };
    if (pairsOf(found) < MAX_PAIRS) readPairs(payload, found);
  }
  return found;
}

const pairsOf = ({ first, second, packets }: CaptionBytes) => (first.length + second.length) / 2 + packets.length;

type UnitKind = { headerBytes: number; typeOf: (head: number) => number; types: readonly number[] };

function* seiPayloads(sample: Buffer, { headerBytes, typeOf, types }: UnitKind): Generator<Buffer> {
  for (const unit of isByteStream(sample) ? startedUnits(sample) : countedUnits(sample))
    if (unit.length > 0 && types.includes(typeOf(unit[0] as number)) && unit.length <= MAX_SEI_BYTES)
      yield* userData(withoutEscapes(unit.subarray(headerBytes)));
}

/** Not a length: no unit has only one byte. */
const isByteStream = (sample: Buffer) => sample.length > 4 && sample.readUInt32BE(0) === 1;

function* countedUnits(sample: Buffer): Generator<Buffer> {
  for (let at = 0, units = 0; at + 4 < sample.length && units < MAX_UNITS; units++) {
    const from = at + 4;
    at = from + sample.readUInt32BE(at);
    if (at > sample.length || at <= from) return;
    yield sample.subarray(from, at);
  }
}

const START_CODE = Buffer.from([0, 0, 1]);

/** What follows each start code, without the zeros before the next one. */
function* startedUnits(sample: Buffer): Generator<Buffer> {
  let at = sample.indexOf(START_CODE);
  for (let units = 0; at >= 0 && units < MAX_UNITS; units++) {
    const from = at + START_CODE.length;
    at = sample.indexOf(START_CODE, from);
    yield sample.subarray(from, at < 0 ? sample.length : at);
  }
}

/** ISO/IEC 13818-2, table 6-1. */
const USER_DATA_START = Buffer.from([0, 0, 1, 0xb2]);
const A53 = CAPTIONS.subarray(3);

/** The user data of frames (6.2.2.2.2); two fields of a frame have their own. */
function* userDataPayloads(sample: Buffer): Generator<Buffer> {
  let at = sample.indexOf(USER_DATA_START);
  for (let units = 0; at >= 0 && units < MAX_UNITS; units++) {
    const from = at + USER_DATA_START.length;
    const head = sample.subarray(from, from + A53.length);
    if (head.equals(A53)) yield sample.subarray(from + A53.length, from + MAX_SEI_BYTES);
    at = sample.indexOf(USER_DATA_START, from);
  }
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
const readPairs = (data: Buffer, into: CaptionBytes): void =>
  readTriples(data.subarray(2), (data[0] ?? 0) & 0x1f, into);

/** So many times three bytes: whether they are valid and of which kind, and a pair. */
export function readTriples(data: Buffer, count: number, into: CaptionBytes): void {
  for (let at = 0, pair = 0; pair < count && at + 3 <= data.length; pair++, at += 3) {
    const head = data[at] as number;
    if ((head & VALID) === 0) continue;
    const type = head & 3;
    const bytes = [data[at + 1] as number, data[at + 2] as number] as const;
    if (type >= PACKET_DATA) into.packets.push({ isStart: type === PACKET_START, bytes });
    else (type === 0 ? into.first : into.second).push(...bytes);
  }
}
