import { BitReader } from "./bits.ts";
import { ConfigurationInvalid, checkSize, type VideoFormat } from "./format.ts";

/** obu_type (AV1 bitstream, 6.2.2). */
const SEQUENCE_HEADER = 1;

/**
 * The size of a video from the sequence header (AV1 bitstream, 5.5.1) in an av1C box (AV1 in ISOBMFF, 2.3.3). Throws
 * Error when it is malformed, or when the box has no sequence header.
 */
export function readAv1(av1C: Buffer): VideoFormat {
  if (av1C[0] !== 0x81) throw new ConfigurationInvalid("The av1C has an unsupported version.");
  const reader = new BitReader(sequenceHeaderOf(av1C));
  reader.skip(4);
  const isReduced = reader.flag();
  if (isReduced) reader.skip(5);
  else skipOperatingPoints(reader);
  const [widthBits, heightBits] = [reader.bits(4) + 1, reader.bits(4) + 1];
  const [width, height] = [reader.bits(widthBits) + 1, reader.bits(heightBits) + 1];
  checkSize(width, height);
  return { width, height, colors: null, aspect: null, rate: null };
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

function skipOperatingPoints(reader: BitReader): void {
  let delayBits = 0;
  let hasModel = false;
  // timing_info (5.5.3), decoder_model_info (5.5.4)
  if (reader.flag()) {
    reader.skip(64);
    if (reader.flag()) reader.unsigned();
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
}
