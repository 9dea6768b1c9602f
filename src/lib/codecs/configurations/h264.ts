import { BitReader, withoutEmulationPrevention } from "../bits.ts";
import { ConfigurationInvalid, checkSize, type VideoFormat } from "./format.ts";
import { readVuiStart } from "./vui.ts";

/** Profiles whose parameter sets state the chroma format (7.3.2.1.1). */
const WITH_CHROMA_FORMAT = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);

/**
 * The format of a video from the first sequence parameter set (H.264, 7.3.2.1.1) of an avcC box (ISO/IEC 14496-15,
 * 5.3.3.1). Throws Error when it is malformed.
 */
export function readH264(avcC: Buffer): VideoFormat {
  if (avcC[0] !== 1) throw new ConfigurationInvalid("The avcC has an unsupported version.");
  if ((avcC.readUInt8(5) & 0x1f) === 0) throw new ConfigurationInvalid("The avcC has no sequence parameter set.");
  const length = avcC.readUInt16BE(6);
  if (8 + length > avcC.length) throw new ConfigurationInvalid("The avcC is truncated.");
  const reader = new BitReader(withoutEmulationPrevention(avcC.subarray(9, 8 + length)));

  const profile = reader.bits(8);
  // Constraint flags and level.
  reader.skip(16);
  reader.unsigned();
  let chroma = 1;
  let isSeparate = false;
  if (WITH_CHROMA_FORMAT.has(profile)) {
    chroma = reader.unsigned();
    if (chroma === 3) isSeparate = reader.flag();
    reader.unsigned();
    reader.unsigned();
    reader.skip(1);
    if (reader.flag()) skipScalingLists(reader, chroma === 3 ? 12 : 8);
  }
  reader.unsigned();
  skipOrderCount(reader);
  reader.unsigned();
  reader.skip(1);
  const columns = (reader.unsigned() + 1) * 16;
  const mapRows = (reader.unsigned() + 1) * 16;
  const isFrames = reader.flag();
  if (!isFrames) reader.skip(1);
  reader.skip(1);
  const rows = mapRows * (isFrames ? 1 : 2);
  // 7.4.2.1.1: units of cropping. Monochrome and separate planes have no subsampling.
  const isPlain = chroma === 0 || isSeparate;
  const unitX = isPlain || chroma === 3 ? 1 : 2;
  const unitY = (isPlain || chroma !== 1 ? 1 : 2) * (isFrames ? 1 : 2);
  const crop = reader.flag()
    ? [reader.unsigned(), reader.unsigned(), reader.unsigned(), reader.unsigned()]
    : [0, 0, 0, 0];
  const [left = 0, right = 0, top = 0, bottom = 0] = crop;
  const width = columns - (left + right) * unitX;
  const height = rows - (top + bottom) * unitY;
  checkSize(width, height);
  if (!reader.flag()) return { width, height, colors: null, aspect: null, rate: null };
  return { width, height, ...readVuiStart(reader), rate: reader.flag() ? readTiming(reader) : null };
}

/** 7.3.2.1.1.1 */
function skipScalingLists(reader: BitReader, count: number): void {
  for (let list = 0; list < count; list++) {
    if (!reader.flag()) continue;
    let last = 8;
    let next = 8;
    for (let index = 0; index < (list < 6 ? 16 : 64) && next !== 0; index++) {
      next = (last + reader.signed() + 256) % 256;
      if (next !== 0) last = next;
    }
  }
}

function skipOrderCount(reader: BitReader): void {
  const type = reader.unsigned();
  if (type === 0) reader.unsigned();
  if (type !== 1) return;
  reader.skip(1);
  reader.signed();
  reader.signed();
  const count = reader.unsigned();
  if (count > 255) throw new ConfigurationInvalid("The sequence parameter set has too many reference frames.");
  for (let index = 0; index < count; index++) reader.signed();
}

/** E.2.1: a frame lasts two ticks. */
function readTiming(reader: BitReader): VideoFormat["rate"] {
  const ticks = reader.bits(32);
  const scale = reader.bits(32);
  return ticks > 0 && scale > 0 ? { num: scale, den: ticks * 2 } : null;
}
