import { describe, expect, test } from "vitest";
import webVtt from "webvtt-parser";
import { runToEnd } from "#src/lib/base/sliced.ts";
import { parsing } from "#src/lib/subtitles/vtt/parse.ts";
import { fromSrt, looksLikeSrt } from "#src/lib/subtitles/vtt/srt.ts";
import { fc } from "#test/support/property.ts";

const convert = (text: string) => runToEnd(fromSrt(text));
const PLAIN = "1\n00:00:01,000 --> 00:00:02,500\nHello\n";
const VTT = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello\n";
const texted = (text: string) => `1\n00:00:01,000 --> 00:00:02,500\n${text}\n`;
/** The text of the only cue of a file after conversion. */
const textOf = (text: string) => {
  const { faults, text: vtt } = convert(texted(text));
  expect(faults).toEqual([]);
  return runToEnd(parsing(vtt))
    .cues.map((cue) => cue.text)
    .join("|");
};

describe("a file", () => {
  test.each<[string, string]>([
    ["as it should be", PLAIN],
    ["with CR LF", PLAIN.replaceAll("\n", "\r\n")],
    ["with CR", PLAIN.replaceAll("\n", "\r")],
    ["with blank lines all over", `\n\n${PLAIN.replace("1\n", "1\n\n")}\n\n\n`],
    ["with a short arrow", PLAIN.replace("-->", "->")],
    ["with a long arrow", PLAIN.replace("-->", "--->")],
    ["with an en dash", PLAIN.replace("-->", "–>")],
    ["with an em dash", PLAIN.replace("-->", "—>")],
    ["without spaces", PLAIN.replace(" --> ", "-->")],
    ["with points", PLAIN.replaceAll(",", ".")],
    ["with one digit of milliseconds", PLAIN.replace(",500", ",5")],
    ["without milliseconds", PLAIN.replace(",000", "")],
    ["with more digits than three", PLAIN.replace(",500", ",500999")],
    ["without hours", PLAIN.replaceAll("00:00:0", "00:0")],
    ["with one digit each", "1\n0:0:1,0 --> 0:0:2,5\nHello"],
    ["without a number", PLAIN.slice(2)],
    ["with coordinates", PLAIN.replace("500", "500  X1:100 X2:200 Y1:010 Y2:-20")],
    ["with a lone index at the end", `${PLAIN}\n2`],
    ["with a lone index and blank lines at the end", `${PLAIN}\n2\n\n\n`],
    ["with a lone index at the start", `0\n\n${PLAIN}`],
    ["with a repeated index", `1\n${PLAIN}`],
    ["with Ctrl-Z in a line at the end", `${PLAIN}\u001a`],
    ["with Ctrl-Z behind the text", `${PLAIN.trimEnd()}\u001a`],
    ["with Ctrl-Z behind a lone index", `${PLAIN}\n2\n\u001a\n`],
    ["with byte order marks", `\ufeff\ufeff${PLAIN}`],
    ["with tabs around the arrow", PLAIN.replace(" --> ", "\t-->\t")],
    ["with spaces in the times", PLAIN.replaceAll("00:00:0", "00 : 00: 0").replace(",5", ", 5")],
    ["with an X-TIMESTAMP-MAP", `X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\n${PLAIN}`],
    ["with an X-TIMESTAMP-MAP at the end", `${PLAIN}\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000`],
    ["with one that cannot be read", `x-timestamp-map = soon\n${PLAIN}`],
    ["with the times of LOCAL", `X-TIMESTAMP-MAP=LOCAL:01:00:00,000\n${PLAIN.replaceAll("00:00:0", "01:00:0")}`],
    ["with spaces around lines", "  1  \n 00:00:01,000 --> 00:00:02,500 \n  Hello  "],
  ])("%s", (_, text) => {
    expect(convert(text)).toEqual({ text: VTT, faults: [], skipped: [] });
  });

  test.each<[string, string, [number, number, string][]]>([
    ["hours over 99", "1\n123:00:00,000 --> 123:00:01,000\nA", [[442_800_000, 442_801_000, "A"]]],
    [
      "repeated numbers",
      "1\n00:01,000 --> 00:02,000\nA\n\n1\n00:03,000 --> 00:04,000\nB",
      [
        [1000, 2000, "A"],
        [3000, 4000, "B"],
      ],
    ],
    [
      "no blank line between cues",
      "1\n00:01,000 --> 00:02,000\nA\n2\n00:03,000 --> 00:04,000\nB\n00:05,000 --> 00:06,000\nC",
      [
        [1000, 2000, "A"],
        [3000, 4000, "B"],
        [5000, 6000, "C"],
      ],
    ],
    [
      "overlapping cues, out of order",
      "1\n00:03,000 --> 00:09,000\nB\n\n2\n00:01,000 --> 00:04,000\nA",
      [
        [1000, 4000, "A"],
        [3000, 9000, "B"],
      ],
    ],
    [
      "blank lines inside a text",
      "1\n00:01,000 --> 00:02,000\nA\n\nB\n\n2\n00:03,000 --> 00:04,000\nC",
      [
        [1000, 2000, "A\nB"],
        [3000, 4000, "C"],
      ],
    ],
    [
      "numbers that are said",
      "1\n00:01,000 --> 00:02,000\n1984\n\n42\n\nYes\n\n2\n00:03,000 --> 00:04,000\n7\n\n9",
      [
        [1000, 2000, "1984\n42\nYes"],
        [3000, 4000, "7\n9"],
      ],
    ],
    [
      "a cue that says nothing",
      `1\n00:01,000 --> 00:02,000\n\n2\n00:03,000 --> 00:04,000\n<font></font>{\\i1}\n\n${PLAIN}`,
      [[1000, 2500, "Hello"]],
    ],
    [
      "lone indices between cues",
      "1\n00:01,000 --> 00:02,000\nA\n\n2\n\n3\n\n4\n00:03,000 --> 00:04,000\nB\n\n5",
      [
        [1000, 2000, "A"],
        [3000, 4000, "B"],
      ],
    ],
    [
      "\\N for line breaks",
      "1\n00:01,000 --> 00:02,000\nA\\NB \\N\\N<i>C\\ND</i>\n\\N",
      [[1000, 2000, "A\nB \n<i>C\nD</i>"]],
    ],
    ["times before zero", "1\n-00:01,000 --> 00:02,000\nA\n\n2\n-00:00:03,000 --> -00:00:02,000\nB", [[0, 2000, "A"]]],
  ])("with %s", (_, text, expected) => {
    const converted = convert(text);
    expect(converted.faults).toEqual([]);
    expect(runToEnd(parsing(converted.text)).cues.map((cue) => [cue.startMs, cue.endMs, cue.text])).toEqual(expected);
  });

  test.each<[string, string, number, RegExp]>([
    ["no subtitles", "Dear Sir,\nhow are you?", 1, /precedes the first timing line/],
    ["text before the first cue", `Title\n\n${PLAIN}`, 1, /precedes the first timing line/],
    ["a time that is none", "1\n00:00:01,000 --> 00:00:0x,500\nHi", 2, /timing line must look like/],
    ["half a timing line", `${PLAIN}\n2\n00:00:03,000 -->\nHi`, 6, /timing line must look like/],
    ["minutes over 59", "1\n00:60:01,000 --> 00:61:02,000\nHi", 2, /at most 59/],
    ["the end before the start", "1\n00:00:02,000 --> 00:00:01,000\nHi", 2, /end after it starts/],
    ["something else behind the times", "1\n00:00:01,000 --> 00:00:02,000 hello\nHi", 2, /nothing but coordinates/],
    ["a cue without times", `${PLAIN}\n2\nHello again`, 5, /cue 2 has no timing line/],
    ["a text without end", texted("word ".repeat(3000)), 3, /at most 10000 characters/],
  ])("that is %s has a fault in a line", (_, text, line, message) => {
    expect(convert(text).faults[0]).toMatchObject({ line, message: expect.stringMatching(message) });
  });
});

describe("cues that are left out", () => {
  const cue = (times: string, text = "x") => `1\n${times}\n${text}\n\n`;
  test.each<[string, string, { line: number; reason: string }[]]>([
    ["without duration", cue("00:00:01,000 --> 00:00:01,000"), [{ line: 2, reason: "duration" }]],
    ["without duration in milliseconds", cue("0:0:1,0001 --> 0:0:1,0009"), [{ line: 2, reason: "duration" }]],
    ["without text", cue("00:00:01,000 --> 00:00:02,000", ""), [{ line: 2, reason: "text" }]],
    ["with styling alone", cue("00:00:01,000 --> 00:00:02,000", "{\\an8}<b></b>\\N"), [{ line: 2, reason: "text" }]],
    ["before zero", cue("-00:00:02,000 --> -00:00:01,000"), [{ line: 2, reason: "before" }]],
    ["before LOCAL", `X-TIMESTAMP-MAP=LOCAL:00:09\n${cue("00:01 --> 00:09")}`, [{ line: 3, reason: "before" }]],
    [
      "several",
      cue("00:01 --> 00:01") + cue("00:02 --> 00:02") + cue("00:03 --> 00:04", ""),
      [
        { line: 2, reason: "duration" },
        { line: 6, reason: "duration" },
        { line: 10, reason: "text" },
      ],
    ],
  ])("%s", (_, text, skipped) => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const converted = convert(`${text}9\n01:00:00 --> 01:00:01\nLast\n`.replaceAll("\n", end));
      expect(converted).toMatchObject({ faults: [], skipped });
      expect(converted.text).toMatch(/^WEBVTT\n\n.*\nLast\n$/);
    }
  });
});

test.each<[string, string]>([
  ["<i>Tilted</i> <B>bold</B> <u>under</u>", "<i>Tilted</i> <b>bold</b> <u>under</u>"],
  ['<font color="#ff0000">Red</font> and <FONT>plain</FONT>', "Red and plain"],
  ["<i>left open", "<i>left open</i>"],
  ["closed</i> only", "closed only"],
  ["<b><i>crossed</b></i>", "<b><i>crossed</i></b>"],
  ["<i>over\nlines</i>", "<i>over\nlines</i>"],
  ["one<br>two<br/>three", "one\ntwo\nthree"],
  ["Tom & Jerry < 3 > 2", "Tom &amp; Jerry &lt; 3 &gt; 2"],
  ["&amp; &lt;kept&gt; &nbsp; &copy;", "&amp; &lt;kept&gt; &nbsp; &amp;copy;"],
  ["go --> there, 5 -> 6", "go --&gt; there, 5 -&gt; 6"],
  ["<v Bob>Hi</v> <script>", "&lt;v Bob&gt;Hi&lt;/v&gt; &lt;script&gt;"],
  ["{\\i1}Dropped{\\i0} {kept}", "Dropped {kept}"],
  ["{\\an2}below", "below"],
])("of a text, %s becomes %s", (text, expected) => {
  expect(textOf(text)).toBe(expected);
});

test.each(["{\\an8}Up", "{\\b1\\an7}Up", "Up{\\an9}"])("%s is positioned at the top", (text) => {
  expect(convert(texted(text)).text).toBe("WEBVTT\n\n00:00:01.000 --> 00:00:02.500 line:0\nUp\n");
});

test("a file without an extension is detected by its commas", () => {
  expect([PLAIN, PLAIN.slice(2), `\n${PLAIN}`].map(looksLikeSrt)).toEqual([true, true, true]);
  expect([VTT, "00:01.000 --> 00:02.000", "Hello", ""].map(looksLikeSrt)).toEqual([false, false, false, false]);
});

describe("generated files", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "",
      "1",
      "2",
      "00:00:01,000 --> 00:00:02,500",
      "00:00:03,5->00:00:09",
      "00:01 –> 00:02",
      "<i>a",
      "</b>",
      "a --> b",
      "{\\an8}x",
      "& < >",
      "<font x>y",
      "&lt;",
      "WEBVTT",
      "NOTE x",
      "00:00:01,0 --> x",
      "-00:00:01,0 --> 00:00:01,0",
      "X-TIMESTAMP-MAP=LOCAL:00:01",
      "\u001a",
      "a\\N\\Nb",
    ),
    fc.string({ unit: "binary", maxLength: 20 }),
  );
  test("never throw, and the result conforms, also to the W3C's own validator", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), fc.constantFrom("\n", "\r\n", "\r"), (lines, end) => {
        const { text } = convert(lines.join(end).replaceAll("\0", ""));
        expect(runToEnd(parsing(text)).faults, text).toEqual([]);
        const errors = new webVtt.WebVTTParser()
          .parse(text)
          .errors.filter(({ message }) => !/timestamp/i.test(message));
        expect(errors, text).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });
});
