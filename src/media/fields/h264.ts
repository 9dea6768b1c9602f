import { BitReader, withoutEmulationPrevention } from "#lib/codecs";

/** Profiles with the fields of High (ITU-T H.264, 7.3.2.1.1). */
const HIGH_PROFILES = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);
/** nal_unit_type (table 7-1). */
const SPS = 7;

/**
 * Whether an `avcC` record (ISO/IEC 14496-15, 5.3.3.1) states that everything is stored in frames: frame_mbs_only_flag (ITU-T H.264,
 * 7.4.2.1.1). False when it cannot be read.
 */
export function hasOnlyFrames(avcC: Buffer): boolean {
  try {
    const count = (avcC[5] as number) & 0x1f;
    if (avcC[0] !== 1 || count === 0) return false;
    let at = 6;
    for (let set = 0; set < count; set++) {
      const length = avcC.readUInt16BE(at);
      if (!isOfFrames(avcC.subarray(at + 2, at + 2 + length))) return false;
      at += 2 + length;
    }
    return true;
  } catch {
    return false;
  }
}

/** seq_parameter_set_data, up to the flag. */
function isOfFrames(sps: Buffer): boolean {
  if (((sps[0] as number) & 0x1f) !== SPS) return false;
  const reader = new BitReader(withoutEmulationPrevention(sps.subarray(4)));
  reader.unsigned();
  if (HIGH_PROFILES.has(sps[1] as number)) {
    const chroma = reader.unsigned();
    if (chroma === 3) reader.skip(1);
    reader.unsigned();
    reader.unsigned();
    reader.skip(1);
    const lists = reader.flag() ? (chroma === 3 ? 12 : 8) : 0;
    for (let list = 0; list < lists; list++) if (reader.flag()) skipScalingList(reader, list);
  }
  reader.unsigned();
  const order = reader.unsigned();
  if (order === 0) reader.unsigned();
  else if (order === 1) {
    reader.skip(1);
    reader.signed();
    reader.signed();
    for (let left = reader.unsigned(); left > 0; left--) reader.signed();
  }
  reader.unsigned();
  reader.skip(1);
  reader.unsigned();
  reader.unsigned();
  return reader.flag();
}

/** scaling_list (7.3.2.1.1.1). */
function skipScalingList(reader: BitReader, list: number): void {
  let last = 8;
  let next = 8;
  for (let left = list < 6 ? 16 : 64; left > 0; left--) {
    if (next !== 0) next = (last + reader.signed() + 256) % 256;
    if (next !== 0) last = next;
  }
}
