import { expect, test } from "vitest";
import {
  openCues,
  withAllTimes,
  withCue,
  withoutCue,
  withText,
  withTiming,
} from "#web/console/pages/asset/cue-document.ts";

const SOURCE = [
  "WEBVTT - A film",
  "",
  "STYLE",
  "::cue(b) { color: lime }",
  "",
  "NOTE Said by no one",
  "",
  "intro",
  "00:01.000 --> 00:03.500 line:0 align:start",
  "One sentence that",
  "continues",
  "",
  "00:00:04.000 --> 00:00:05.000",
  "Now <00:00:04.500>then",
  "",
].join("\r\n");
const DOCUMENT = openCues(SOURCE);
const texts = (document: typeof DOCUMENT) => document.cues.map(({ text }) => text);

test("a changed text leaves everything else as it was", () => {
  const changed = withText(DOCUMENT, 0, "Changed");
  expect(changed.source).toBe(SOURCE.replace("One sentence that\r\ncontinues", "Changed"));
  expect(withText(changed, 0, "One sentence that\r\ncontinues").source).toBe(
    SOURCE.replace("that\r\ncont", "that\ncont"),
  );
  expect(withText(DOCUMENT, 1, "").faults).toEqual([]);
  expect(texts(withText(withText(DOCUMENT, 0, ""), 0, "Again"))).toEqual(["Again", "Now <00:00:04.500>then"]);
});

test("a text can neither end its cue nor begin another one", () => {
  const changed = withText(DOCUMENT, 0, "a\n\n  \nb --> c\n00:09.000 --> 00:10.000\rd");
  expect(changed.faults).toEqual([]);
  expect(texts(changed)).toEqual(["a\nb --&gt; c\n00:09.000 --&gt; 00:10.000\nd", "Now <00:00:04.500>then"]);
});

test("times are changed for one cue, or for all with the timestamps inside", () => {
  const one = withTiming(DOCUMENT, 0, { startMs: 1500, endMs: 3_600_000 });
  expect(one.source).toBe(SOURCE.replace("00:01.000 --> 00:03.500", "00:00:01.500 --> 01:00:00.000"));
  const all = withAllTimes(DOCUMENT, -2000, 1.5);
  expect(all.cues.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
    [0, 3250],
    [4000, 5500],
  ]);
  expect(all.source).toContain("Now <00:00:04.750>then");
  // Before the start nothing is left, but each cue is still valid.
  expect(withAllTimes(DOCUMENT, -10_000, 1).faults).toEqual([]);
});

test("cues are added in the order of time, and removed with their ids", () => {
  const at = (startMs: number) => withCue(DOCUMENT, { startMs, endMs: startMs + 1000 }, "new");
  for (const [startMs, index] of [
    [0, 0],
    [2000, 1],
    [9000, 2],
  ] as const) {
    const added = at(startMs);
    expect([added.index, added.document.faults]).toEqual([index, []]);
    expect(added.document.cues[index]).toMatchObject({ text: "new", startMs });
    expect(added.document.cues).toHaveLength(3);
    expect(texts(withoutCue(added.document, index))).toEqual(texts(DOCUMENT));
  }
  const without = withoutCue(DOCUMENT, 0);
  expect(without.source).not.toContain("intro");
  expect(without.source).toContain("NOTE Said by no one");
  expect(without.faults).toEqual([]);
  const first = withCue(openCues("WEBVTT"), { startMs: 0, endMs: 1 }, "only").document;
  expect([first.faults, texts(first)]).toEqual([[], ["only"]]);
});

test("a text with more cues than a server accepts is a fault, and not an exception", () => {
  const long = openCues(`WEBVTT\n\n${"00:00.000 --> 00:01.000\nx\n\n".repeat(50_001)}`);
  expect(long.faults).toEqual([{ line: 1, message: "It has over 50000 cues." }]);
});
