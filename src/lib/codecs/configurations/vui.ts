import type { BitReader } from "../bits.ts";
import type { VideoFormat } from "./format.ts";

/** aspect_ratio_idc (ISO/IEC 23091-2, 8.6), the first value is 1. */
const ASPECTS = [
  [1, 1],
  [12, 11],
  [10, 11],
  [16, 11],
  [40, 33],
  [24, 11],
  [20, 11],
  [32, 11],
  [80, 33],
  [18, 11],
  [15, 11],
  [64, 33],
  [160, 99],
  [4, 3],
  [3, 2],
  [2, 1],
] as const;
const EXTENDED_SAR = 255;

/** What the video usability information of H.264 (E.1.1) and HEVC (E.2.1) begin with alike, up to the location of chroma. */
export function readVuiStart(reader: BitReader): Pick<VideoFormat, "aspect" | "colors"> {
  const aspect = reader.flag() ? readAspect(reader) : null;
  // overscan_info
  if (reader.flag()) reader.skip(1);
  const colors = reader.flag() ? readColors(reader) : null;
  if (reader.flag()) {
    reader.unsigned();
    reader.unsigned();
  }
  return { aspect, colors };
}

function readAspect(reader: BitReader): VideoFormat["aspect"] {
  const index = reader.bits(8);
  const [horizontal, vertical] =
    index === EXTENDED_SAR ? [reader.bits(16), reader.bits(16)] : (ASPECTS[index - 1] ?? [0, 0]);
  return horizontal > 0 && vertical > 0 ? { horizontal, vertical } : null;
}

function readColors(reader: BitReader): VideoFormat["colors"] {
  // video_format
  reader.skip(3);
  const isFullRange = reader.flag();
  if (!reader.flag()) return null;
  return { primaries: reader.bits(8), transfer: reader.bits(8), matrix: reader.bits(8), isFullRange };
}
