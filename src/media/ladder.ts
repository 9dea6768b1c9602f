import type { Rate } from "#lib/codecs";
import type { EncodingSpec, Rung } from "./encoding-spec.ts";

export type PlannedRendition = {
  name: string;
  width: number;
  height: number;
  /** bit/s */
  maxBitrate: number;
  /** bits */
  buffer: number;
  crf: number;
  /** Estimated quality, 0 to 100, where it was measured (per-title/score.ts). */
  score?: number | undefined;
};

// A source slightly larger than a rung (1088 lines for 1080) is treated as that rung; a rung this close below the
// previous one would save a viewer nothing.
const SAME_STEP = 1.08;
const NEXT_STEP = 1.2;
const SMALLEST_SIDE = 16;

const even = (value: number) => Math.max(SMALLEST_SIDE, Math.round(value / 2) * 2);
const evenDown = (value: number) => Math.max(SMALLEST_SIDE, Math.floor(value / 2) * 2);

/**
 * The renditions for a video with display size `width` x `height`, largest first, never larger than the source. Rungs
 * are chosen by the short side, so that vertical, square and wide videos get sizes of their own aspect ratio.
 */
export function planLadder(width: number, height: number, rate: Rate, spec: EncodingSpec): PlannedRendition[] {
  const { ladder, max_pixels } = spec.video;
  const fit = Math.min(
    1,
    Math.sqrt(max_pixels / (width * height)),
    ladder[0] ? ladder[0].height / Math.min(width, height) : 1,
  );
  const short = evenDown(Math.min(width, height) * fit);
  const exact = ladder.find((rung) => rung.height <= short);
  const top = exact && short <= exact.height * SAME_STEP ? exact.height : short;

  const sides = [top];
  for (const { height: side, only_below } of ladder) {
    if (side * NEXT_STEP > (sides.at(-1) ?? 0)) continue;
    if (only_below === undefined || top < only_below) sides.push(side);
  }
  const scale = (side: number, target: number) => (target * side) / Math.min(width, height);
  return sides.map((side) => {
    // Rounding to even must not exceed the source; an odd edge of the source is rounded down.
    const size = {
      width: Math.min(even(scale(width, side)), evenDown(width)),
      height: Math.min(even(scale(height, side)), evenDown(height)),
    };
    const name = ladder.find((rung) => rung.height === side)?.name ?? `${side}p`;
    return { name, ...size, ...bitrates(side, size.width * size.height, rate, spec) };
  });
}

/**
 * The renditions that were chosen for a source of this display size; null when there was no choice, or when it was for
 * another source.
 */
export function titleLadder(width: number, height: number, { video }: EncodingSpec): PlannedRendition[] | null {
  const { title } = video;
  if (title?.source_width !== width || title.source_height !== height) return null;
  return title.rungs.map(({ max_bitrate, ...rung }) => ({ ...rung, maxBitrate: max_bitrate }));
}

/**
 * A rendition of the size of the source, of which no side is odd; null where the specification has none. Above the ladder, its
 * cap is that of the largest rung by the area, too.
 */
export function originalRendition(
  width: number,
  height: number,
  rate: Rate,
  spec: EncodingSpec,
): PlannedRendition | null {
  const { original, ladder } = spec.video;
  const pixels = width * height;
  if (!original || width % 2 !== 0 || height % 2 !== 0) return null;
  if (Math.max(width, height) > original.max_side || pixels > original.max_pixels) return null;
  const side = Math.min(width, height);
  const name = ladder.find((rung) => rung.height === side)?.name ?? `${side}p`;
  const { maxBitrate, buffer, crf } = bitrates(side, pixels, rate, spec, Number.POSITIVE_INFINITY);
  const cap = Math.min(maxBitrate, original.max_bitrate);
  return { name, width, height, maxBitrate: cap, buffer: Math.round((buffer * cap) / maxBitrate), crf };
}

/** bit/s, of sizes far below their rung. A rung with a lower cap keeps that. */
const LEAST_BITRATE = 100_000;

/** Caps of sizes between two rungs are proportional to their area; above the standard frame rate the factor applies. */
function bitrates(side: number, pixels: number, rate: Rate, spec: EncodingSpec, mostShare = 1.5) {
  const { ladder, high_frame_rate_factor, standard_frame_rate } = spec.video;
  const above = ladder.findLast((rung) => rung.height >= side) ?? (ladder[0] as Rung);
  const share = Math.min(mostShare, pixels / (above.width * above.height));
  const isFast = rate.num / rate.den > standard_frame_rate * 1.01;
  const factor = share * (isFast ? high_frame_rate_factor : 1);
  const least = Math.min(LEAST_BITRATE, above.max_bitrate);
  const maxBitrate = Math.max(least, Math.round((above.max_bitrate * factor) / 1000) * 1000);
  return { maxBitrate, buffer: Math.round((maxBitrate * above.buffer) / above.max_bitrate), crf: above.crf };
}

const STANDARD_RATES: Rate[] = [
  { num: 24000, den: 1001 },
  { num: 24, den: 1 },
  { num: 25, den: 1 },
  { num: 30000, den: 1001 },
  { num: 30, den: 1 },
  { num: 48, den: 1 },
  { num: 50, den: 1 },
  { num: 60000, den: 1001 },
  { num: 60, den: 1 },
];

/**
 * The constant frame rate to encode at. All renditions need the same frame grid, or segments would not be aligned:
 * variable rates are rounded to a standard rate, and rates above the limit are divided (120 becomes 60).
 */
export function chooseRate(average: Rate, declared: Rate, spec: EncodingSpec): Rate {
  const value = (rate: Rate) => rate.num / rate.den;
  let rate = value(average) >= 1 ? average : declared;
  if (!(value(rate) >= 1)) return value(rate) > 0 ? { num: 1, den: 1 } : { num: 30, den: 1 };
  const limit = spec.video.max_frame_rate;
  const divisor = Math.ceil(value(rate) / (limit * 1.001));
  if (divisor > 1) rate = { num: rate.num, den: rate.den * divisor };
  // Containers with millisecond timestamps (matroska, flv) report 29.97 as 29.97002997 or 30.0003.
  const standard = STANDARD_RATES.find((known) => Math.abs(value(known) / value(rate) - 1) < 0.0004);
  if (standard) return standard;
  const isSteady = Math.abs(value(average) / value(declared) - 1) < 0.001;
  if (isSteady && rate.den <= 1001 && rate.num <= 120_000) return rate;
  // A phone that records at 30 and drops some frames reports an average of 29.6.
  const meant = STANDARD_RATES.find((known) => value(known) === value(declared));
  if (meant && value(meant) <= limit && value(rate) > value(meant) * 0.75) return meant;
  const nearest = STANDARD_RATES.toSorted(
    (a, b) => Math.abs(value(a) - value(rate)) - Math.abs(value(b) - value(rate)),
  )[0];
  return value(rate) < 23 || !nearest ? { num: Math.round(value(rate)), den: 1 } : nearest;
}
