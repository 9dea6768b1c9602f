/** What a page load was like, in milliseconds; `shift` is the cumulative layout shift. */
export type Load = { firstPaint: number; largestPaint: number; blocked: number; shift: number };

/** Lighthouse 13 on phones: the value of 90 points, that of 50, and the weight. Its speed index, of a tenth, is left out. */
const CURVES: Record<keyof Load, { p10: number; median: number; weight: number }> = {
  firstPaint: { p10: 1800, median: 3000, weight: 10 },
  largestPaint: { p10: 2500, median: 4000, weight: 25 },
  blocked: { p10: 200, median: 600, weight: 30 },
  shift: { p10: 0.1, median: 0.25, weight: 25 },
};
/** The inverse of the complementary error function at 1/5: the distance of p10 from the median. */
const TENTH = 0.9061938024368232;

/** The points, from 0 to 100, that Lighthouse gives for the performance of a load: log-normal for each metric. */
export function scoreOf(load: Load): number {
  let points = 0;
  let weights = 0;
  for (const [name, { p10, median, weight }] of Object.entries(CURVES)) {
    const distance =
      (Math.log(Math.max(load[name as keyof Load], Number.EPSILON) / median) * TENTH) / Math.log(median / p10);
    points += (weight * (1 - erf(distance))) / 2;
    weights += weight;
  }
  return (100 * points) / weights;
}

/** Abramowitz and Stegun, 7.1.26: exact to 1.5e-7. */
function erf(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}
