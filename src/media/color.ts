import { HDR_SIGNALS, type HdrFormat } from "#lib/codecs";
import { readColors } from "#lib/isobmff";

/** As ffprobe names them; "" or "unknown" where the file does not state it. */
export type ColorTags = { matrix: string; primaries: string; transfer: string; range: string };
/** Values for the encoder: ffmpeg's names of ISO/IEC 23091-2 values that every player handles. */
type Standard = { matrix: string; primaries: string; transfer: string };

const BT709: Standard = { matrix: "bt709", primaries: "bt709", transfer: "bt709" };
const BT601: Standard = { matrix: "smpte170m", primaries: "smpte170m", transfer: "smpte170m" };
const BT2020: Standard = { matrix: "bt2020nc", primaries: "bt2020", transfer: "bt709" };
/** PAL with the primaries of `BT601`: browsers show these where only the matrix is stated. */
const PAL: Standard = { matrix: "bt470bg", primaries: "smpte170m", transfer: "smpte170m" };
const KEPT = [BT709, BT601, PAL];
const KEPT_PRIMARIES = ["bt709", "smpte170m", "bt470bg"];
const SDR_TRANSFERS = ["bt709", "smpte170m", "iec61966-2-1"];
/**
 * Browsers show all of these with the curve of sRGB. With that of BT.1886, the dark channel of a saturated green was up to 12
 * of 255 off after a conversion of primaries.
 */
const SHOWN_TRANSFER = "iec61966-2-1";
/** What browsers show, but other players cannot be expected to. It is converted to BT.709. */
const CONVERTED_MATRICES = ["bt2020nc", "bt2020c", "fcc", "smpte240m", "ycgco"];
const CONVERTED_PRIMARIES = ["bt2020", "smpte431", "smpte432", "bt470m", "film", "ebu3213"];
/** Pixels of these formats have no matrix. */
const RGB = /rgb|bgr|gbr|pal8/;

const isUnknown = (value: string) => value === "" || value === "unknown";

/** Chromium's rule for untagged video: below 720 lines, as they are stored, and in full range, it is BT.601. */
const untagged = (lines: number, isFull = false): Standard => (lines < 720 || isFull ? BT601 : BT709);

/**
 * The colors of SDR video as its file states them; what is missing, or what players do not handle, is completed by the
 * rule that browsers follow for it: without a matrix they ignore the primaries too.
 */
function standardOf({ matrix, primaries, transfer }: ColorTags, lines: number, isFull: boolean): Standard {
  if (isUnknown(matrix)) return untagged(lines, isFull);
  const isConverted = CONVERTED_MATRICES.includes(matrix);
  const ofConverted = matrix.startsWith("bt2020") ? BT2020 : BT709;
  const base = KEPT.find((one) => one.matrix === matrix) ?? (isConverted ? ofConverted : untagged(lines));
  return {
    matrix: isConverted ? matrix : base.matrix,
    primaries: [...KEPT_PRIMARIES, ...CONVERTED_PRIMARIES].includes(primaries) ? primaries : base.primaries,
    transfer: SDR_TRANSFERS.includes(transfer) ? transfer : base.transfer,
  };
}

const tagged = ({ matrix, primaries, transfer }: Standard, range: "tv" | "pc") =>
  `setparams=colorspace=${matrix}:color_primaries=${primaries}:color_trc=${transfer}:range=${range}`;

type Source = { color: ColorTags | null; pixelFormat: string; width: number; height: number; rotation: number };

const LIMITED_709 = "zscale=m=709:r=limited";
/**
 * Filters to BT.709, through R'G'B', which has no values for colors outside the smaller gamut: Y'CbCr has, and limits each
 * of its components, which made a red of 255, 0, 0 in BT.2020 to 215, 0, 0.
 */
const to709 = (options = `p=709:t=${SHOWN_TRANSFER}`): string[] => [
  `zscale=m=gbr:${options}:r=full`,
  "format=gbrp10le",
  LIMITED_709,
];

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
  ...to709("t=709"),
];

type ColorFilters = { convert: string[]; tags: string[]; matrix: string };
const to709Filters = (...convert: string[]): ColorFilters => ({
  convert,
  tags: [tagged(BT709, "tv")],
  matrix: BT709.matrix,
});

/**
 * Filters for the colors of SDR renditions: those that convert what players cannot be expected to show (HDR, wide gamuts,
 * RGB, full range) to BT.709 in limited range, and the tags of the result, which are to follow the last filter. Without
 * tags, a rendition of 1080 lines and one of 480 would be shown in different colors.
 */
export function colorFilters(source: Source & { isHdr: boolean }): ColorFilters {
  const { color, pixelFormat, isHdr } = source;
  // A plan of an earlier version: its other tasks have no tags.
  if (!color) return { convert: isHdr ? toneMap(undefined) : [], tags: [], matrix: BT709.matrix };
  if (isHdr) return to709Filters(...toneMap(color.transfer));
  if (RGB.test(pixelFormat)) {
    const isWide = CONVERTED_PRIMARIES.includes(color.primaries);
    const primaries = isWide ? color.primaries : BT709.primaries;
    const stated = tagged({ matrix: "gbr", primaries, transfer: SHOWN_TRANSFER }, "pc");
    return to709Filters("format=gbrp", stated, ...(isWide ? to709() : [LIMITED_709]));
  }
  const isFull = color.range === "pc" || pixelFormat.startsWith("yuvj");
  const standard = standardOf(color, linesOf(source), isFull);
  if (CONVERTED_MATRICES.includes(standard.matrix) || CONVERTED_PRIMARIES.includes(standard.primaries))
    return to709Filters(tagged({ ...standard, transfer: SHOWN_TRANSFER }, isFull ? "pc" : "tv"), ...to709());
  const convert = isFull ? [tagged(standard, "pc"), "zscale=r=limited"] : [];
  return { convert, tags: [tagged(standard, "tv")], matrix: standard.matrix };
}

/** Lines as they are stored. */
const linesOf = ({ width, height, rotation }: Pick<Source, "width" | "height" | "rotation">) =>
  rotation % 180 === 0 ? height : width;

/** The matrices of HDR video, by ffmpeg's names; anything else is understood as BT.2020. */
const HDR_MATRICES = ["bt2020nc", "bt2020c", "ictcp", "bt709"];
const HDR_PRIMARIES = ["bt2020", "smpte432", "smpte431", "bt709"];

/**
 * The same for renditions that keep HDR: its signal is not changed if it is that of ITU-R BT.2100 in Y'CbCr and limited
 * range, which is all that players can be expected to show. Other matrices, primaries and ranges are converted to that.
 */
export function hdrFilters(
  { color, pixelFormat }: Pick<Source, "color" | "pixelFormat">,
  format: HdrFormat,
): ColorFilters {
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

/**
 * Whether a stream may be copied: all players show its colors as the other renditions state them. Where it does not state
 * all of them, Chromium goes by the number of lines alone, and other players by its matrix.
 */
export function isCopyableColor(color: ColorTags, lines: number): boolean {
  const { matrix, primaries, transfer, range } = color;
  if (range === "pc") return false;
  const isPartial = [matrix, primaries, transfer].some(isUnknown);
  return (
    (isUnknown(matrix) || KEPT.some((one) => one.matrix === matrix)) &&
    (isUnknown(primaries) || KEPT_PRIMARIES.includes(primaries)) &&
    (isUnknown(transfer) || SDR_TRANSFERS.includes(transfer)) &&
    (!isPartial || isUnknown(matrix) || (matrix === BT709.matrix) === (untagged(lines) === BT709))
  );
}

/** Whether HDR video has exactly the signal that `hdrFilters` produces, and states all of it. */
export const isKeptHdrColor = (color: ColorTags | null, format: HdrFormat): boolean =>
  color?.matrix === BT2020.matrix &&
  color.primaries === BT2020.primaries &&
  color.transfer === HDR_SIGNALS[format].transfer &&
  color.range === "tv";

/**
 * ISO/IEC 23091-2, 8.1 and 8.3: the values that Chromium converts, with zimg's names. It shows the primaries of BT.601 for
 * 525 lines (6) and SMPTE ST 240 (7) as those of BT.709.
 */
const PRIMARIES: Record<number, string> = {
  1: "709",
  4: "bt470m",
  5: "bt470bg",
  6: "709",
  7: "709",
  8: "film",
  9: "2020",
  11: "smpte431",
  12: "smpte432",
  22: "jedec-p22",
};
const MATRICES: Record<number, string> = {
  1: "709",
  4: "fcc",
  5: "470bg",
  6: "170m",
  7: "7",
  8: "ycgco",
  9: "2020_ncl",
};
const UNSPECIFIED = 2;

/** JPEG and WebP have the matrix of BT.601 (JFIF 1.02; RFC 9649, 3.5), in full and in limited range. */
const IMAGE_COLORS = {
  jpeg: { zimg: "m=170m:r=full", plain: "out_color_matrix=bt601:out_range=full", format: "yuvj420p" },
  webp: { zimg: "m=170m:r=limited", plain: "out_color_matrix=bt601:out_range=limited", format: "yuv420p" },
  rgb: { zimg: null, plain: "", format: "gbrp" },
};

/**
 * A filter that converts frames of SDR video to the colors of an image for the web, as browsers show the video: sRGB, which
 * has the primaries of BT.709. `init` is the init segment of the video, whose `colr` box states the source's; what does not
 * state all of its colors is understood as browsers do. Without an init segment only the matrix is converted, where the
 * stream states one.
 */
export function toImageColors(init: Buffer | null, kind: keyof typeof IMAGE_COLORS): string {
  const { zimg, plain, format } = IMAGE_COLORS[kind];
  const source = init && sourceOf(init);
  if (source) {
    // Like browsers through R'G'B': what Y'CbCr has outside of it is cut off there.
    const from = `min=${source.matrix}:pin=${source.primaries}:tin=${SHOWN_TRANSFER}`;
    const rgb = `zscale=${from}:m=gbr:p=709:t=${SHOWN_TRANSFER}:r=full,format=gbrp`;
    return zimg ? `${rgb},zscale=${zimg},format=${format}` : rgb;
  }
  return plain ? `scale=${plain},format=${format}` : `format=${format}`;
}

function sourceOf(init: Buffer): { matrix: string; primaries: string } | null {
  const { width, height, colors } = readColors(init);
  // zimg refuses subsampled frames of odd sizes.
  if (width % 2 !== 0 || height % 2 !== 0) return null;
  if (!colors || [colors.matrix, colors.primaries, colors.transfer].includes(UNSPECIFIED))
    return { matrix: untagged(height) === BT601 ? "170m" : "709", primaries: "709" };
  const matrix = MATRICES[colors.matrix];
  const primaries = PRIMARIES[colors.primaries];
  return matrix && primaries ? { matrix, primaries } : null;
}
