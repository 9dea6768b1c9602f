/** Frames of audio that says itself where it ends: MPEG audio and AC-3. */

export type AudioFrameHeader = {
  /** The frame with its header. */
  bytes: number;
  /** Decoded samples of each channel; 0 of what belongs to the frame before. */
  samples: number;
  /** Samples per second. */
  rate: number;
  /** ffmpeg's name of such frames in a row, as a container. */
  format: "mp3" | "ac3" | "eac3";
};

/** Bytes that `readAudioHeader` needs. */
export const AUDIO_HEADER_BYTES = 6;

/** The header of a frame at `at`; null where none begins, or where it is incomplete. */
export type ReadAudioHeader = (data: Buffer, at: number) => AudioFrameHeader | null;

/** kbit/s by bitrate_index (ISO/IEC 11172-3, 2.4.2.3; 13818-3, 2.4.2.3). Index 0 is a free format. */
const KILOBITS = {
  layer1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  layer2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  layer3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  lowLayer1: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  lowOthers: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;
const MPEG_RATES = [44_100, 48_000, 32_000] as const;
/** By the ID of two bits: MPEG 2.5, reserved, 2 (13818-3), 1 (11172-3). */
const RATE_DIVISORS = [4, 0, 2, 1] as const;

/** MPEG-1 and MPEG-2 audio of layers I to III, not of free format. */
export const readMpegAudioHeader: ReadAudioHeader = (data, at) => {
  if (at + AUDIO_HEADER_BYTES > data.length || data.readUInt16BE(at) >> 5 !== 0x7ff) return null;
  const second = data[at + 1] as number;
  const third = data[at + 2] as number;
  const divisor = RATE_DIVISORS[(second >> 3) & 3] as number;
  const layer = 4 - ((second >> 1) & 3);
  const rate = (MPEG_RATES[(third >> 2) & 3] ?? 0) / divisor;
  if (divisor === 0 || layer === 4 || !rate) return null;
  const isLow = divisor > 1;
  const kilobits = kilobitsOf(layer, isLow)[third >> 4];
  if (!kilobits) return null;
  const padding = (third >> 1) & 1;
  const samples = layer === 1 ? 384 : layer === 3 && isLow ? 576 : 1152;
  const bytes =
    layer === 1
      ? (Math.floor((12_000 * kilobits) / rate) + padding) * 4
      : Math.floor((samples * 125 * kilobits) / rate) + padding;
  return { bytes, samples, rate, format: "mp3" };
};

function kilobitsOf(layer: number, isLow: boolean): readonly number[] {
  if (isLow) return layer === 1 ? KILOBITS.lowLayer1 : KILOBITS.lowOthers;
  return [KILOBITS.layer1, KILOBITS.layer2, KILOBITS.layer3][layer - 1] as readonly number[];
}

const AC3_SYNC = 0x0b77;
const AC3_RATES = [48_000, 44_100, 32_000] as const;
/** kbit/s by half of frmsizecod (ETSI TS 102 366, table 4.13). */
const AC3_KILOBITS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640] as const;
const AC3_SAMPLES = 1536;
const BLOCK_SAMPLES = 256;
/** Blocks by numblkscod (E.1.3.1.5). */
const BLOCKS = [1, 2, 3, 6] as const;
const DEPENDENT = 1;

/** AC-3 (ETSI TS 102 366, 4.3) and Enhanced AC-3 (annex E), whose dependent substreams count as frames without samples. */
export const readAc3Header: ReadAudioHeader = (data, at) => {
  if (at + AUDIO_HEADER_BYTES > data.length || data.readUInt16BE(at) !== AC3_SYNC) return null;
  const version = (data[at + 5] as number) >> 3;
  if (version > 16) return null;
  const fifth = data[at + 4] as number;
  const rateCode = fifth >> 6;
  if (version > 10) return enhancedHeader(data.readUInt16BE(at + 2), fifth);
  const kilobits = AC3_KILOBITS[(fifth & 0x3f) >> 1];
  const base = AC3_RATES[rateCode];
  if (kilobits === undefined || base === undefined) return null;
  const odd = rateCode === 1 ? fifth & 1 : 0;
  const words = Math.floor((kilobits * 1000 * AC3_SAMPLES) / base / 16) + odd;
  // Encoders of version 9 and 10 write half and quarter rates.
  const rate = base >> Math.max(0, version - 8);
  return { bytes: words * 2, samples: AC3_SAMPLES, rate, format: "ac3" };
};

function enhancedHeader(second: number, fifth: number): AudioFrameHeader | null {
  const rateCode = fifth >> 6;
  const blockCode = (fifth >> 4) & 3;
  const isReduced = rateCode === 3;
  const rate = isReduced ? (AC3_RATES[blockCode] ?? 0) / 2 : (AC3_RATES[rateCode] as number);
  const bytes = ((second & 0x7ff) + 1) * 2;
  if (!rate || bytes < AUDIO_HEADER_BYTES) return null;
  const isOwn = second >> 14 !== DEPENDENT && ((second >> 11) & 7) === 0;
  const blocks = isReduced ? 6 : (BLOCKS[blockCode] as number);
  return { bytes, samples: isOwn ? blocks * BLOCK_SAMPLES : 0, rate, format: "eac3" };
}
