import { describe, expect, test } from "vitest";
import { chunksOf, PLAN_WEIGHT, partsOf, WHOLE_TASK, whyUncut } from "#features/transcoding/tasks/chunks.ts";
import { firstFrameOf } from "#protocol/task.ts";
import { fc } from "#test/support/property.ts";
import { planned } from "#test/support/tasks.ts";

const RATES = [
  [24, 1],
  [24_000, 1001],
  [25, 1],
  [30_000, 1001],
  [30, 1],
  [60_000, 1001],
  [120, 1],
  [1, 1],
  [1, 4],
  [12_345, 1000],
] as const;
const ALWAYS = { isParallel: true, isEarly: false, wasInexact: false };
type Plan = Parameters<typeof whyUncut>[0];

const sources = fc
  .record({
    duration: fc.double({ min: 0.01, max: 86_400, noNaN: true }),
    rate: fc.constantFrom(...RATES),
    segmentSeconds: fc.constantFrom(4, 4, 4, 1, 2, 6, 10, 60, 4.004),
    chunkSeconds: fc.integer({ min: 2, max: 900 }).map((fours) => 4 * fours),
  })
  .map(({ duration, rate: [num, den], segmentSeconds, chunkSeconds }) => ({
    plan: planned({
      duration_seconds: duration,
      frame_rate: { num, den },
      segment_seconds: segmentSeconds,
    }) as unknown as Plan & { duration_seconds: number; frame_rate: { num: number; den: number } },
    chunkSeconds,
  }));

describe("chunks", () => {
  test("begin where the segments of a plan begin that states them", () => {
    // Every third keyframe of 50 frames, at 30 frames per second.
    const segment_frames = Array.from({ length: 20 }, (_, segment) => segment * 150);
    const plan = planned({ duration_seconds: 99, segment_frames }) as unknown as Plan;
    expect(whyUncut(plan, { ...ALWAYS, chunkSeconds: 24 })).toBeNull();
    const whole = { renditions: null, is_urgent: false };
    expect(chunksOf(plan, 24)).toEqual([
      { number: 0, first_segment: 0, segments: 6, first_frame: 0, end_frame: 900, ...whole },
      { number: 1, first_segment: 6, segments: 7, first_frame: 900, end_frame: 1950, ...whole },
      { number: 2, first_segment: 13, segments: null, first_frame: 1950, end_frame: null, ...whole },
    ]);
    expect(whyUncut({ ...plan, segment_frames: [0] }, { ...ALWAYS, chunkSeconds: 24 })).toBe("short");
  });

  test("cover every frame and segment exactly once, in equal parts", () => {
    fc.assert(
      fc.property(sources, ({ plan, chunkSeconds }) => {
        const why = whyUncut(plan, { ...ALWAYS, chunkSeconds });
        const total = Math.floor(plan.duration_seconds / plan.segment_seconds + 1e-6);
        if (why !== null) {
          const isShort = plan.duration_seconds < 2 * chunkSeconds || total < 2;
          expect(isShort || (plan.frame_rate.num / plan.frame_rate.den) * plan.segment_seconds < 1).toBe(true);
          return;
        }
        const chunks = chunksOf(plan, chunkSeconds);
        expect(chunks.length).toBeGreaterThanOrEqual(2);
        expect(chunks.length).toBeLessThanOrEqual(1000);
        let segment = 0;
        let frame = 0;
        const lengths: number[] = [];
        for (const [index, chunk] of chunks.entries()) {
          expect([chunk.number, chunk.first_segment, chunk.first_frame]).toEqual([index, segment, frame]);
          const isLast = index === chunks.length - 1;
          expect([chunk.segments === null, chunk.end_frame === null]).toEqual([isLast, isLast]);
          lengths.push(chunk.segments ?? total - segment);
          segment += lengths.at(-1) as number;
          frame = chunk.end_frame ?? Number.POSITIVE_INFINITY;
          // No chunk is empty.
          expect(frame).toBeGreaterThan(chunk.first_frame);
        }
        expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(1);
        expect((lengths.at(-1) as number) * 2).toBeGreaterThanOrEqual(Math.max(...lengths));
      }),
      { numRuns: 2000 },
    );
  });

  test("begin with the first frame at or after the time of their segment", () => {
    fc.assert(
      fc.property(fc.nat(21_600), fc.constantFrom(...RATES), (number, [num, den]) => {
        const frame = firstFrameOf(number, 4, { num, den });
        expect(frame * den).toBeGreaterThanOrEqual(number * 4 * num);
        expect((frame - 1) * den).toBeLessThan(number * 4 * num);
      }),
    );
  });

  test("have about the length of the setting", () => {
    const lengths = (duration_seconds: number, chunkSeconds: number) =>
      chunksOf({ duration_seconds, frame_rate: { num: 30, den: 1 }, segment_seconds: 4 }, chunkSeconds).map(
        ({ segments }) => segments,
      );
    expect(lengths(40, 20)).toEqual([5, null]);
    expect(lengths(52, 20)).toEqual([4, 4, null]);
    expect(lengths(3600, 20)).toEqual([...Array(179).fill(5), null]);
    // A day has as many chunks as the limit allows.
    expect(lengths(86_400, 20)).toHaveLength(1000);
  });
});

test("the shares of all tasks are the whole progress of the job", () => {
  const sum = (tasks: { weight: number }[]) => tasks.reduce((total, { weight }) => total + weight, 0);
  for (const has_audio of [true, false]) {
    const plan = planned({ has_audio, duration_seconds: 4000 }) as unknown as Plan;
    expect(sum([{ weight: PLAN_WEIGHT }, ...partsOf(plan, 20)])).toBeCloseTo(100, 6);
  }
  expect(sum([{ weight: PLAN_WEIGHT }, WHOLE_TASK])).toBe(100);
});

test("what the worker found comes first, then why the server does not cut it", () => {
  const why = (fields: Record<string, unknown>, given: Partial<typeof ALWAYS> = {}) =>
    whyUncut(planned(fields) as unknown as Plan, { ...ALWAYS, ...given, chunkSeconds: 20 });
  expect(why({})).toBeNull();
  expect(why({ uncuttable: "passthrough" }, { isParallel: false })).toBe("passthrough");
  expect(why({}, { isParallel: false })).toBe("disabled");
  expect(why({}, { wasInexact: true })).toBe("inexact");
  expect(why({ segment_seconds: 60, duration_seconds: 110 })).toBe("short");
});
