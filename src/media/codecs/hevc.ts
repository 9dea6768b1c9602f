import { requireBytes, type VideoCodec } from "./codec.ts";

export const hevc = {
  kind: "video",
  name: "hevc",
  sampleEntries: ["hvc1", "hev1"],
  configurationBox: "hvcC",

  /**
   * ISO/IEC 14496-15, Annex E.3, from the configuration record (8.3.3.1): profile space and profile, compatibility flags
   * in reverse bit order, tier and level, and the bytes of constraint flags without trailing zeros.
   */
  codecString(hvcC, sampleEntry) {
    requireBytes(hvcC, 13, "hvcC");
    if (hvcC[0] !== 1) throw new Error(`The init segment's hvcC has the unsupported version ${hvcC[0]}.`);
    const profile = hvcC.readUInt8(1);
    const constraints = [...hvcC.subarray(6, 12)];
    const parts = [
      `${["", "A", "B", "C"][profile >> 6]}${profile & 0x1f}`,
      hexadecimal(reversed(hvcC.readUInt32BE(2))),
      `${profile & 0x20 ? "H" : "L"}${hvcC[12]}`,
      ...constraints.slice(0, constraints.findLastIndex((byte) => byte !== 0) + 1).map(hexadecimal),
    ];
    return [sampleEntry, ...parts].join(".");
  },
} as const satisfies VideoCodec;

const hexadecimal = (value: number) => value.toString(16).toUpperCase();

/** The 32 bits, the last one first. */
function reversed(bits: number): number {
  let result = 0;
  for (let at = 0; at < 32; at++) result = result * 2 + ((bits >>> at) & 1);
  return result;
}
