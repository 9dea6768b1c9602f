import * as v from "valibot";
import { type AdditionalVideoCodec, bitrateCaps, type CopyInspector, requireBytes, vaapiQuality } from "./codec.ts";
import { CHROMATICITY_UNITS, type CicpColors, type HdrMetadata, hdrOfCicp, LUMINANCE_UNITS } from "./hdr.ts";

const SOFTWARE_ENCODER = "libsvtav1";
const PRESETS = ["4", "5", "6", "7", "8", "9", "10", "11", "12"];
/** SVT-AV1 refuses a higher cap. In bit/s. */
const MOST_BITRATE = 100_000_000;

/** seq_level_idx (AV1 specification, A.3) of level 5.3, which has 2160p120. */
const MAX_COPIED_LEVEL = 15;

/** The marker bit and version 1 (AV1 Codec ISO Media File Format Binding, 2.3.3). */
const MARKER_AND_VERSION = 0x81;
/** monochrome, chroma_subsampling_x and chroma_subsampling_y. */
const CHROMA = 0x1c;
const CHROMA_420 = 0x0c;
const CHROMA_POSITION = 0x03;

export const av1 = {
  kind: "video",
  name: "av1",
  sampleEntries: ["av01"],
  configurationBox: "av1C",

  /**
   * AV1 Codec ISO Media File Format Binding, 5: profile, level, tier and bit depth of the configuration record (2.3.3).
   * The other fields may only be omitted together, and then mean 4:2:0 in BT.709, so other chroma formats are refused.
   * They are stated for HDR: not monochrome, subsampling and position of chroma, colors, and whether the range is full.
   */
  codecString(av1C, _?: string, colors?: CicpColors | null) {
    requireBytes(av1C, 4, "av1C");
    const profile = av1C.readUInt8(1);
    const depth = av1C.readUInt8(2);
    if (av1C[0] !== MARKER_AND_VERSION) throw new Error("The init segment's av1C has an unsupported version.");
    if ((depth & CHROMA) !== CHROMA_420) throw new Error("The init segment has AV1 that is not 4:2:0.");
    const level = String(profile & 0x1f).padStart(2, "0");
    const bits = depth & 0x40 ? (depth & 0x20 ? "12" : "10") : "08";
    const stated = `av01.${profile >> 5}.${level}${depth & 0x80 ? "H" : "M"}.${bits}`;
    if (!colors || !hdrOfCicp(colors.transfer)) return stated;
    const values = [colors.primaries, colors.transfer, colors.matrix].map((value) => String(value).padStart(2, "0"));
    return [stated, "0", `11${depth & CHROMA_POSITION}`, ...values, colors.isFullRange ? "1" : "0"].join(".");
  },

  configurationIn: sequenceHeader,

  softwareEncoder: SOFTWARE_ENCODER,
  encoderArguments: {
    software: (limits, { preset, hdr }) => [
      ...["-c:v", SOFTWARE_ENCODER, "-preset", preset, "-crf", String(limits.crf)],
      ...bitrateCaps({ ...limits, maxBitrate: Math.min(limits.maxBitrate, MOST_BITRATE) }),
      // A closed GOP: without it forced keyframes are such that frames before them follow.
      ...["-flags", "+cgop", "-svtav1-params", ["enable-force-key-frames=1", ...metadata(hdr)].join(":")],
    ],
    nvenc: (limits, { profile }) => [
      ...["-c:v", "av1_nvenc", "-preset", "p5", "-profile:v", profile],
      ...["-rc", "vbr", "-cq", String(limits.crf), "-b:v", "0"],
      ...[...bitrateCaps(limits), "-forced-idr", "1", "-no-scenecut", "1"],
    ],
    qsv: (limits, { profile }) => [
      ...["-c:v", "av1_qsv", "-preset", "medium", "-profile:v", profile, "-global_quality", String(limits.crf)],
      ...[...bitrateCaps(limits), "-forced_idr", "1"],
    ],
    vaapi: (limits, { profile }) => ["-c:v", "av1_vaapi", "-profile:v", profile, ...vaapiQuality(limits)],
  },
  settings: {
    codec: v.literal("av1"),
    profile: v.literal("main"),
    pixel_format: v.picklist(["yuv420p", "yuv420p10le"]),
    rate_control: v.literal("crf_capped"),
    preset: v.picklist(PRESETS),
  },
  maxCrf: 63,
  defaults: {
    settings: {
      codec: "av1",
      profile: "main",
      pixel_format: "yuv420p",
      rate_control: "crf_capped",
      preset: "8",
    },
    crf: 40,
    bitrateShare: 0.6,
  },
  // Its profile Main has both bit depths.
  hdrFormat: { profile: "main", pixel_format: "yuv420p10le" },
  minSide: 64,
  vrName: "av1",

  isCopyable: ({ profile, level, pixelFormat, hdr }) =>
    profile === "Main" && pixelFormat === (hdr ? "yuv420p10le" : "yuv420p") && level >= 0 && level <= MAX_COPIED_LEVEL,
  copy: { arguments: [], withoutRepeats: [], inspect: inspectCopy },
} as const satisfies AdditionalVideoCodec;

/** 6.2.2 of the AV1 specification. */
const OBU_SEQUENCE_HEADER = 1;
const OBU_FRAME_HEADER = 3;
const OBU_FRAME = 6;

/** The OBUs of a temporal unit, without their headers, up to one that is truncated. */
function* obusOf(unit: Buffer): Generator<{ type: number; content: Buffer }> {
  // 5.3.1 and 5.3.2: type, extension and has_size_field, then the size as leb128 (4.10.5). The last one may have no size.
  for (let at = 0; at < unit.length; ) {
    const header = unit.readUInt8(at);
    let start = at + (header & 0x04 ? 2 : 1);
    let size = unit.length - start;
    if (header & 0x02) {
      size = 0;
      for (let shift = 0, more = true; more; shift += 7) {
        const byte = unit[start++];
        if (byte === undefined || shift > 28) return;
        size += (byte & 0x7f) * 2 ** shift;
        more = (byte & 0x80) !== 0;
      }
    }
    if (size < 0 || start + size > unit.length) return;
    yield { type: (header >> 3) & 0x0f, content: unit.subarray(start, start + size) };
    at = start + size;
  }
}

/**
 * The sequence header (5.5) of a keyframe, which begins a coded video sequence (7.5). It comes with each one, and that of
 * SVT-AV1 differs from the one in its `av1C`, which is written before the encoder has chosen its tools.
 */
function sequenceHeader(keyframe: Buffer): Buffer | null {
  for (const { type, content } of obusOf(keyframe)) if (type === OBU_SEQUENCE_HEADER) return content;
  return null;
}

/** 5.9.2: show_existing_frame, frame_type and show_frame, which are first in a frame header. */
const FRAME_BITS = 0xf0;
/** A new keyframe (type 0) that is shown. */
const SHOWN_KEYFRAME = 0x10;

/** The first byte of the first frame header; 0 without one. */
function firstFrameByte(unit: Buffer): number {
  for (const { type, content } of obusOf(unit))
    if (type === OBU_FRAME || type === OBU_FRAME_HEADER) return content[0] ?? 0;
  return 0;
}

/**
 * All keyframes of a copy must have the same sequence header: a decoder that starts at one of them gets only that. A keyframe
 * that is shown later is no place to start at (AV1 Codec ISO Media File Format Binding, 2.4).
 */
function inspectCopy(): CopyInspector {
  let first: Buffer | null = null;
  return {
    faultOf(unit, isSync) {
      if (!isSync) return null;
      const sequence = sequenceHeader(unit);
      if (!sequence || (firstFrameByte(unit) & FRAME_BITS) !== SHOWN_KEYFRAME)
        return "a frame that is marked as a keyframe is none";
      first ??= sequence;
      return first.equals(sequence) ? null : "its sequence header changes";
    },
    isRepeating: () => false,
  };
}

/** SVT-AV1 takes chromaticities as fractions, and luminance in cd/m². */
function metadata({ mastering, light }: Partial<HdrMetadata> = {}): string[] {
  const parameters: string[] = [];
  if (mastering) {
    const { red, green, blue, white, maxLuminance, minLuminance } = mastering;
    const at = (point: readonly number[]) => point.map((value) => value / CHROMATICITY_UNITS);
    const [max, min] = [maxLuminance, minLuminance].map((value) => value / LUMINANCE_UNITS);
    const display = `G(${at(green)})B(${at(blue)})R(${at(red)})WP(${at(white)})L(${max},${min})`;
    parameters.push(`mastering-display=${display}`);
  }
  if (light) parameters.push(`content-light=${light.maxContent},${light.maxAverage}`);
  return parameters;
}
