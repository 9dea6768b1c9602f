import type { PlannedRendition } from "../ladder.ts";
import { scoreOf } from "./score.ts";

/** What a rung of the ladder takes and gives at one CRF, without a cap. */
export type Point = {
  crf: number;
  /** bit/s */
  bits: number;
  quality: number;
};

/**
 * A rung of the ladder with two points of its curve of rate and quality. `peak`: bits of the busiest sample, relative to the mean.
 */
export type Candidate = { rung: PlannedRendition; points: readonly [Point, Point]; peak: number };

export type ChosenRung = PlannedRendition & { score: number };

/** Relative to the rung's own CRF. Beyond these, two points say too little about the curve. */
const CRF_RANGE = { below: 4, above: 14 };
/**
 * How many steps of the ladder a rung may be larger than the one that it replaces: with more, small rungs would take many times
 * the processor time, and early playback would begin with a large one.
 */
const LARGER_STEPS = 1;
/** Another size must save as much, because the estimates have errors. */
const LEAST_SAVING = 0.05;
/** Who receives the lower one of two rungs whose rates are closer than this can receive the upper one as well. */
const LEAST_RATIO = 1.25;
/** bit/s that every connection has that plays video: rungs below one of so few are not needed. */
const ENOUGH_BITS = 200_000;
/** Above a score, a difference that cannot be seen: the rung with more bits is of no use. */
const SAME = { above: 90, difference: 0.5 };

/**
 * The rungs of one source, largest first, of `candidates` in the order of the ladder. Each replaces a rung of the ladder: the
 * size and CRF with the fewest bits for the quality that this rung has within its cap, which are points of the convex hull of
 * rate and quality. Then rungs are left out that no viewer needs. A copied `top` stays, with a second rung.
 */
export function chooseRungs(candidates: readonly Candidate[], { isTopCopied }: { isTopCopied: boolean }): ChosenRung[] {
  const chosen: Choice[] = [];
  let largest = 0;
  for (const [index, candidate] of candidates.entries()) {
    const own = withinCap(candidate);
    const isCopy = isTopCopied && index === 0;
    const best = isCopy ? { ...own, size: 0 } : cheapest(candidates, { own, index, largest });
    const above = chosen.at(-1);
    // Never left out with the copy, nor instead of it: its quality is that of the source.
    if (above && !above.isCopy) {
      if (isNeedless(above, best, candidates[above.size]?.peak ?? 1)) continue;
      if (looksAlike(above, best)) chosen.pop();
    }
    chosen.push({ ...best, limits: candidate.rung, isCopy });
    largest = best.size;
  }
  return named(chosen, candidates);
}

type Choice = Point & { size: number; limits: PlannedRendition; isCopy: boolean };

const isNeedless = (above: Point, below: Point, peak: number) =>
  above.bits < below.bits * LEAST_RATIO || above.bits * peak <= ENOUGH_BITS;

function looksAlike(above: Point, below: Point): boolean {
  const score = scoreOf(below.quality);
  return score >= SAME.above && scoreOf(above.quality) - score < SAME.difference;
}

/** The point at a CRF, between or beyond the two: the logarithm of the rate and the quality are linear in it. */
function pointAt([a, b]: Candidate["points"], crf: number): Point {
  const share = (crf - a.crf) / (b.crf - a.crf);
  const bits = a.bits * (b.bits / a.bits) ** share;
  return { crf, bits, quality: a.quality + (b.quality - a.quality) * share };
}

/** The rung as the ladder has it: at its CRF, or with the bits of its cap. */
function withinCap({ rung, points }: Candidate): Point {
  const [a, b] = points;
  if (a.bits <= rung.maxBitrate || b.bits >= a.bits) return pointAt(points, a.crf);
  const share = Math.log(rung.maxBitrate / a.bits) / Math.log(b.bits / a.bits);
  return pointAt(points, a.crf + (b.crf - a.crf) * share);
}

/** The size and CRF with the fewest bits for the quality of `own`, not larger than that of the rung above. */
function cheapest(
  candidates: readonly Candidate[],
  { own, index, largest }: { own: Point; index: number; largest: number },
): Point & { size: number } {
  let best = { ...own, size: index };
  for (const [size, { rung, points }] of candidates.entries()) {
    if (size < Math.max(largest, index - LARGER_STEPS) || size === index) continue;
    const [a, b] = points;
    if (b.quality >= a.quality) continue;
    const crf = a.crf + ((own.quality - a.quality) / (b.quality - a.quality)) * (b.crf - a.crf);
    if (crf < rung.crf - CRF_RANGE.below || crf > rung.crf + CRF_RANGE.above) continue;
    const point = pointAt(points, crf);
    if (point.bits > rung.maxBitrate) continue;
    if (point.bits < Math.min(best.bits, own.bits * (1 - LEAST_SAVING))) best = { ...point, size };
  }
  return best;
}

/** The rungs by size and then by rate, with the names of the sizes. A size that is used again is numbered. */
function named(chosen: readonly Choice[], candidates: readonly Candidate[]): ChosenRung[] {
  const count = new Map<string, number>();
  return chosen.map(({ size, crf, quality, limits, isCopy }) => {
    const { rung } = candidates[size] as Candidate;
    const number = (count.get(rung.name) ?? 0) + 1;
    count.set(rung.name, number);
    const { width, height } = rung;
    return {
      name: number === 1 ? rung.name : `${rung.name}-${number}`,
      width,
      height,
      // The cap is that of the rung that is replaced, and of the size.
      ...(limits.maxBitrate < rung.maxBitrate ? capsOf(limits) : capsOf(rung)),
      // What only the cap limits, it limits better than a CRF that was estimated from samples.
      crf: rung === limits ? rung.crf : Math.round(crf * 10) / 10,
      score: isCopy ? 100 : scoreOf(quality),
    };
  });
}

const capsOf = ({ maxBitrate, buffer }: PlannedRendition) => ({ maxBitrate, buffer });
