import { describe, expect, test } from "vitest";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { LiveValidator, type Observation } from "#test/support/hls-live-validator.ts";

const DATE = Date.UTC(2026, 0, 1);
const date = (seconds: number) => `#EXT-X-PROGRAM-DATE-TIME:${new Date(DATE + seconds * 1000).toISOString()}`;
const header = (sequence = 10) => [
  "#EXTM3U",
  "#EXT-X-VERSION:9",
  "#EXT-X-TARGETDURATION:2",
  "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=3,HOLD-BACK=6,CAN-SKIP-UNTIL=12",
  "#EXT-X-PART-INF:PART-TARGET=1",
  `#EXT-X-MEDIA-SEQUENCE:${sequence}`,
  "#EXT-X-DISCONTINUITY-SEQUENCE:0",
];
const MAP = '#EXT-X-MAP:URI="init.mp4"';
const part = (number: number, index: number) => `#EXT-X-PART:DURATION=1,URI="${number}.${index}.m4s"`;
const segment = (number: number, parts: string[] = []) => [date(2 * number), ...parts, "#EXTINF:2,", `${number}.m4s`];
const both = (number: number) => [part(number, 0), part(number, 1)];
const hint = (number: number, index: number) => `#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${number}.${index}.m4s"`;
const REPORT = '#EXT-X-RENDITION-REPORT:URI="../audio/live.m3u8",LAST-MSN=18,LAST-PART=1';
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const text = (lines: string[]) => `${lines.join("\n")}\n`;

/** Segments 10 to 18; the last has parts. */
const FIRST = text([
  ...header(),
  MAP,
  ...range(10, 17).flatMap((number) => segment(number)),
  ...segment(18, both(18)),
  hint(19, 0),
  REPORT,
]);
/** Then 10 has left, and 19 has a part. */
const SECOND = text([
  ...header(11),
  MAP,
  ...range(11, 17).flatMap((number) => segment(number)),
  ...segment(18, both(18)),
  date(38),
  part(19, 0),
  hint(19, 1),
  REPORT,
]);
const DELTA = text([
  ...header(11),
  "#EXT-X-SKIP:SKIPPED-SEGMENTS=2",
  ...range(13, 17).flatMap((number) => segment(number)),
  ...segment(18, both(18)),
  date(38),
  part(19, 0),
  hint(19, 1),
  REPORT,
]);

/** The rules that the last of the playlists breaks; those before must break none. */
function rules(playlists: string[], observation?: Observation): string[] {
  const validator = new LiveValidator();
  const last = playlists.pop() as string;
  for (const each of playlists) expect(validator.see(each)).toEqual([]);
  return validator.see(last, observation).map(({ rule }) => rule);
}

/** With `old` replaced; fails when it does not occur. */
function edited(playlist: string, ...edits: [old: string, fresh: string][]): string {
  return edits.reduce((edit, [old, fresh]) => {
    expect(edit).toContain(old);
    return edit.replace(old, fresh);
  }, playlist);
}

const audioAt = (playlist: string) => ({ others: new Map([["../audio/live.m3u8", playlist]]) });

test("a correct sequence has no faults", () => {
  expect(rules([FIRST, SECOND], audioAt(FIRST))).toEqual([]);
  expect(rules([FIRST, DELTA], { full: SECOND })).toEqual([]);
  const end = edited(SECOND, [`${hint(19, 1)}\n${REPORT}`, "#EXT-X-ENDLIST"]);
  expect(rules([FIRST, SECOND, end, end])).toEqual([]);
});

describe("a single playlist", () => {
  test.each<[string, [string, string][]]>([
    ["target-duration", [["#EXTINF:2,", "#EXTINF:2.5,"]]],
    ["server-control", [["HOLD-BACK=6", "HOLD-BACK=5.9"]]],
    ["server-control", [["PART-HOLD-BACK=3", "PART-HOLD-BACK=2.9"]]],
    ["server-control", [["CAN-SKIP-UNTIL=12", "CAN-SKIP-UNTIL=11"]]],
    ["server-control", [["CAN-BLOCK-RELOAD=YES,", ""]]],
    ["version", [["VERSION:9", "VERSION:5"]]],
    ["map", [[`${MAP}\n`, ""]]],
    ["part-inf", [["#EXT-X-PART-INF:PART-TARGET=1\n", ""]]],
    ["part-target", [["DURATION=1,", "DURATION=1.1,"]]],
    ["part-minimum", [["DURATION=1,", "DURATION=0.84,"]]],
    ["part-sum", [["DURATION=1,", "DURATION=0.9,"]]],
    ["part-age", [[segment(13).join("\n"), segment(13, both(13)).join("\n")]]],
    ["date", [[date(24), date(24.2)]]],
    ["date", [[`${date(20)}\n`, ""]]],
    ["ended", [[REPORT, "#EXT-X-ENDLIST"]]],
  ])("breaks %s: %j", (rule, edits) => {
    expect(rules([edited(FIRST, ...edits)])).toContain(rule);
  });

  test("has the right rendition reports", () => {
    expect(rules([FIRST], audioAt(SECOND))).toEqual(["rendition-report"]);
    expect(rules([edited(FIRST, ["LAST-PART=1", "LAST-PART=0"])], audioAt(FIRST))).toEqual(["rendition-report"]);
    expect(rules([edited(FIRST, [REPORT, ""], ["\n\n", "\n"])], audioAt(FIRST))).toEqual(["rendition-report"]);
  });

  test.each([
    ["no tag", FIRST.slice(8)],
    ["no end", FIRST.trimEnd()],
    ["an unknown tag", edited(FIRST, [MAP, "#EXT-X-UNKNOWN"])],
    ["no number", edited(FIRST, ["TARGETDURATION:2", "TARGETDURATION:NaN"])],
    ["a tag twice", edited(FIRST, [MAP, `${MAP}\n${MAP}`])],
    ["a URI without EXTINF", edited(FIRST, ["#EXTINF:2,\n", ""])],
    ["EXTINF without a URI", edited(FIRST, ["18.m4s\n", ""])],
    ["a part without a URI", edited(FIRST, ['URI="18.0.m4s"', "X=1"])],
  ])("with %s cannot be read", (_, playlist) => {
    expect(() => parseLivePlaylist(playlist)).toThrow();
  });
});

describe("a successor", () => {
  test.each<[string, [string, string][]]>([
    ["target-changed", [["TARGETDURATION:2", "TARGETDURATION:1"]]],
    ["target-changed", [["PART-TARGET=1", "PART-TARGET=1.01"]]],
    ["sequence", [["SEQUENCE:11", "SEQUENCE:9"]]],
    ["segment-changed", [["12.m4s", "12b.m4s"]]],
    ["segment-changed", [["#EXTINF:2,\n12", "#EXTINF:2.00003,\n12"]]],
    ["segment-changed", [[date(24), date(24.001)]]],
    ["segment-changed", [[date(24), `#EXT-X-DISCONTINUITY\n${date(24)}`]]],
    ["part-changed", [["18.1.m4s", "18.1b.m4s"]]],
    ["part-changed", [[`${part(18, 1)}\n`, ""]]],
    ["part-changed", [[part(18, 1), `${part(18, 1)}\n${part(18, 2)}`]]],
    ["discontinuity-sequence", [["DISCONTINUITY-SEQUENCE:0", "DISCONTINUITY-SEQUENCE:1"]]],
    ["preload-hint", [["19.0.m4s", "19.0b.m4s"]]],
  ])("breaks %s: %j", (rule, edits) => {
    expect(rules([FIRST, edited(SECOND, ...edits)])).toContain(rule);
  });

  test("counts the discontinuities that left", () => {
    const first = edited(FIRST, [date(20), `#EXT-X-DISCONTINUITY\n${date(20)}`]);
    expect(rules([first, SECOND])).toEqual(["discontinuity-sequence"]);
    const counted = edited(SECOND, ["DISCONTINUITY-SEQUENCE:0", "DISCONTINUITY-SEQUENCE:1"]);
    expect(rules([first, counted])).toEqual([]);
  });

  test("keeps a discontinuity that was announced", () => {
    const first = edited(FIRST, [hint(19, 0), "#EXT-X-DISCONTINUITY"]);
    expect(rules([first, SECOND])).toEqual(["discontinuity-lost"]);
    expect(rules([first, edited(SECOND, [date(38), `#EXT-X-DISCONTINUITY\n${date(38)}`])])).toEqual([]);
    expect(rules([first, FIRST])).toEqual(["discontinuity-lost"]);
  });

  test("loses nothing at the end", () => {
    const shorter = edited(FIRST, [segment(18, both(18)).join("\n"), ""], ["\n\n", "\n"]);
    expect(rules([FIRST, shorter])).toContain("segment-lost");
    const end = `${part(19, 0)}\n${hint(19, 1)}`;
    const more = `${part(19, 0)}\n${part(19, 1)}\n${hint(20, 0)}`;
    expect(rules([FIRST, edited(SECOND, [end, more]), SECOND])).toEqual(["part-changed"]);
  });

  test("may have lost the part that was announced, with all parts of its segment", () => {
    const later = [20, 21, 22].flatMap((number) => segment(number, both(number)));
    const before = [14, 15, 16, 17, 18, 19].flatMap((number) => segment(number));
    expect(rules([FIRST, SECOND, text([...header(14), MAP, ...before, ...later, hint(23, 0)])])).toEqual([]);
  });

  test("keeps three target durations", () => {
    const short = text([...header(16), MAP, ...segment(16), ...segment(17), ...segment(18, both(18)), hint(19, 0)]);
    expect(rules([FIRST, short])).toEqual([]);
    const shorter = text([...header(17), MAP, ...segment(17), ...segment(18, both(18)), hint(19, 0)]);
    expect(rules([FIRST, shorter])).toEqual(["removed-early"]);
  });

  test("of the end does not change", () => {
    const end = edited(SECOND, [`${hint(19, 1)}\n${REPORT}`, "#EXT-X-ENDLIST"]);
    expect(rules([end, SECOND])).toContain("ended");
  });
});

describe("a delta update", () => {
  test("equals the full playlist", () => {
    expect(rules([FIRST, edited(DELTA, ["18.m4s", "18b.m4s"])], { full: SECOND })).toContain("delta");
    expect(rules([FIRST, edited(DELTA, ["SEGMENTS=2", "SEGMENTS=1"])], { full: SECOND })).toContain("delta");
  });

  test("skips what the client has, older than the boundary", () => {
    expect(rules([DELTA])).toContain("skip-unknown");
    const late = edited(DELTA, ["SEGMENTS=2", "SEGMENTS=3"], [`${segment(13).join("\n")}\n`, ""]);
    expect(rules([FIRST, late])).toEqual(["skip-boundary"]);
  });

  test("needs version 9", () => {
    expect(rules([FIRST, edited(DELTA, ["VERSION:9", "VERSION:8"])])).toEqual(["version"]);
  });
});
