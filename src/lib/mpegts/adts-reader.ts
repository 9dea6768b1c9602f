import { RejectedMedia } from "#lib/publishing";
import { type FrameHeader, FrameReader } from "./frame-reader.ts";

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

type Header = FrameHeader & { headerBytes: number; configuration: Buffer };

/** Reads AAC with ADTS headers. Frames may continue in the next packet. */
export class AdtsReader {
  readonly #frames = new FrameReader<Header>({
    headerBytes: HEADER_BYTES,
    firstByte: 0xff,
    readHeader,
    isSame: (one, other) => one.configuration.equals(other.configuration),
  });

  /** As FrameReader reads. */
  read(packet: Buffer): AudioFrame[] {
    return this.#frames.read(packet).flatMap(({ offsetSeconds, header, data }) => {
      const { headerBytes, seconds: durationSeconds, configuration } = header;
      const content = data.subarray(headerBytes);
      return content.length === 0 ? [] : [{ offsetSeconds, durationSeconds, data: content, configuration }];
    });
  }

  reset(): void {
    this.#frames.reset();
  }
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
  return { bytes, headerBytes, seconds: BLOCK_SAMPLES / rate, configuration };
}
