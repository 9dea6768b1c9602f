import { BitReader, withoutEmulationPrevention } from "#lib/codecs";
import type { VideoSyntax } from "./access-unit-reader.ts";
import { parameterSets } from "./configuration.ts";

/** nal_unit_type (ITU-T H.265, table 7-1). */
const NAL = {
  firstIrap: 16,
  lastIrap: 23,
  lastFrame: 31,
  vps: 32,
  sps: 33,
  pps: 34,
  delimiter: 35,
  filler: 38,
} as const;
/** From general_profile_space to general_level_idc (7.3.3). */
const PROFILE_TIER_LEVEL_BYTES = 12;
const HEADER_BYTES = 2;

export const hevc: VideoSyntax = {
  headerBytes: HEADER_BYTES,
  typeOf: (unit) => ((unit[0] as number) >> 1) & 0x3f,
  setTypes: [NAL.vps, NAL.sps, NAL.pps],
  isDropped: (type) => type >= NAL.delimiter && type <= NAL.filler,
  isFrame: (type) => type <= NAL.lastFrame,
  isRandomAccess: (type) => type >= NAL.firstIrap && type <= NAL.lastIrap,
  configuration([videos = [], sequences = [], pps = []]) {
    const [first] = sequences as [Buffer];
    const arrays = [
      { type: NAL.vps, sets: videos },
      { type: NAL.sps, sets: sequences },
      { type: NAL.pps, sets: pps },
    ];
    const written = arrays.flatMap(({ type, sets }) => {
      const head = Buffer.of(0x80 | type, 0, 0);
      head.writeUInt16BE(sets.length, 1);
      return [head, parameterSets(sets)];
    });
    return Buffer.concat([describe(first), Buffer.of(arrays.length), ...written]);
  },
};

/** The fields before the arrays of an hvcC (ISO/IEC 14496-15, 8.3.3.1.2), from a sequence parameter set (7.3.2.2.1). */
function describe(sps: Buffer): Buffer {
  const data = withoutEmulationPrevention(sps.subarray(HEADER_BYTES));
  const subLayers = ((data[0] as number) >> 1) & 7;
  const isNested = (data[0] as number) & 1;
  const profile = data.subarray(1, 1 + PROFILE_TIER_LEVEL_BYTES);
  const reader = new BitReader(data.subarray(1 + PROFILE_TIER_LEVEL_BYTES));
  const present = Array.from({ length: subLayers }, () => ({ profile: reader.flag(), level: reader.flag() }));
  if (subLayers > 0) reader.skip((8 - subLayers) * 2);
  for (const layer of present) reader.skip((layer.profile ? 88 : 0) + (layer.level ? 8 : 0));
  reader.unsigned();
  const chroma = reader.unsigned();
  if (chroma === 3) reader.skip(1);
  reader.unsigned();
  reader.unsigned();
  if (reader.flag()) for (let side = 0; side < 4; side++) reader.unsigned();
  const luma = reader.unsigned();
  const other = reader.unsigned();
  if (chroma > 3 || luma > 7 || other > 7) throw new Error("The sequence parameter set has an invalid format.");
  return Buffer.concat([
    ...[Buffer.of(1), profile],
    // min_spatial_segmentation_idc and parallelismType: unknown.
    Buffer.of(0xf0, 0, 0xfc, 0xfc | chroma, 0xf8 | luma, 0xf8 | other),
    // avgFrameRate and constantFrameRate: unknown. Lengths of 4 bytes.
    Buffer.of(0, 0, ((subLayers + 1) << 3) | (isNested << 2) | 3),
  ]);
}
