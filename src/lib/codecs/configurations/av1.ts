import { BitReader } from "../bits.ts";
import { ConfigurationInvalid, checkSize, type VideoFormat } from "./format.ts";

/** obu_type (AV1 bitstream, 6.2.2). */
const SEQUENCE_HEADER = 1;

/**
 * The format of a video from the sequence header (AV1 bitstream, 5.5.1) in an av1C box (AV1 in ISOBMFF, 2.3.3). Throws
 * Error when it is malformed, or when the box has no sequence header.
 */
export function readAv1(av1C: Buffer): VideoFormat {
  if (av1C[0] !== 0x81) throw new ConfigurationInvalid("The av1C has an unsupported version.");
  const reader = new BitReader(sequenceHeaderOf(av1C));
  const profile = reader.bits(3);
  // still_picture
  reader.skip(1);
  const isReduced = reader.flag();
  let rate: VideoFormat["rate"] = null;
  if (isReduced) reader.skip(5);
  else rate = readOperatingPoints(reader);
  const widthBits = reader.bits(4) + 1;
  const heightBits = reader.bits(4) + 1;
  const width = reader.bits(widthBits) + 1;
  const height = reader.bits(heightBits) + 1;
  checkSize(width, height);
  skipTools(reader, isReduced);
  return { width, height, colors: readColors(reader, profile), aspect: null, rate };
}

/** 5.5.1, from the frame ids to enable_restoration. */
function skipTools(reader: BitReader, isReduced: boolean): void {
  if (!isReduced && reader.flag()) reader.skip(7);
  reader.skip(3);
  if (!isReduced) {
    reader.skip(4);
    const hasOrder = reader.flag();
    if (hasOrder) reader.skip(2);
    // seq_choose_screen_content_tools, or else seq_force_screen_content_tools; the same for integer motion vectors.
    const hasScreenTools = reader.flag() || reader.flag();
    if (hasScreenTools && !reader.flag()) reader.skip(1);
    if (hasOrder) reader.skip(3);
  }
  reader.skip(3);
}

/** 5.5.2 */
function readColors(reader: BitReader, profile: number): VideoFormat["colors"] {
  const isDeep = reader.flag();
  if (profile === 2 && isDeep) reader.skip(1);
  if (profile !== 1) reader.skip(1);
  if (!reader.flag()) return null;
  const primaries = reader.bits(8);
  const transfer = reader.bits(8);
  const matrix = reader.bits(8);
  // sRGB is always in full range; its flag is not in the stream.
  const isRgb = primaries === 1 && transfer === 13 && matrix === 0;
  return { primaries, transfer, matrix, isFullRange: isRgb || reader.flag() };
}

/** 5.3: the OBUs after the four bytes of the record. Their sizes are required there. */
function sequenceHeaderOf(av1C: Buffer): Buffer {
  for (let at = 4; at < av1C.length; ) {
    const header = av1C.readUInt8(at);
    at += header & 4 ? 2 : 1;
    if (!(header & 2)) throw new ConfigurationInvalid("The av1C has an OBU without a size.");
    let size = 0;
    // leb128 (4.10.5). Four bytes are 256 MiB.
    for (let shift = 0; ; shift += 7) {
      if (shift > 21) throw new ConfigurationInvalid("The av1C has an OBU that is too large.");
      const byte = av1C.readUInt8(at++);
      size |= (byte & 0x7f) << shift;
      if (!(byte & 0x80)) break;
    }
    if (((header >> 3) & 15) === SEQUENCE_HEADER) return av1C.subarray(at, at + size);
    at += size;
  }
  throw new ConfigurationInvalid("The av1C has no sequence header.");
}

/** The frame rate, where all frames last equally long. */
function readOperatingPoints(reader: BitReader): VideoFormat["rate"] {
  let delayBits = 0;
  let hasModel = false;
  let rate: VideoFormat["rate"] = null;
  // timing_info (5.5.3), decoder_model_info (5.5.4)
  if (reader.flag()) {
    const ticks = reader.bits(32);
    const scale = reader.bits(32);
    if (reader.flag()) rate = { num: scale, den: ticks * (reader.unsigned() + 1) };
    hasModel = reader.flag();
    if (hasModel) {
      delayBits = reader.bits(5) + 1;
      reader.skip(42);
    }
  }
  const hasDelays = reader.flag();
  for (let points = reader.bits(5) + 1; points > 0; points--) {
    reader.skip(12);
    if (reader.bits(5) > 7) reader.skip(1);
    // 5.5.5: decoder_buffer_delay, encoder_buffer_delay, low_delay_mode_flag
    if (hasModel && reader.flag()) reader.skip(delayBits * 2 + 1);
    if (hasDelays && reader.flag()) reader.skip(4);
  }
  return rate && rate.num > 0 && rate.den > 0 ? rate : null;
}
