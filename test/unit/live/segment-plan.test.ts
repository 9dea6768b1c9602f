import { expect, test } from "vitest";
import { SegmentPlan } from "#live/cmaf/segment-plan.ts";

/** The lengths of segments with keyframes at these times. */
function segmentsOf(keyframes: readonly number[]): { lengths: number[]; target: number } {
  const plan = new SegmentPlan({ partSeconds: 0.5, targetSegmentSeconds: 2, maxSegmentSeconds: 12 });
  const lengths: number[] = [];
  let start = 0;
  for (const time of keyframes) {
    plan.keyframe(time);
    if (time === 0 || !plan.endsAt(time - start)) continue;
    lengths.push(Number((time - start).toFixed(3)));
    plan.complete(time - start, 0.5);
    start = time;
  }
  return { lengths, target: plan.targets?.segmentSeconds ?? 0 };
}

const steps = (...intervals: number[]) => {
  let time = 0;
  return [0, ...intervals.map((interval) => (time += interval))];
};

test.each([
  ["every 2 s", steps(2, 2, 2, 2), [2, 2, 2, 2], 2],
  ["every second", steps(1, 1, 1, 1, 1, 1), [2, 2, 2], 2],
  ["every 5 s", steps(5, 5, 5), [5, 5, 5], 5],
  ["at most every 2 s, and at scene cuts", steps(2, 2, 1.5, 2, 1.3, 2, 1.7), [2, 2, 1.5, 2, 1.3, 2, 1.7], 2],
  ["at scene cuts from the start", steps(1.7, 2, 1.5, 2, 1.2, 2), [3.7, 3.5, 3.2], 4],
  ["just before the target", steps(1.95, 1.95, 1.95), [1.95, 1.95, 1.95], 2],
])("with keyframes %s", (_, keyframes, lengths, target) => {
  expect(segmentsOf(keyframes)).toEqual({ lengths, target });
});

test("no segment is longer than the target when intervals of at most 2 s follow a first segment", () => {
  for (let first = 1; first <= 20; first++)
    for (let second = 1; second <= 20; second++) {
      const intervals = [first, second, 20, first, 20, second, 20, 20].map((tenths) => tenths / 10);
      const { lengths, target } = segmentsOf(steps(2, ...intervals));
      for (const length of lengths) expect([intervals, Math.round(length) <= target]).toEqual([intervals, true]);
    }
});

test("targets never change", () => {
  const plan = new SegmentPlan({ partSeconds: 0.5, targetSegmentSeconds: 2, maxSegmentSeconds: 12 });
  expect([plan.targets, plan.longestSeconds]).toEqual([null, 12]);
  plan.complete(2.9, 0.4);
  plan.complete(7, 1);
  expect(plan.targets).toEqual({ segmentSeconds: 3, partSeconds: 0.4 });
  expect(plan.isTooLong(3.4, 100)).toBe(false);
  expect(plan.isTooLong(3.5, 100)).toBe(true);
});
