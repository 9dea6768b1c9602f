import { MAX_PIXEL_ASPECT, type VideoTrack } from "./probe.ts";

/** By how much the aspect of a frame may differ from that of the track without bars: less than a pixel or two at the edge. */
const TOLERANCE = 0.01;

/**
 * Filters that return frames of the size and format of the track, whatever becomes of them in the middle of the source:
 * another size is scaled, another aspect gets bars. A frame that is as the track states is passed on as it is. They precede
 * all filters that cannot change.
 */
export function constantFrames({ stored, pixelFormat }: Pick<VideoTrack, "stored" | "pixelFormat">): string[] {
  // A plan of an earlier version: its other tasks do not have them.
  if (!stored) return [];
  const { width, height, pixelAspect } = stored;
  const { num, den } = pixelAspect;
  const aspect = `(${width * num}/${height * den})`;
  // As for the track, whose pixels are square where their aspect is not plausible.
  const shown = `if(between(sar,${1 / MAX_PIXEL_ASPECT},${MAX_PIXEL_ASPECT}),dar,a)`;
  const isAlike = `lt(abs(${shown}/${aspect}-1),${TOLERANCE})`;
  // A wider frame gets less height, a taller one less width; both are even, for the chroma and for the fields.
  const side = (length: number, factor: string) =>
    `if(${isAlike},${length},max(2,2*round(min(1,${factor})*${length}/2)))`;
  const scaled = [`w='${side(width, `${shown}/${aspect}`)}'`, `h='${side(height, `${aspect}/(${shown})`)}'`];
  // The filter for bars rounds down to whole samples of chroma.
  const unit = /^yuv41[01]/.test(pixelFormat) ? 4 : 2;
  const [fullWidth, fullHeight] = [width, height].map((length) => Math.ceil(length / unit) * unit);
  const isWhole = fullWidth === width && fullHeight === height;
  return [
    `scale=${scaled.join(":")}:eval=frame:flags=bicubic`,
    ...(pixelFormat ? [`format=${pixelFormat}`] : []),
    `pad=${fullWidth}:${fullHeight}:'2*floor((${width}-iw)/4)':'2*floor((${height}-ih)/4)':eval=frame`,
    ...(isWhole ? [] : [`crop=${width}:${height}:0:0:exact=1`]),
    `setsar=${num}/${den}`,
  ];
}
