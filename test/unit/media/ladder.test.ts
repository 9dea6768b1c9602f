import { expect, test } from "vitest";
import { rung, encodingSpec as spec } from "#media/encoding-spec.ts";
import { chooseRate, planLadder } from "#media/ladder.ts";

const at30 = { num: 30, den: 1 };
const sizes = (width: number, height: number) =>
  planLadder(width, height, at30, spec).map((one) => `${one.name} ${one.width}x${one.height}`);

test.each([
  ["1080p", 1920, 1080, ["1080p 1920x1080", "720p 1280x720", "480p 854x480", "360p 640x360"]],
  ["vertical", 1080, 1920, ["1080p 1080x1920", "720p 720x1280", "480p 480x854", "360p 360x640"]],
  ["square", 720, 720, ["720p 720x720", "480p 480x480", "360p 360x360"]],
  ["a wide film keeps its own size", 1920, 800, ["800p 1920x800", "480p 1152x480", "360p 864x360"]],
  ["1088 lines are 1080", 1920, 1088, ["1080p 1906x1080", "720p 1270x720", "480p 848x480", "360p 636x360"]],
  [
    "2160p",
    3840,
    2160,
    ["2160p 3840x2160", "1440p 2560x1440", "1080p 1920x1080", "720p 1280x720", "480p 854x480", "360p 640x360"],
  ],
  [
    "8K is cut down",
    7680,
    4320,
    ["2160p 3840x2160", "1440p 2560x1440", "1080p 1920x1080", "720p 1280x720", "480p 854x480", "360p 640x360"],
  ],
  ["small", 320, 180, ["180p 320x180"]],
  ["odd", 427, 241, ["240p 426x240"]],
  ["tiny", 2, 2, ["16p 16x16"]],
])("%s", (_, width, height, expected) => expect(sizes(width, height)).toEqual(expected));

test("no size exceeds the source or the level, all are even, and each rung is worth its bits", () => {
  for (let width = 16; width < 9000; width += 149) {
    for (let height = 17; height < 9000; height += 173) {
      const ladder = planLadder(width, height, at30, spec);
      expect(ladder.length).toBeGreaterThan(0);
      for (const [index, one] of ladder.entries()) {
        expect((one.width % 2) + (one.height % 2)).toBe(0);
        expect(one.width).toBeLessThanOrEqual(Math.max(16, width));
        expect(one.height).toBeLessThanOrEqual(Math.max(16, height));
        expect(one.width * one.height).toBeLessThan(spec.video.max_pixels * 1.01);
        const above = ladder[index - 1];
        if (above) expect(one.maxBitrate).toBeLessThanOrEqual(above.maxBitrate);
      }
    }
  }
});

test("a rung's cap is kept, however low it is", () => {
  const ladder = [rung(240, 60_000), rung(120, 50_000)];
  const planned = planLadder(426, 240, at30, { ...spec, video: { ...spec.video, ladder } });
  expect(planned).toMatchObject([
    { maxBitrate: 60_000, buffer: 90_000 },
    { maxBitrate: 50_000, buffer: 75_000 },
  ]);
});

test("high frame rates get more bits", () => {
  const [slow] = planLadder(1920, 1080, at30, spec);
  const [fast] = planLadder(1920, 1080, { num: 60, den: 1 }, spec);
  expect([slow?.maxBitrate, fast?.maxBitrate]).toEqual([6_000_000, 9_000_000]);
});

test.each([
  ["film", [24000, 1001], [24000, 1001], "24000/1001"],
  ["a millisecond container", [2997003, 100000], [30, 1], "30000/1001"],
  ["120 is halved", [120, 1], [120, 1], "60/1"],
  ["240000/1001 is quartered", [240000, 1001], [240000, 1001], "60000/1001"],
  ["a phone's variable 29.6", [2960, 100], [30, 1], "30/1"],
  ["slides at 1 a second", [1, 1], [1, 1], "1/1"],
  ["15 is left alone", [15, 1], [15, 1], "15/1"],
  ["nothing known", [0, 1], [0, 1], "30/1"],
  ["a tick rate is no frame rate", [0, 1], [90000, 1], "60/1"],
])("frame rate: %s", (_, [a = 0, b = 1], [c = 0, d = 1], expected) => {
  const { num, den } = chooseRate({ num: a, den: b }, { num: c, den: d }, spec);
  expect(`${num}/${den}`).toBe(expected);
});
