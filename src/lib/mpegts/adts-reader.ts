import { RejectedMedia } from "#lib/publishing";

/** adts_fixed_header and adts_variable_header (ISO/IEC 14496-3, 1.A.3.2.1, 1.A.3.2.2), without and with a CRC. */
const HEADER_BYTES = 7;
const CRC_BYTES = 2;
/** Decoded samples of a raw data block. */
export const BLOCK_SAMPLES = 1024;
/** samplingFrequencyIndex (1.6.3.4). */
export const SAMPLE_RATES: readonly number[] = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
];

export type AudioFrame = {
  /** Seconds from the first frame that begins in the packet. */
  offsetSeconds: number;
  durationSeconds: number;
  /** One raw data block. */
  data: Buffer;
  /** AudioSpecificConfig (1.6.2.1). */
  configuration: Buffer;
};

type Header = { bytes: number; headerBytes: number; rate: number; configuration: Buffer };

/** Reads AAC with ADTS headers. Frames may continue in the next packet. */
export class AdtsReader {
  #rest: Buffer = Buffer.alloc(0);
  /** False after something was lost: bytes that look like a header may be of a frame's content. */
  #isSynchronized = false;

  /** The frames that begin in the packet; a frame that began in the one before is the first, at 0 if none is known. */
  read(packet: Buffer): AudioFrame[] {
    const carried = this.#rest.length;
    const data = carried > 0 ? Buffer.concat([this.#rest, packet]) : packet;
    const frames: AudioFrame[] = [];
    let at = 0;
    let seconds = 0;
    while (at + HEADER_BYTES <= data.length) {
      const header = readHeader(data, at);
      if (header === null || !(this.#isSynchronized || isFollowed(data, at, header))) {
        this.#isSynchronized = false;
        // Bytes that are no frame.
        at = nextSyncword(data, at + 1);
        continue;
      }
      if (at + header.bytes > data.length) break;
      this.#isSynchronized = true;
      const duration = BLOCK_SAMPLES / header.rate;
      // The timestamp of a packet is that of the first frame that begins in it (ISO/IEC 13818-1, 2.4.3.7).
      const offsetSeconds = at < carried ? -duration : seconds;
      if (at >= carried) seconds += duration;
      const content = data.subarray(at + header.headerBytes, at + header.bytes);
      if (content.length > 0)
        frames.push({
          offsetSeconds,
          durationSeconds: duration,
          data: content,
          configuration: header.configuration,
        });
      at += header.bytes;
    }
    // At most a frame, whose length has 13 bits.
    this.#rest = Buffer.from(data.subarray(at));
    return frames;
  }

  /** What follows does not continue what was read. */
  reset(): void {
    this.#rest = Buffer.alloc(0);
    this.#isSynchronized = false;
  }
}

/** Whether another header, or the end, is where the frame at `at` ends. */
function isFollowed(data: Buffer, at: number, { bytes, configuration }: Header): boolean {
  const end = at + bytes;
  if (end + HEADER_BYTES > data.length) return end <= data.length;
  return readHeader(data, end)?.configuration.equals(configuration) ?? false;
}

/** Position of the next syncword with layer 0, or of its first byte at the end; the length when there is none. */
function nextSyncword(data: Buffer, from: number): number {
  let at = from;
  while (
    at < data.length &&
    !(data[at] === 0xff && (at + 1 === data.length || ((data[at + 1] as number) & 0xf6) === 0xf0))
  )
    at++;
  return at;
}

/** Null when there is no header at `at`, or one that no encoder writes. */
function readHeader(data: Buffer, at: number): Header | null {
  const first = data.readUInt16BE(at);
  const second = data.readUInt16BE(at + 2);
  // syncword, and layer 0.
  if (first >> 4 !== 0xfff || (first & 0x6) !== 0) return null;
  const headerBytes = HEADER_BYTES + (first & 1 ? 0 : CRC_BYTES);
  const objectType = (second >> 14) + 1;
  const rateIndex = (second >> 10) & 0xf;
  const channels = (second >> 6) & 7;
  const rate = SAMPLE_RATES[rateIndex];
  const bytes = (data.readUInt32BE(at + 3) >>> 13) & 0x1fff;
  if (rate === undefined || bytes < headerBytes) return null;
  if (((data[at + 6] as number) & 3) !== 0)
    throw new RejectedMedia("Audio frames with several raw data blocks are not supported. Use another AAC encoder.");
  const configuration = Buffer.alloc(2);
  configuration.writeUInt16BE((objectType << 11) | (rateIndex << 7) | (channels << 3));
  return { bytes, headerBytes, rate, configuration };
}
