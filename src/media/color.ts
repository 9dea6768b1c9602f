import { HDR_SIGNALS, type HdrFormat } from "../lib/hdr.ts";
import { readColors } from "./isobmff.ts";

/** As ffprobe names them; "" or "unknown" where the file does not state it. */
export type ColorTags = { matrix: string; primaries: string; transfer: string; range: string };
/** Values for the encoder: ffmpeg's names of ISO/IEC 23091-2 values that every player handles. */
type Standard = { matrix: string; primaries: string; transfer: string };

const BT709: Standard = { matrix: "bt709", primaries: "bt709", transfer: "bt709" };
const BT601: Standard = { matrix: "smpte170m", primaries: "smpte170m", transfer: "smpte170m" };
const BT2020: Standard = { matrix: "bt2020nc", primaries: "bt2020", transfer: "bt709" };
const PAL: Standard = { matrix: "bt470bg", primaries: "bt470bg", transfer: "smpte170m" };
const KEPT = [BT709, BT601, PAL];
const SDR_TRANSFERS = ["bt709", "smpte170m", "iec61966-2-1"];
/** Pixels of these formats have no matrix. */
const RGB = /rgb|bgr|gbr|pal8/;

/** Chromium's rule for untagged video: below 720 lines it is BT.601. */
const untagged = (height: number): Standard => (height < 720 ? BT601 : BT709);

/**
 * The colors of SDR video as its file states them; what is missing, or what players do not handle, is completed by the
 * rule that browsers follow for it.
 */
function standardOf({ matrix, primaries, transfer }: ColorTags, height: number): Standard {
  const base = [...KEPT, BT2020].find((one) => one.matrix === matrix) ?? untagged(height);
  const isKnown = [...KEPT, BT2020].some((one) => one.primaries === primaries);
  return {
    matrix: base.matrix,
    primaries: isKnown ? primaries : base.primaries,
    transfer: SDR_TRANSFERS.includes(transfer) ? transfer : base.transfer,
  };
}

const tagged = ({ matrix, primaries, transfer }: Standard, range: "tv" | "pc") =>
  `setparams=colorspace=${matrix}:color_primaries=${primaries}:color_trc=${transfer}:range=${range}`;

type Source = { color: ColorTags | null; pixelFormat: string; height: number; isHdr: boolean };

/**
 * Converts PQ or HLG to BT.709: to linear light, into the smaller gamut, highlights rolled off by the curve that John Hable
 * published as "Filmic Tonemapping Operators" (2010), back to a display transfer function.
 */
const toneMap = (transfer: string | undefined): string[] => [
  // The approximation for HLG applies its gamma to each channel instead of the luminance (ITU-R BT.2100, table 5), which
  // was wrong by up to 60 of 255 in saturated colors. That for PQ is a table; without it this filter takes 3.7 times as long.
  `zscale=t=linear:npl=100${transfer === HDR_SIGNALS.hlg.transfer ? ":agamma=false" : ""}`,
  "format=gbrpf32le",
  "zscale=p=bt709",
  "tonemap=tonemap=hable:desat=0",
  "zscale=t=bt709:m=bt709:r=tv",
];

type ColorFilters = { convert: string[]; tags: string[]; matrix: string };

/**
 * Filters for the colors of SDR renditions: those that convert what players cannot be expected to show (HDR, BT.2020, RGB,
 * full range) to BT.709 in limited range, and the tags of the result, which are to follow the last filter. Without tags, a
 * rendition of 1080 lines and one of 480 would be shown in different colors.
 */
export function colorFilters({ color, pixelFormat, height, isHdr }: Source): ColorFilters {
  // A plan of an earlier version: its other tasks have no tags.
  if (!color) return { convert: isHdr ? toneMap(undefined) : [], tags: [], matrix: BT709.matrix };
  const to709 = "zscale=m=709:p=709:t=709:r=limited";
  if (isHdr) return { convert: toneMap(color.transfer), tags: [tagged(BT709, "tv")], matrix: BT709.matrix };
  if (RGB.test(pixelFormat)) {
    const source = "setparams=colorspace=gbr:color_primaries=bt709:color_trc=bt709:range=pc";
    return { convert: ["format=gbrp", source, to709], tags: [tagged(BT709, "tv")], matrix: BT709.matrix };
  }
  const standard = standardOf(color, height);
  const isFull = color.range === "pc" || pixelFormat.startsWith("yuvj");
  if (standard.matrix === BT2020.matrix || standard.primaries === BT2020.primaries) {
    const source = tagged({ ...standard, transfer: "bt709" }, isFull ? "pc" : "tv");
    return { convert: [source, to709], tags: [tagged(BT709, "tv")], matrix: BT709.matrix };
  }
  const convert = isFull ? [tagged(standard, "pc"), "zscale=r=limited"] : [];
  return { convert, tags: [tagged(standard, "tv")], matrix: standard.matrix };
}

/** Of HDR video, by ffmpeg's names; anything else is understood as BT.2020. */
const HDR_MATRICES = ["bt2020nc", "bt2020c", "ictcp", "bt709"];
const HDR_PRIMARIES = ["bt2020", "smpte432", "smpte431", "bt709"];

/**
 * The same for renditions that keep HDR: its signal is not changed if it is that of ITU-R BT.2100 in Y'CbCr and limited
 * range, which is all that players can be expected to show. Other matrices, primaries and ranges are converted to that.
 */
export function hdrFilters({ color, pixelFormat }: Source, format: HdrFormat): ColorFilters {
  const kept = { ...BT2020, transfer: HDR_SIGNALS[format].transfer };
  const tags = [tagged(kept, "tv")];
  const isRgb = RGB.test(pixelFormat);
  const known = (value: string | undefined, all: readonly string[], other: string) =>
    value !== undefined && all.includes(value) ? value : other;
  const source = {
    ...kept,
    matrix: isRgb ? "gbr" : known(color?.matrix, HDR_MATRICES, kept.matrix),
    primaries: known(color?.primaries, HDR_PRIMARIES, kept.primaries),
  };
  const isFull = isRgb || color?.range === "pc";
  if (source.matrix === kept.matrix && source.primaries === kept.primaries && !isFull)
    return { convert: [], tags, matrix: kept.matrix };
  const convert = [tagged(source, isFull ? "pc" : "tv"), "zscale=m=2020_ncl:p=2020:r=limited"];
  return { convert: [...(isRgb ? ["format=gbrp16le"] : []), ...convert], tags, matrix: kept.matrix };
}

/** Whether a stream may be copied: players show its colors as it states them, or as they guess them. */
export const isCopyableColor = ({ matrix, primaries, transfer, range }: ColorTags): boolean =>
  isAbsentOr(
    matrix,
    KEPT.map((one) => one.matrix),
  ) &&
  isAbsentOr(
    primaries,
    KEPT.map((one) => one.primaries),
  ) &&
  isAbsentOr(transfer, SDR_TRANSFERS) &&
  range !== "pc";

/** Whether HDR video has exactly the signal that `hdrFilters` produces, and states all of it. */
export const isKeptHdrColor = (color: ColorTags | null, format: HdrFormat): boolean =>
  color?.matrix === BT2020.matrix &&
  color.primaries === BT2020.primaries &&
  color.transfer === HDR_SIGNALS[format].transfer &&
  color.range === "tv";

const isAbsentOr = (value: string, known: readonly string[]) => ["", "unknown", ...known].includes(value);

/** ISO/IEC 23091-2, 8.1 and 8.3: the values that are converted, with zimg's names. */
const PRIMARIES: Record<number, string> = { 1: "709", 5: "bt470bg", 6: "170m", 9: "2020" };
const MATRICES: Record<number, string> = { 1: "709", 5: "470bg", 6: "170m", 9: "2020_ncl" };

/** JPEG and WebP have the matrix of BT.601 (JFIF 1.02; RFC 9649, 3.5), in full and in limited range. */
const PICTURES = {
  jpeg: { zimg: "m=170m:p=709:t=709:r=full", plain: "out_color_matrix=bt601:out_range=full", format: "yuvj420p" },
  webp: { zimg: "m=170m:p=709:t=709:r=limited", plain: "out_color_matrix=bt601:out_range=limited", format: "yuv420p" },
  rgb: { zimg: "m=gbr:p=709:t=709:r=full", plain: "", format: "gbrp" },
};

/**
 * A filter that converts frames of SDR video to the colors of an image for the web: sRGB, which has the primaries of
 * BT.709. `init` is the init segment of the video, whose `colr` box states the source's; untagged video is understood
 * as browsers do. Without an init segment only the matrix is converted, where the stream states one.
 */
export function toPicture(init: Buffer | null, kind: keyof typeof PICTURES): string {
  const { zimg, plain, format } = PICTURES[kind];
  const source = init && sourceOf(init);
  // The transfer functions of SDR video are shown alike, so none is converted.
  if (source) return `zscale=min=${source.matrix}:pin=${source.primaries}:tin=709:${zimg},format=${format}`;
  return plain ? `scale=${plain},format=${format}` : `format=${format}`;
}

function sourceOf(init: Buffer): { matrix: string; primaries: string } | null {
  const { width, height, colors } = readColors(init);
  // zimg refuses subsampled frames of odd sizes.
  if (width % 2 !== 0 || height % 2 !== 0) return null;
  if (!colors) return height < 720 ? { matrix: "170m", primaries: "170m" } : { matrix: "709", primaries: "709" };
  const matrix = MATRICES[colors.matrix];
  const primaries = PRIMARIES[colors.primaries];
  return matrix && primaries ? { matrix, primaries } : null;
}
