import { HDR_SIGNALS, type HdrFormat } from "#lib/codecs";
import type { EncodingSpec } from "./encoding-spec.ts";
import type { PlannedRendition } from "./ladder.ts";

type Watermark = NonNullable<EncodingSpec["video"]["watermark"]>;

/** The input with the image at an absolute path. Only a PNG image is read, which is an untrusted file too. */
export const watermarkInput = (path: string): string[] => [
  ...["-protocol_whitelist", "file,pipe", "-format_whitelist", "png_pipe", "-max_streams", "1"],
  ...["-f", "png_pipe", "-i", `file:${path}`],
];

/** The luminance of white in graphics, in cd/m² (ITU-R BT.2408, table 1). */
const GRAPHICS_WHITE = 203;

/**
 * Filters for the image, in the colors of the video. Its width is one of the largest rendition, or less where it would be
 * higher than the video; the others are scaled from that one, with the image on it.
 */
export function watermarkImage(
  { opacity, width_percent }: Watermark,
  { width, height }: PlannedRendition,
  { matrix, hdr }: { matrix: string; hdr: HdrFormat | null },
): string {
  const side = Math.max(2, Math.round((width * width_percent) / 200) * 2);
  const visible = `format=rgba,colorchannelmixer=aa=${opacity}`;
  // An image of 1 x 4096 pixels would otherwise become one of gigabytes, and of 4096 x 1 one without a row.
  const fitted = (of: "iw" | "ih") => `max(2\\,round(${of}*min(${side}/iw\\,${height}/ih)/2)*2)`;
  const size = `scale=w=${fitted("iw")}:h=${fitted("ih")}:flags=bicubic`;
  if (!hdr) return `${visible},${size}:out_color_matrix=${matrix}:out_range=tv,format=yuva420p`;
  const srgb = "setparams=colorspace=gbr:color_primaries=bt709:color_trc=iec61966-2-1:range=pc";
  const to = `zscale=m=2020_ncl:p=2020:t=${HDR_SIGNALS[hdr].transfer}:r=limited:npl=${GRAPHICS_WHITE}`;
  return `${visible},${size},format=gbrap16le,${srgb},${to},format=yuva444p10le,format=yuva420p10le`;
}

/** Distance from the edges, relative to the short side. */
const WATERMARK_MARGIN = 0.03;

/** The filter that puts it on the video, with further options of ffmpeg's `overlay`. */
export function watermarkOverlay(
  { position }: Watermark,
  { width, height }: PlannedRendition,
  overlay: readonly string[],
): string {
  const margin = Math.round((Math.min(width, height) * WATERMARK_MARGIN) / 2) * 2;
  // The margin of a mark that leaves no space for it is smaller: nothing is cut off.
  const at = (space: string, isStart: boolean) =>
    isStart ? `min(${margin}\\,${space})` : `${space}-min(${margin}\\,${space})`;
  const x = position === "center" ? "(W-w)/2" : at("(W-w)", position.endsWith("left"));
  const y = position === "center" ? "(H-h)/2" : at("(H-h)", position.startsWith("top"));
  return `overlay=${[`x=${x}`, `y=${y}`, ...overlay].join(":")}`;
}
