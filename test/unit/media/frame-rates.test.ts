import { expect, test } from "vitest";
import { FrameRates } from "#media/timeline/frame-rates.ts";
import { seeded } from "#test/support/seed.ts";

/** Runs of frames: how many follow each other, and the distances between them in ms, which repeat. */
type Run = [count: number, ...distances: number[]];

const ROWS: [string, Run[], number | null][] = [
  ["a steady rate, rounded to ms", [[300, 33, 33, 34]], 30],
  [
    "a screen that is active for a third of the time, then idle",
    [
      [300, 33.3],
      [200, 100],
    ],
    30,
  ],
  [
    "an idle screen first",
    [
      [60, 500],
      [90, 33.3],
    ],
    30,
  ],
  [
    "short bursts in an idle screen",
    Array.from({ length: 8 }, (): Run[] => [
      [15, 33.3],
      [6, 250],
    ]).flat(),
    30,
  ],
  [
    "24 frames per second on a screen with 60, and a freeze",
    [
      [80, 33.3, 50],
      [1, 4000],
      [80, 33.3, 50],
    ],
    24,
  ],
  ["25 frames per second on a screen with 60", [[200, 33.3, 50, 33.3, 50, 33.3]], 25],
  ["one frame of eleven is missing", [[300, ...Array(9).fill(33.3), 66.7]], 30],
  ["a clock that varies", [[300, 21, 45, 30, 38, 26, 40]], 30],
  [
    "frames that arrive together after a stall",
    [
      [200, 40],
      [1, 2000],
      [12, 1],
      [200, 40],
    ],
    25,
  ],
  [
    "half a second of 60 in an hour of 30",
    [
      [50_000, 33.3],
      [31, 16.7],
      [50_000, 33.3],
    ],
    30,
  ],
  [
    "freezes between all frames of half a second",
    [
      [12, 40],
      [1, 8000],
      [12, 40],
    ],
    25,
  ],
  ["four frames", [[3, 40]], 25],
  ["three frames", [[2, 40]], null],
  ["slides", [[5, 5000]], 0.2],
];

test.each(ROWS)("%s", (_, runs, expected) => {
  const rates = new FrameRates();
  let time = 0;
  rates.add(0);
  for (const [count, ...distances] of runs)
    for (let at = 0; at < count; at++) {
      time += (distances[at % distances.length] as number) / 1000;
      rates.add(time);
    }
  const rate = rates.rate();
  if (expected === null) return expect(rate).toBeNull();
  expect(Math.abs((rate ?? 0) / expected - 1)).toBeLessThan(0.02);
});

test.each<[string, (random: () => number) => number]>([
  ["between 25 and 55 ms", (random) => 0.025 + 0.03 * random()],
  ["two or three times a 60th", (random) => (2 + Math.floor(2 * random())) / 60],
])("irregular distances have their mean rate: %s", (_, distance) => {
  const rates = new FrameRates();
  const random = seeded();
  const count = 20_000;
  let time = 0;
  rates.add(0);
  for (let at = 0; at < count; at++) {
    time += distance(() => random.next());
    rates.add(time);
  }
  expect(Math.abs((rates.rate() ?? 0) / (count / time) - 1)).toBeLessThan(0.03);
});

test("any number of different distances takes bounded memory and time", () => {
  const rates = new FrameRates();
  let time = 0;
  for (let at = 0; at < 200_000; at++) {
    time += 0.001 + ((at * 7919) % 100_003) / 50_000;
    rates.add(time);
  }
  expect(rates.rate()).toBeGreaterThan(0);
});
