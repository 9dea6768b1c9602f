import { expect, test } from "vitest";
import { endOf, titleOf, withEnd, withStart, withTitle } from "#web/console/pages/asset/track-cues.ts";

const CUES = [
  { start_ms: 1000, payload: { title: "One" } },
  { start_ms: 5000, end_ms: 6000, payload: { name: "Two", team: "A" } },
  { start_ms: 9000, payload: { title: 3 } },
];

test("a cue without an end lasts until the next one, or until the end of the video", () => {
  expect(CUES.map((_, index) => endOf(CUES, index, 10_000))).toEqual([5000, 6000, 10_000]);
  expect(endOf([{ start_ms: 20_000, payload: {} }], 0, 10_000)).toBe(20_000);
});

test("the ends of a cue cannot pass each other, or leave the video", () => {
  const start = (ms: number) => withStart(CUES, 1, ms, 10_000)[1]?.start_ms;
  expect([start(-5), start(2000.4), start(99_999)]).toEqual([0, 2000, 5900]);
  const end = (ms: number) => withEnd(CUES, 0, ms, 10_000)[0]?.end_ms;
  expect([end(-5), end(2000.4), end(99_999)]).toEqual([1100, 2000, 10_000]);
});

test("a title is read from and written to the field that has it; other data stay", () => {
  expect(CUES.map(titleOf)).toEqual(["One", "Two", ""]);
  expect(CUES.map((cue) => withTitle(cue, "New").payload)).toEqual([
    { title: "New" },
    { name: "New", team: "A" },
    { title: "New" },
  ]);
});
