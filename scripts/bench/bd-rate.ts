/** One encode: kbit/s, and VMAF. */
export type RatePoint = { kbits: number; vmaf: number };

/** The steps of the range of VMAF that two curves share. */
const STEPS = 200;

/**
 * The bits of `ours` divided by those of `theirs` at equal VMAF: the Bjøntegaard delta rate (ITU-T VCEG-M33) plus one. The
 * logarithm of the rate is interpolated as a function of VMAF by monotone cubic Hermite splines (Fritsch and Carlson, 1980), as
 * in JCT-VC's common test conditions, and averaged over the range that both curves have. NaN when they share none.
 */
export function bitsAtEqualVmaf(ours: readonly RatePoint[], theirs: readonly RatePoint[]): number {
  const a = curveOf(ours);
  const b = curveOf(theirs);
  const from = Math.max(a.from, b.from);
  const to = Math.min(a.to, b.to);
  if (!(to > from)) return Number.NaN;
  let sum = 0;
  for (let step = 0; step <= STEPS; step++) {
    const vmaf = from + ((to - from) * step) / STEPS;
    sum += a.at(vmaf) - b.at(vmaf);
  }
  return Math.exp(sum / (STEPS + 1));
}

function curveOf(points: readonly RatePoint[]) {
  const sorted = points.toSorted((a, b) => a.vmaf - b.vmaf);
  const x = sorted.map(({ vmaf }) => vmaf);
  const y = sorted.map(({ kbits }) => Math.log(kbits));
  const value = (list: readonly number[], index: number) => list[index] as number;
  const widths = x.slice(1).map((one, index) => one - value(x, index));
  const slopes = widths.map((width, index) => (value(y, index + 1) - value(y, index)) / width);
  const tangents = x.map((_, index) => {
    const before = slopes[index - 1];
    const after = slopes[index];
    if (before === undefined || after === undefined) return before ?? after ?? 0;
    if (before * after <= 0) return 0;
    // The weighted harmonic mean keeps the curve monotone.
    const left = value(widths, index - 1);
    const right = value(widths, index);
    const p = 2 * right + left;
    const q = right + 2 * left;
    return (p + q) / (p / before + q / after);
  });
  const at = (vmaf: number) => {
    const index = Math.max(
      0,
      Math.min(
        x.length - 2,
        x.findLastIndex((one) => one <= vmaf),
      ),
    );
    const width = value(widths, index);
    const t = (vmaf - value(x, index)) / width;
    return (
      value(y, index) * (1 + 2 * t) * (1 - t) ** 2 +
      value(tangents, index) * width * t * (1 - t) ** 2 +
      value(y, index + 1) * t ** 2 * (3 - 2 * t) +
      value(tangents, index + 1) * width * t ** 2 * (t - 1)
    );
  };
  return { from: value(x, 0), to: value(x, x.length - 1), at };
}
