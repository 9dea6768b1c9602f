import * as v from "valibot";
import type { HdrMetadata } from "../../lib/hdr.ts";
import { type AdditionalVideoCodec, bitrateCaps, requireBytes, vaapiQuality, X26X_PRESETS } from "./codec.ts";

const SOFTWARE_ENCODER = "libx265";
/**
 * VPS, SPS and PPS, which x265 repeats with HDR metadata, and some hardware encoders always. In a track of `hvc1` they are only in the sample entry (ISO/IEC
 * 14496-15, 8.3.3).
 */
const WITHOUT_PARAMETER_SETS = ["-bsf:v", "filter_units=remove_types=32-34"];

/** Apple's players require the sample entry with all parameter sets in the init segment. */
const TAG = ["-tag:v", "hvc1"];

/** `info=0`: without the encoder's settings, which would be repeated in each init segment. */
const PARAMETERS = "scenecut=0:open-gop=0:info=0:log-level=warning";
/** As for H.264: each run assumes that the decoder's buffer is 0.9 full, and spends it. */
const CONTINUED = "vbv-init=0.5";

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

  softwareEncoder: SOFTWARE_ENCODER,
  encoderArguments: {
    software: (limits, { preset, profile, hdr, isContinued }) => [
      ...["-c:v", SOFTWARE_ENCODER, "-preset", preset, "-profile:v", profile, "-crf", String(limits.crf)],
      ...[...bitrateCaps(limits), "-forced-idr", "1"],
      ...["-x265-params", [PARAMETERS, ...(isContinued ? [CONTINUED] : []), ...metadata(hdr)].join(":")],
      ...(metadata(hdr).length > 0 ? WITHOUT_PARAMETER_SETS : []),
      ...TAG,
    ],
    nvenc: (limits, { profile }) => [
      ...["-c:v", "hevc_nvenc", "-preset", "p5", "-profile:v", profile],
      ...["-rc", "vbr", "-cq", String(limits.crf), "-b:v", "0"],
      ...[...bitrateCaps(limits), "-forced-idr", "1", "-no-scenecut", "1", ...WITHOUT_PARAMETER_SETS, ...TAG],
    ],
    qsv: (limits, { profile }) => [
      ...["-c:v", "hevc_qsv", "-preset", "medium", "-profile:v", profile, "-global_quality", String(limits.crf)],
      ...[...bitrateCaps(limits), "-forced_idr", "1", ...WITHOUT_PARAMETER_SETS, ...TAG],
    ],
    vaapi: (limits, { profile }) => [
      ...["-c:v", "hevc_vaapi", "-profile:v", profile, ...vaapiQuality(limits), ...WITHOUT_PARAMETER_SETS, ...TAG],
    ],
  },
  settings: {
    codec: v.literal("hevc"),
    profile: v.picklist(["main", "main10"]),
    pixel_format: v.picklist(["yuv420p", "yuv420p10le"]),
    rate_control: v.literal("crf_capped"),
    preset: v.picklist(X26X_PRESETS),
  },
  maxCrf: 51,
  defaults: {
    settings: {
      codec: "hevc",
      profile: "main",
      pixel_format: "yuv420p",
      rate_control: "crf_capped",
      preset: "fast",
    },
    crf: 26,
    bitrateShare: 0.65,
  },
  hdrFormat: { profile: "main10", pixel_format: "yuv420p10le" },
  minSide: 32,
} as const satisfies AdditionalVideoCodec;

/** x265 has the units of the bitstream. */
function metadata({ mastering, light }: Partial<HdrMetadata> = {}): string[] {
  const parameters: string[] = [];
  if (mastering) {
    const { red, green, blue, white, maxLuminance, minLuminance } = mastering;
    const display = `G(${green})B(${blue})R(${red})WP(${white})L(${maxLuminance},${minLuminance})`;
    parameters.push(`master-display=${display}`);
  }
  if (light) parameters.push(`max-cll=${light.maxContent},${light.maxAverage}`);
  return parameters;
}

const hexadecimal = (value: number) => value.toString(16).toUpperCase();

/** The 32 bits, the last one first. */
function reversed(bits: number): number {
  let result = 0;
  for (let at = 0; at < 32; at++) result = result * 2 + ((bits >>> at) & 1);
  return result;
}
