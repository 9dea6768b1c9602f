import { expect, test } from "vitest";
import { bitsAtEqualVmaf, type RatePoint } from "#scripts/bench/bd-rate.ts";

const theirs: RatePoint[] = [
  { kbits: 400, vmaf: 70 },
  { kbits: 800, vmaf: 82 },
  { kbits: 1600, vmaf: 91 },
  { kbits: 3200, vmaf: 96 },
];

test("a curve with a fifth fewer bits at each quality has a BD-rate of -20 %", () => {
  const ours = theirs.map(({ kbits, vmaf }) => ({ kbits: kbits * 0.8, vmaf }));
  expect(bitsAtEqualVmaf(ours, theirs)).toBeCloseTo(0.8, 6);
  expect(bitsAtEqualVmaf(theirs, ours)).toBeCloseTo(1.25, 6);
  expect(bitsAtEqualVmaf(theirs, theirs)).toBeCloseTo(1, 6);
});

test("only the range of quality that both curves have is compared, whatever the order of the points", () => {
  const [first, second, third] = theirs.map(({ kbits, vmaf }) => ({ kbits: kbits / 2, vmaf })) as [
    RatePoint,
    RatePoint,
    RatePoint,
  ];
  expect(bitsAtEqualVmaf([third, first, second], theirs)).toBeCloseTo(0.5, 1);
  const better = theirs.map(({ kbits, vmaf }) => ({ kbits, vmaf: vmaf + 27 }));
  expect(bitsAtEqualVmaf(better, theirs)).toBeNaN();
});

test("between two points the curve of a logarithmic encoder is a line", () => {
  const line = [70, 80, 90].map((vmaf) => ({ kbits: 2 ** (vmaf / 10), vmaf }));
  const denser = [70, 72, 75, 81, 90].map((vmaf) => ({ kbits: 2 ** (vmaf / 10), vmaf }));
  expect(bitsAtEqualVmaf(denser, line)).toBeCloseTo(1, 6);
});
