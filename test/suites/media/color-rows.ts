import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import { type ColorSource, HD, x264 } from "#test/support/media/color-sources.ts";
import { codeOf, type Format, type Linear, patchesSource } from "#test/support/media/hdr-sources.ts";

/** What ffprobe finds in a rendition: range, matrix, transfer function, primaries. */
const BT709 = "tv,bt709,bt709,bt709";
const BT601 = "tv,smpte170m,smpte170m,smpte170m";
const UNTAGGED = "unknown,unknown,unknown,unknown";

export type ColorRow = {
  source: ColorSource | ((folder: string, name: string) => Promise<string>);
  /** The states of the largest rendition, and of the others. */
  states: [top: string, other: string];
  spec?: EncodingSpec;
  /** The source is not shown as the renditions: why. It is compared where Chromium decodes it otherwise. */
  exception?: string;
};

const standard = (matrix: string, primaries = matrix, transfer = matrix) => ({ matrix, primaries, transfer });
const untagged = standard("unknown");
const bt709 = standard("bt709");
const bt601 = standard("smpte170m");
const pal = standard("bt470bg", "bt470bg", "smpte170m");
const bt2020 = standard("bt2020nc", "bt2020", "bt2020-10");
const row = (source: ColorSource, top: string, other = top, more: Partial<ColorRow> = {}): ColorRow => ({
  source,
  states: [top, other],
  ...more,
});
const prores = (profile: string) => ({ encoder: ["-c:v", "prores_ks", "-profile:v", profile], extension: "mov" });

/** Saturated colors of BT.2020 at 100 cd/m² among them, which BT.709 does not have. */
const hdr = (format: Format) => (folder: string, name: string) => {
  const light: Linear[] = [
    ...[
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
      [1, 1, 1],
      [0.2, 0.2, 0.2],
      [1, 1, 0],
      [0.7, 0.4, 0.25],
      [0.01, 0.05, 0.01],
    ],
  ] as unknown as Linear[];
  const peak = format === "hdr10" ? 0.01 : 0.25;
  const codes = light.map((one) => codeOf(one.map((value) => value * peak) as unknown as Linear, format));
  return patchesSource(folder, `${name}.mp4`, format, codes, { seconds: 2 });
};

const definition = BUILT_IN_PROFILES.default.definition;
export const marked = specOf(
  { ...definition, watermark: { position: "center", opacity: 0.5, width_percent: 60 } },
  "0".repeat(64),
);

export const COLOR_ROWS: Record<string, ColorRow> = {
  "BT.601 of 525 lines": row({ tags: bt601 }, BT601),
  "BT.601 of 625 lines": row({ tags: pal }, "tv,bt470bg,smpte170m,bt470bg"),
  "BT.709": row({ tags: bt709 }, BT709),
  "BT.709 in HD": row({ tags: bt709, size: HD }, BT709),
  "untagged SD": row({ tags: untagged }, UNTAGGED, BT601),
  "untagged HD": row({ tags: untagged, size: HD }, UNTAGGED, BT709),
  "untagged SD, turned": row({ tags: untagged, size: { width: 1280, height: 640 }, rotation: 90 }, BT601),
  "BT.2020 in 8 bits": row({ tags: bt2020 }, BT709),
  "BT.2020 in 10 bits": row({ tags: bt2020, format: "yuv420p10le", encoder: x264("high10") }, BT709),
  "BT.2020 in full range": row({ tags: bt2020, isFull: true }, BT709),
  HDR10: { source: hdr("hdr10"), states: [BT709, BT709], exception: "it is tone-mapped" },
  HLG: { source: hdr("hlg"), states: [BT709, BT709], exception: "it is tone-mapped" },
  "BT.601 with a watermark": row({ tags: bt601 }, BT601, BT601, { spec: marked, exception: "it has no watermark" }),
  "BT.2020 with a watermark": row({ tags: bt2020 }, BT709, BT709, { spec: marked, exception: "it has no watermark" }),
  "BT.709 in full range": row({ tags: bt709, isFull: true }, BT709),
  "BT.601 in full range": row({ tags: bt601, isFull: true }, BT601),
  yuvj420p: row({ tags: bt601, isFull: true, format: "yuvj420p" }, BT601),
  "untagged HD in full range": row({ tags: untagged, stored: "smpte170m", isFull: true, size: HD }, BT601),
  MJPEG: row(
    {
      tags: untagged,
      stored: "bt470bg",
      isFull: true,
      format: "yuvj420p",
      encoder: ["-c:v", "mjpeg", "-q:v", "2"],
      extension: "mov",
    },
    "tv,bt470bg,smpte170m,smpte170m",
  ),
  "MJPEG in HD": row(
    {
      tags: untagged,
      stored: "bt470bg",
      isFull: true,
      format: "yuvj422p",
      encoder: ["-c:v", "mjpeg", "-q:v", "2"],
      extension: "avi",
      size: HD,
    },
    "tv,bt470bg,smpte170m,smpte170m",
  ),
  "RGB in H.264": row(
    { tags: bt709, format: "gbrp", encoder: ["-c:v", "libx264rgb", "-crf", "4"], extension: "mkv" },
    BT709,
  ),
  "RGB in PNG": row({ tags: untagged, format: "rgb24", encoder: ["-c:v", "png"], extension: "mov" }, BT709),
  "RGB in FFV1": row({ tags: untagged, format: "gbrp", encoder: ["-c:v", "ffv1"], extension: "mkv" }, BT709),
  "ProRes 4:2:2": row({ tags: bt709, format: "yuv422p10le", ...prores("3") }, BT709),
  "ProRes 4:4:4 of BT.601": row({ tags: bt601, format: "yuv444p10le", ...prores("4"), size: HD }, BT601),
  "ProRes of BT.2020": row({ tags: bt2020, format: "yuv422p10le", ...prores("3") }, BT709),
  "4:4:4 in H.264": row({ tags: bt709, format: "yuv444p", encoder: x264("high444") }, BT709),
  "the matrix of BT.601 alone": row(
    { tags: standard("smpte170m", "unknown", "unknown") },
    "tv,smpte170m,unknown,unknown",
    BT601,
  ),
  "the matrix of BT.709 alone, in HD": row(
    { tags: standard("bt709", "unknown", "unknown"), size: HD },
    "tv,bt709,unknown,unknown",
    BT709,
  ),
  "the matrix of BT.709 alone, in SD": row({ tags: standard("bt709", "unknown", "unknown") }, BT709, BT709, {
    exception: "Chromium ignores the matrix",
  }),
  "the matrix of BT.601 alone, in HD": row(
    { tags: standard("smpte170m", "unknown", "unknown"), size: HD },
    BT601,
    BT601,
    {
      exception: "Chromium ignores the matrix",
    },
  ),
  "primaries alone": row({ tags: standard("unknown", "bt470bg", "unknown") }, "tv,unknown,unknown,bt470bg", BT601),
  "primaries of BT.2020 alone": row({ tags: standard("unknown", "bt2020", "unknown"), size: HD }, BT709),
  "the matrix of BT.601 with primaries of BT.709": row(
    { tags: standard("smpte170m", "bt709", "bt709") },
    "tv,smpte170m,bt709,bt709",
  ),
  "the matrix of BT.709 with primaries of 625 lines": row(
    { tags: standard("bt709", "bt470bg", "bt709") },
    "tv,bt709,bt709,bt470bg",
  ),
  P3: row({ tags: standard("bt709", "smpte432", "bt709") }, BT709),
  "P3 of cinemas": row({ tags: standard("bt709", "smpte431", "bt709") }, BT709),
  "NTSC of 1953": row({ tags: standard("smpte170m", "bt470m", "bt709") }, BT709),
  film: row({ tags: standard("bt709", "film", "bt709") }, BT709),
  "SMPTE 240": row({ tags: standard("smpte240m") }, BT709, BT709, {
    exception: "Chromium has no such matrix",
  }),
  FCC: row({ tags: standard("fcc", "bt709", "bt709"), size: HD }, BT709),
};
