import { boxes, find, isLong, uint32 } from "./boxes.ts";
import { type Edit, editsOf, presentedIn } from "./edits.ts";
import { readOffsets, readSizes, readTimes } from "./sample-index.ts";

/** A sample as the edit list presents it, in seconds on the timeline of the file, and where it is in the file. */
export type PresentedSample = { start: number; end: number; offset: number; size: number };

/** More than the cues of a subtitle, and the pauses between them. */
const MAX_SAMPLES = 500_000;
/** Each edit may present all samples. */
const MAX_PRESENTED = 500_000;

/**
 * The samples of a track of a `moov` box without fragments, by the number of the track, in the order in which they are presented:
 * several times where several edits present them. Null for tables that do not fit together, and for more samples than a text has.
 */
export function readTextSamples(moov: Buffer, index: number): PresentedSample[] | null {
  try {
    const root = find(moov, ["moov"]);
    const mvhd = root && find(moov, ["mvhd"], root);
    const track = root && [...boxes(moov, root.start, root.end)].filter(({ type }) => type === "trak")[index];
    const mdhd = track && find(moov, ["mdia", "mdhd"], track);
    const stbl = track && find(moov, ["mdia", "minf", "stbl"], track);
    if (!mvhd || !mdhd || !stbl) return null;
    const movieScale = uint32(moov, mvhd, isLong(moov, mvhd) ? 20 : 12);
    const scale = uint32(moov, mdhd, isLong(moov, mdhd) ? 20 : 12);
    const sizes = movieScale > 0 && scale > 0 ? readSizes(moov, stbl, MAX_SAMPLES) : null;
    const offsets = sizes && readOffsets(moov, stbl, sizes);
    const times = sizes && readTimes(moov, stbl, { count: sizes.length, scale, shift: 0 });
    const edits = editsOf(moov, track, { scale, movieScale });
    if (!sizes || !offsets || !times || !edits) return null;
    const { dts, pts, ticks } = times;
    const rangeOf = (sample: number) => {
      const start = pts[sample] as number;
      return { start, end: start + (dts[sample + 1] ?? ticks / scale) - (dts[sample] as number) };
    };
    const found: PresentedSample[] = [];
    for (const edit of edits)
      for (let sample = firstOf(edit, pts); sample < sizes.length; sample++) {
        const range = rangeOf(sample);
        if (range.start > mediaEndOf(edit)) break;
        const shown = presentedIn(edit, range);
        // Edits are rounded to the clock of the movie, so that the neighbors of what they present are touched.
        if (!shown || (shown.end - shown.start < 1 / movieScale && range.end - range.start >= 1 / movieScale)) continue;
        if (found.length === MAX_PRESENTED) return null;
        found.push({ ...shown, offset: offsets[sample] as number, size: sizes[sample] as number });
      }
    return found;
  } catch {
    return null;
  }
}

/** The last sample that begins at or before an edit: the first that it may present. Samples of text are in the order of their times. */
function firstOf({ mediaFrom }: Edit, pts: Float64Array): number {
  let low = 0;
  let high = pts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((pts[middle] as number) <= mediaFrom) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

const mediaEndOf = ({ from, to, mediaFrom, rate }: Edit): number =>
  rate === 0 ? mediaFrom : mediaFrom + (to - from) * rate;
