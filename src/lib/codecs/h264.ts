import * as v from "valibot";
import { bitrateCaps, PER_TITLE, type PrimaryVideoCodec, requireBytes, vaapiQuality, X26X_PRESETS } from "./codec.ts";

const SOFTWARE_ENCODER = "libx264";
/** Levels 4.2 and 6.2 as level_idc: any current device decodes 1080p60; the level of originals is that of 8192x4096. */
const MAX_COPIED_LEVEL = 42;
const MAX_ORIGINAL_LEVEL = 62;
const COPIED_PROFILES = ["Constrained Baseline", "Baseline", "Main", "High"];

/**
 * Every run assumes that the decoder's buffer is 0.9 full, and spends it: many short runs would exceed the cap. With 0.4 the
 * first second of a chunk of noise lost 2.4 % of SSIM, with 0.65 chunks of 8 s took 1.4 % more bits than one run.
 */
const CONTINUED = "vbv-init=0.5";

export const h264 = {
  kind: "video",
  name: "h264",
  sampleEntries: ["avc1"],
  configurationBox: "avcC",

  /**
   * ISO/IEC 14496-15, Annex E.2: profile, constraint flags and level of the configuration record (5.3.3.1). In High
   * profile, level 9 is level 1b (A.3.4), which browsers report as unsupported; a decoder of level 1.1 plays it.
   */
  codecString(avcC) {
    requireBytes(avcC, 4, "avcC");
    const level = avcC[3] === 9 ? "0b" : avcC.toString("hex", 3, 4);
    return `avc1.${avcC.toString("hex", 1, 3)}${level}`;
  },

  softwareEncoder: SOFTWARE_ENCODER,
  encoderArguments: {
    software: (limits, { preset, profile, isContinued }) => [
      ...["-c:v", SOFTWARE_ENCODER, "-preset", preset, "-profile:v", profile, "-crf", String(limits.crf)],
      ...bitrateCaps(limits),
      ...["-sc_threshold", "0"],
      ...(isContinued ? ["-x264-params", CONTINUED] : []),
    ],
    nvenc: (limits, { profile }) => [
      ...["-c:v", "h264_nvenc", "-preset", "p5", "-profile:v", profile],
      ...["-rc", "vbr", "-cq", String(limits.crf), "-b:v", "0"],
      ...[...bitrateCaps(limits), "-forced-idr", "1", "-no-scenecut", "1"],
    ],
    qsv: (limits, { profile }) => [
      ...["-c:v", "h264_qsv", "-preset", "medium", "-profile:v", profile],
      ...["-global_quality", String(limits.crf), ...bitrateCaps(limits), "-forced_idr", "1", "-adaptive_i", "0"],
    ],
    vaapi: (limits, { profile }) => ["-c:v", "h264_vaapi", "-profile:v", profile, ...vaapiQuality(limits)],
  },
  foreignArguments: (id) => ["-x264-params", `${CONTINUED}:sps-id=${id}`],
  settings: {
    codec: v.literal("h264"),
    profile: v.literal("high"),
    pixel_format: v.literal("yuv420p"),
    rate_control: v.picklist(["crf_capped", PER_TITLE]),
    preset: v.picklist(X26X_PRESETS),
  },
  maxCrf: 51,
  /** Levels 5.1 and 5.2 allow this many (A.3.1: MaxFS 36,864 macroblocks). */
  maxPixels: 36_864 * 256,

  isCopyable: ({ profile, level, pixelFormat, hdr }, isOriginal) =>
    COPIED_PROFILES.includes(profile) &&
    level > 0 &&
    level <= (isOriginal ? MAX_ORIGINAL_LEVEL : MAX_COPIED_LEVEL) &&
    pixelFormat === "yuv420p" &&
    !hdr,
  vrName: "h264",
} as const satisfies PrimaryVideoCodec;
