import * as v from "valibot";
import {
  type AdditionalVideoCodec,
  bitrateCaps,
  type CopyInspector,
  requireBytes,
  vaapiQuality,
  X26X_PRESETS,
} from "./codec.ts";
import type { HdrMetadata } from "./hdr.ts";

const SOFTWARE_ENCODER = "libx265";
/**
 * VPS, SPS and PPS, which x265 repeats with HDR metadata, and some hardware encoders always. In a track of `hvc1` they are
 * only in the sample entry (ISO/IEC 14496-15, 8.3.3).
 */
const WITHOUT_PARAMETER_SETS = ["-bsf:v", "filter_units=remove_types=32-34"];

/** Apple's players require the sample entry with all parameter sets in the init segment. */
const SAMPLE_ENTRY = ["-tag:v", "hvc1"];

/** general_level_idc (ITU-T H.265, A.4.1) of levels 5.2 and 6.2: 2160p60, and 8192x4320. */
const MAX_COPIED_LEVEL = 156;
const MAX_ORIGINAL_LEVEL = 186;

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
      ...SAMPLE_ENTRY,
    ],
    nvenc: (limits, { profile }) => [
      ...["-c:v", "hevc_nvenc", "-preset", "p5", "-profile:v", profile],
      ...["-rc", "vbr", "-cq", String(limits.crf), "-b:v", "0"],
      ...[...bitrateCaps(limits), "-forced-idr", "1", "-no-scenecut", "1", ...WITHOUT_PARAMETER_SETS, ...SAMPLE_ENTRY],
    ],
    qsv: (limits, { profile }) => [
      ...["-c:v", "hevc_qsv", "-preset", "medium", "-profile:v", profile, "-global_quality", String(limits.crf)],
      ...[...bitrateCaps(limits), "-forced_idr", "1", ...WITHOUT_PARAMETER_SETS, ...SAMPLE_ENTRY],
    ],
    vaapi: (limits, { profile }) => [
      ...[
        "-c:v",
        "hevc_vaapi",
        "-profile:v",
        profile,
        ...vaapiQuality(limits),
        ...WITHOUT_PARAMETER_SETS,
        ...SAMPLE_ENTRY,
      ],
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
  vrName: "h265",

  isCopyable: ({ profile, level, pixelFormat, hdr }, isOriginal) =>
    (hdr ? profile === "Main 10" && pixelFormat === "yuv420p10le" : profile === "Main" && pixelFormat === "yuv420p") &&
    level > 0 &&
    level <= (isOriginal ? MAX_ORIGINAL_LEVEL : MAX_COPIED_LEVEL),
  copy: { arguments: SAMPLE_ENTRY, withoutRepeats: WITHOUT_PARAMETER_SETS, inspect: inspectCopy },
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

/** Types of NAL units (ITU-T H.265, table 7-1): of the slices of random access points, and of parameter sets. */
const FIRST_IRAP = 16;
const LAST_IRAP = 21;
const FIRST_NON_VCL = 32;
const PARAMETER_SETS = [32, 33, 34];

/** The record has lengths of 16 bits. */
const MAX_SET_BYTES = 0xffff;

const typeOf = (header: number) => (header >> 1) & 0x3f;

/**
 * The sample entry of a copy must have all parameter sets, and frames that are marked as random access points must be such. A
 * parameter set in a frame that differs from those of the sample entry would be needed by decoders that start later.
 */
function inspectCopy(hvcC: Buffer): CopyInspector {
  requireBytes(hvcC, 23, "hvcC");
  const sets = parameterSetsOf(hvcC);
  const lengthBytes = ((hvcC[21] as number) & 3) + 1;
  const isComplete = PARAMETER_SETS.every((type) => [...sets].some((set) => typeOf(set.charCodeAt(0)) === type));
  // 8.3.3.1: general_interlaced_source_flag.
  const isInterlaced = ((hvcC[6] as number) & 0x40) !== 0;
  let isRepeating = false;
  return {
    faultOf(frame, isSync) {
      if (!isComplete) return "its sample entry does not have all parameter sets";
      if (isInterlaced) return "it is interlaced";
      for (let at = 0; at < frame.length; ) {
        const start = at + lengthBytes;
        const end = start <= frame.length ? start + frame.readUIntBE(at, lengthBytes) : frame.length + 1;
        if (end > frame.length || end === start) return "a NAL unit is truncated";
        const type = typeOf(frame[start] as number);
        if (isSync && type < FIRST_NON_VCL && (type < FIRST_IRAP || type > LAST_IRAP))
          return "a frame that is marked as a keyframe is none";
        if (PARAMETER_SETS.includes(type)) {
          if (end - start > MAX_SET_BYTES || !sets.has(frame.toString("latin1", start, end)))
            return "its parameter sets change";
          isRepeating = true;
        }
        at = end;
      }
      return null;
    },
    isRepeating: () => isRepeating,
  };
}

/** The NAL units of the configuration record (ISO/IEC 14496-15, 8.3.3.1), as Latin-1. */
function parameterSetsOf(hvcC: Buffer): Set<string> {
  const sets = new Set<string>();
  let at = 23;
  for (let array = 0; array < (hvcC[22] as number); array++) {
    requireBytes(hvcC, at + 3, "hvcC");
    const count = hvcC.readUInt16BE(at + 1);
    at += 3;
    for (let number = 0; number < count; number++) {
      requireBytes(hvcC, at + 2, "hvcC");
      const end = at + 2 + hvcC.readUInt16BE(at);
      requireBytes(hvcC, end, "hvcC");
      sets.add(hvcC.toString("latin1", at + 2, end));
      at = end;
    }
  }
  return sets;
}
