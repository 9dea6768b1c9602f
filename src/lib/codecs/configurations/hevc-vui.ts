import type { BitReader } from "../bits.ts";
import type { VideoFormat } from "./format.ts";
import { readVuiStart } from "./vui.ts";

/** 7.4.3.2.1, 7.4.8 */
const MAX_SETS = 64;
const MAX_FRAMES = 16;
const MAX_LONG_TERM = 32;

/**
 * Colors, aspect and frame rate from a sequence parameter set of HEVC (H.265, 7.3.2.2.1 and E.2.1). `reader` is after the
 * conformance window. `subLayers` is sps_max_sub_layers_minus1. Throws Error when it is malformed.
 */
export function readHevcVui(reader: BitReader, subLayers: number): Omit<VideoFormat, "width" | "height"> {
  skipNumbers(reader, 2);
  const orderBits = reader.unsigned() + 4;
  if (orderBits > 16) throw new Error("log2_max_pic_order_cnt_lsb is too large");
  skipNumbers(reader, 3 * (reader.flag() ? subLayers + 1 : 1));
  skipNumbers(reader, 6);
  if (reader.flag() && reader.flag()) skipScalingLists(reader);
  // amp_enabled_flag, sample_adaptive_offset_enabled_flag
  reader.skip(2);
  if (reader.flag()) {
    reader.skip(8);
    skipNumbers(reader, 2);
    reader.skip(1);
  }
  skipReferenceSets(reader);
  if (reader.flag()) reader.skip(limited(reader.unsigned(), MAX_LONG_TERM) * (orderBits + 1));
  // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
  reader.skip(2);
  if (!reader.flag()) return { colors: null, aspect: null, rate: null };
  const start = readVuiStart(reader);
  // neutral_chroma_indication_flag, field_seq_flag, frame_field_info_present_flag
  reader.skip(3);
  if (reader.flag()) skipNumbers(reader, 4);
  if (!reader.flag()) return { ...start, rate: null };
  const ticks = reader.bits(32);
  const scale = reader.bits(32);
  return { ...start, rate: ticks > 0 && scale > 0 ? { num: scale, den: ticks } : null };
}

function limited(value: number, most: number): number {
  if (value > most) throw new Error("a count is too large");
  return value;
}

function skipNumbers(reader: BitReader, count: number): void {
  for (let index = 0; index < count; index++) reader.unsigned();
}

/** 7.3.4 */
function skipScalingLists(reader: BitReader): void {
  for (let size = 0; size < 4; size++)
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1)
      if (reader.flag()) skipNumbers(reader, Math.min(64, 16 << (size * 2)) + (size > 1 ? 1 : 0));
      else reader.unsigned();
}

/** 7.3.7: each may be predicted from the one before, whose distances have to be known for that (7-61, 7-62). */
function skipReferenceSets(reader: BitReader): void {
  let distances: number[] = [];
  const count = limited(reader.unsigned(), MAX_SETS);
  for (let set = 0; set < count; set++)
    distances = set > 0 && reader.flag() ? predicted(reader, distances) : own(reader);
}

function predicted(reader: BitReader, before: readonly number[]): number[] {
  const isNegative = reader.flag();
  const shift = (reader.unsigned() + 1) * (isNegative ? -1 : 1);
  const kept: number[] = [];
  for (const distance of [...before, 0]) {
    // used_by_curr_pic_flag, or else use_delta_flag
    const isKept = reader.flag() || reader.flag();
    if (isKept && distance + shift !== 0) kept.push(distance + shift);
  }
  limited(kept.length, 2 * MAX_FRAMES);
  return [
    ...kept.filter((distance) => distance < 0).sort((a, b) => b - a),
    ...kept.filter((distance) => distance > 0).sort((a, b) => a - b),
  ];
}

function own(reader: BitReader): number[] {
  const counts = [limited(reader.unsigned(), MAX_FRAMES), limited(reader.unsigned(), MAX_FRAMES)];
  return counts.flatMap((count, index) => {
    let distance = 0;
    return Array.from({ length: count }, () => {
      distance += (reader.unsigned() + 1) * (index === 0 ? -1 : 1);
      reader.skip(1);
      return distance;
    });
  });
}
