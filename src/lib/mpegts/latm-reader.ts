import { BitReader } from "#lib/codecs";
import { RejectedMedia } from "#lib/publishing";
import { type AudioFrame, BLOCK_SAMPLES, SAMPLE_RATES } from "./adts-reader.ts";

/** AudioSyncStream (ISO/IEC 14496-3, 1.7.2): a syncword of 11 bits, and the length in 13 bits. */
const HEADER_BYTES = 3;
const SYNCWORD = 0x2b7;
/** audioObjectType (1.5.1.1). */
const TYPE = { lc: 2, sbr: 5, ps: 29 } as const;
const EXPLICIT_RATE = 15;
const OTHER_ENCODER = "Use AAC with ADTS headers, or another AAC encoder.";

/** What an element states for those that follow it. */
type StreamMux = { subFrames: number; configuration: Buffer; durationSeconds: number };

/** Reads AAC in LATM with LOAS headers: one program with one layer, as encoders for television write it. Elements may continue in the next packet. */
export class LatmReader {
  #rest: Buffer = Buffer.alloc(0);
  #isSynchronized = false;
  #mux: StreamMux | null = null;

  /** The frames of the elements that begin in the packet; those of an element that began in the one before come first, at 0 or earlier. */
  read(packet: Buffer): AudioFrame[] {
    const carried = this.#rest.length;
    const data = carried > 0 ? Buffer.concat([this.#rest, packet]) : packet;
    const frames: AudioFrame[] = [];
    let at = 0;
    let seconds = 0;
    while (at + HEADER_BYTES <= data.length) {
      const end = elementEnd(data, at);
      const isFollowed = end !== null && (end + HEADER_BYTES > data.length || elementEnd(data, end) !== null);
      if (end === null || !(this.#isSynchronized || isFollowed)) {
        this.#isSynchronized = false;
        at = nextSyncword(data, at + 1);
        continue;
      }
      if (end > data.length) break;
      this.#isSynchronized = true;
      const blocks = this.#readElement(data.subarray(at + HEADER_BYTES, end));
      const { configuration, durationSeconds = 0 } = this.#mux ?? {};
      for (const [index, block] of blocks.entries()) {
        const offsetSeconds = at < carried ? (index - blocks.length) * durationSeconds : seconds;
        if (at >= carried) seconds += durationSeconds;
        if (configuration && block.length > 0)
          frames.push({ offsetSeconds, durationSeconds, data: block, configuration });
      }
      at = end;
    }
    // At most an element, whose length has 13 bits.
    this.#rest = Buffer.from(data.subarray(at));
    return frames;
  }

  /** What follows does not continue what was read. */
  reset(): void {
    this.#rest = Buffer.alloc(0);
    this.#isSynchronized = false;
  }

  /** The blocks of an AudioMuxElement (1.7.3); none of a damaged one, or before a configuration. */
  #readElement(element: Buffer): Buffer[] {
    const reader = new BitReader(element);
    try {
      if (!reader.flag()) this.#mux = readStreamMux(reader, element);
      const mux = this.#mux;
      if (!mux) return [];
      return Array.from({ length: mux.subFrames }, () => readPayload(reader, element));
    } catch (error) {
      if (error instanceof RejectedMedia) throw error;
      return [];
    }
  }
}

/** Where the element at `at` ends; null without a syncword. */
function elementEnd(data: Buffer, at: number): number | null {
  const header = data.readUIntBE(at, HEADER_BYTES);
  return header >> 13 === SYNCWORD ? at + HEADER_BYTES + (header & 0x1fff) : null;
}

/** Position of the next syncword, or of its first byte at the end; the length when there is none. */
function nextSyncword(data: Buffer, from: number): number {
  let at = from;
  while (at < data.length && !(data[at] === 0x56 && (at + 1 === data.length || (data[at + 1] as number) >> 5 === 7)))
    at++;
  return at;
}

/** LatmGetValue (1.7.3). */
function readValue(reader: BitReader): number {
  const bytes = reader.bits(2) + 1;
  return reader.bits(8 * bytes);
}

/** PayloadLengthInfo and PayloadMux of the only stream (1.7.3), which are not aligned to bytes. Throws Error at the end. */
function readPayload(reader: BitReader, element: Buffer): Buffer {
  let length = 0;
  let byte: number;
  do {
    byte = reader.bits(8);
    length += byte;
  } while (byte === 0xff);
  const block = bitsOf(element, reader.position, 8 * length);
  reader.skip(8 * length);
  return block;
}

/** StreamMuxConfig (1.7.3). Throws RejectedMedia for what cannot be packaged, and Error at its end. */
function readStreamMux(reader: BitReader, element: Buffer): StreamMux {
  const version = reader.bits(1);
  if (version === 1 && reader.flag()) reject("a version that is not supported");
  if (version === 1) readValue(reader);
  const isSameTiming = reader.flag();
  const subFrames = reader.bits(6) + 1;
  const programs = reader.bits(4);
  const layers = reader.bits(3);
  if (!isSameTiming || programs > 0 || layers > 0) reject("several programs or layers");
  const configBits = version === 1 ? readValue(reader) : null;
  const start = reader.position;
  const { rate } = readAudioConfig(reader);
  const bits = reader.position - start;
  const configuration = bitsOf(element, start, bits);
  if (configBits !== null && configBits < bits) reject("a configuration that is shorter than its content");
  if (configBits !== null) reader.skip(configBits - bits);
  if (reader.bits(3) !== 0) reject("frames of a constant length");
  reader.skip(8);
  // The length of other data, which follow the payload.
  if (reader.flag()) {
    if (version === 1) readValue(reader);
    else while (reader.flag()) reader.skip(8);
    if (version === 0) reader.skip(8);
  }
  if (reader.flag()) reader.skip(8);
  return { subFrames, configuration, durationSeconds: BLOCK_SAMPLES / rate };
}

/** AudioSpecificConfig of AAC-LC, also with explicit SBR or PS (1.6.2.1). Returns the rate of its blocks of 1024 samples. */
function readAudioConfig(reader: BitReader): { rate: number } {
  const type = reader.bits(5);
  const rate = readRate(reader);
  const channels = reader.bits(4);
  if (type === TYPE.sbr || type === TYPE.ps) {
    readRate(reader);
    if (reader.bits(5) !== TYPE.lc) reject("a profile that is not supported");
  } else if (type !== TYPE.lc) reject("a profile that is not supported");
  // GASpecificConfig (4.4.1): 1024 samples, no core coder, no extension.
  const isShort = reader.flag();
  const hasCore = reader.flag();
  const isExtended = reader.flag();
  if (isShort || hasCore || isExtended || channels === 0) reject("an unusual configuration");
  return { rate };
}

function readRate(reader: BitReader): number {
  const index = reader.bits(4);
  if (index === EXPLICIT_RATE) return reader.bits(24) || reject("a sample rate of 0");
  return SAMPLE_RATES[index] ?? reject("an unknown sample rate");
}

const reject = (what: string): never => {
  throw new RejectedMedia(`The AAC in LATM has ${what}. ${OTHER_ENCODER}`);
};

/** Bits of `data` as bytes, with zeros at the end. Throws Error where there are not so many. */
function bitsOf(data: Buffer, start: number, count: number): Buffer {
  if (start + count > 8 * data.length) throw new Error("The element is truncated.");
  const bytes = Buffer.alloc(Math.ceil(count / 8));
  const first = start >> 3;
  const shift = start & 7;
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = ((data[first + at] as number) << shift) | ((data[first + at + 1] ?? 0) >> (8 - shift));
  const unused = 8 * bytes.length - count;
  if (unused > 0) bytes[bytes.length - 1] = ((bytes.at(-1) as number) >> unused) << unused;
  return bytes;
}
