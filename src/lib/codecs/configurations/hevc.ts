import { BitReader, withoutEmulationPrevention } from "../bits.ts";
import { ConfigurationInvalid, checkSize, type VideoFormat } from "./format.ts";
import { readHevcVui } from "./hevc-vui.ts";

/** Bytes before the arrays of NAL units (ISO/IEC 14496-15, 8.3.3.1). */
const HEAD_BYTES = 23;
const SPS = 33;

/**
 * The format of a video from the first sequence parameter set (H.265, 7.3.2.2.1) of an hvcC box. Throws Error when it is
 * malformed.
 */
export function readHevc(hvcC: Buffer): VideoFormat {
  if (hvcC[0] !== 1) throw new ConfigurationInvalid("The hvcC has an unsupported version.");
  const reader = new BitReader(withoutEmulationPrevention(parameterSetOf(hvcC)));
  // The header of the NAL unit, and the id of the video parameter set.
  reader.skip(20);
  const subLayers = reader.bits(3);
  reader.skip(1);
  skipProfileTierLevel(reader, subLayers);
  reader.unsigned();
  const chroma = reader.unsigned();
  const isSeparate = chroma === 3 && reader.flag();
  const columns = reader.unsigned();
  const rows = reader.unsigned();
  const crop = reader.flag()
    ? [reader.unsigned(), reader.unsigned(), reader.unsigned(), reader.unsigned()]
    : [0, 0, 0, 0];
  const [left = 0, right = 0, top = 0, bottom = 0] = crop;
  // Table 6-1.
  const unitX = !isSeparate && (chroma === 1 || chroma === 2) ? 2 : 1;
  const unitY = !isSeparate && chroma === 1 ? 2 : 1;
  const width = columns - (left + right) * unitX;
  const height = rows - (top + bottom) * unitY;
  checkSize(width, height);
  return { width, height, ...readRest(reader, subLayers) };
}

/** A player needs none of it: nothing is stated where it cannot be read. */
function readRest(reader: BitReader, subLayers: number): Omit<VideoFormat, "width" | "height"> {
  try {
    return readHevcVui(reader, subLayers);
  } catch {
    return { colors: null, aspect: null, rate: null };
  }
}

function parameterSetOf(hvcC: Buffer): Buffer {
  let at = HEAD_BYTES;
  for (let arrays = hvcC.readUInt8(HEAD_BYTES - 1); arrays > 0; arrays--) {
    const type = hvcC.readUInt8(at) & 0x3f;
    const count = hvcC.readUInt16BE(at + 1);
    at += 3;
    for (let index = 0; index < count; index++) {
      const end = at + 2 + hvcC.readUInt16BE(at);
      if (end > hvcC.length) throw new ConfigurationInvalid("The hvcC is truncated.");
      if (type === SPS) return hvcC.subarray(at + 2, end);
      at = end;
    }
  }
  throw new ConfigurationInvalid("The hvcC has no sequence parameter set.");
}

/** 7.3.3, with the profile of the whole stream. */
function skipProfileTierLevel(reader: BitReader, subLayers: number): void {
  reader.skip(96);
  const present = Array.from({ length: subLayers }, () => ({ profile: reader.flag(), level: reader.flag() }));
  if (subLayers > 0) reader.skip((8 - subLayers) * 2);
  for (const { profile, level } of present) reader.skip((profile ? 88 : 0) + (level ? 8 : 0));
}
