import { BitReader, withoutEmulationPrevention } from "#lib/codecs";
import type { VideoSyntax } from "./access-unit-reader.ts";
import { parameterSets } from "./configuration.ts";

/** nal_unit_type (ITU-T H.264, table 7-1). */
const NAL = { slice: 1, idr: 5, sps: 7, pps: 8, delimiter: 9, endOfSequence: 10, endOfStream: 11, filler: 12 } as const;
/** Profiles whose avcC states neither chroma format nor bit depth (ISO/IEC 14496-15, 5.3.3.1.2). */
const WITHOUT_CHROMA_FORMAT = new Set([66, 77, 88]);

export const h264: VideoSyntax = {
  headerBytes: 1,
  typeOf: (unit) => (unit[0] as number) & 0x1f,
  setTypes: [NAL.sps, NAL.pps],
  isDropped: (type) => type >= NAL.delimiter && type <= NAL.filler,
  isFrame: (type) => type >= NAL.slice && type <= NAL.idr,
  isRandomAccess: (type) => type === NAL.idr,
  configuration([sequences = [], pps = []]) {
    const [first] = sequences as [Buffer];
    const [, profile, compatibility, level] = first as unknown as number[];
    const head = [1, profile, compatibility, level, 0xff, 0xe0 | sequences.length] as number[];
    return Buffer.concat([
      ...[Buffer.from(head), parameterSets(sequences)],
      ...[Buffer.of(pps.length), parameterSets(pps), chromaFormat(first)],
    ]);
  },
};

/** The fields that follow the parameter sets, from seq_parameter_set_data (7.3.2.1.1). */
function chromaFormat(sps: Buffer): Buffer {
  const profile = sps[1] as number;
  if (WITHOUT_CHROMA_FORMAT.has(profile)) return Buffer.alloc(0);
  const reader = new BitReader(withoutEmulationPrevention(sps.subarray(4)));
  reader.unsigned();
  const chroma = reader.unsigned();
  if (chroma === 3) reader.skip(1);
  const luma = reader.unsigned();
  const other = reader.unsigned();
  if (chroma > 3 || luma > 6 || other > 6) throw new Error("The sequence parameter set has an invalid format.");
  return Buffer.of(0xfc | chroma, 0xf8 | luma, 0xf8 | other, 0);
}
