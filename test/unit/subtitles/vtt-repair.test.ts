import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import webVtt from "webvtt-parser";
import { runToEnd } from "#src/lib/base/sliced.ts";
import { parsing } from "#src/lib/subtitles/vtt/parse.ts";
import { checkSubtitleFile, checkVtt } from "#src/lib/subtitles/vtt/subtitle-file.ts";
import { fc } from "#test/support/property.ts";

const ONE = "00:01.000 --> 00:02.000\nHi";
const MAP = "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000";

/** The text and warnings of a file that is accepted. */
function accepted(content: string) {
  const checked = checkVtt(content);
  if (!("text" in checked)) throw new Error(JSON.stringify(checked));
  return checked;
}
/** `[start in ms, end in ms, text]` of each cue. */
const cuesOf = (content: string) =>
  runToEnd(parsing(accepted(content).text)).cues.map(({ startMs, endMs, text }) => [startMs, endMs, text]);
const HI = [[1000, 2000, "Hi"]];

describe("X-TIMESTAMP-MAP", () => {
  const headers: [string, string][] = [
    ["MPEGTS first", MAP],
    ["LOCAL first", "X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000"],
    ["LOCAL without hours", "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00.000"],
    ["LOCAL with one digit of hours", "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:0:00:00.000"],
    ["LOCAL without milliseconds", "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00"],
    ["a comma in LOCAL", "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00,000"],
    ["spaces", " X-TIMESTAMP-MAP = MPEGTS: 900000 , LOCAL: 00:00:00.000 "],
    ["lower case", "x-timestamp-map=mpegts:900000,local:00:00:00.000"],
    ["a colon and equals signs", "X-TIMESTAMP-MAP:MPEGTS=900000,LOCAL=00:00:00.000"],
    ["several lines", `${MAP}\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:09.000\nX-TIMESTAMP-MAP=`],
    ["other metadata around it", `Kind: captions\n${MAP}\nLanguage: en`],
    ["an MPEGTS of 33 bits", "X-TIMESTAMP-MAP=MPEGTS:8589934591,LOCAL:00:00:00.000"],
    ["an MPEGTS beyond all", `X-TIMESTAMP-MAP=MPEGTS:${"9".repeat(400)},LOCAL:00:00:00.000`],
    ["a negative MPEGTS", "X-TIMESTAMP-MAP=MPEGTS:-900000,LOCAL:00:00:00.000"],
    ["no LOCAL", "X-TIMESTAMP-MAP=MPEGTS:900000"],
    ["no MPEGTS", "X-TIMESTAMP-MAP=LOCAL:00:00:00.000"],
    ["nothing", "X-TIMESTAMP-MAP="],
    ["words", "X-TIMESTAMP-MAP=MPEGTS:soon,LOCAL:later"],
    ["seconds over 59 in LOCAL", "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:99.000"],
    ["a LOCAL beyond all", "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:999999999:00:00.000"],
    ["a negative LOCAL", "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:-00:00:01.000"],
  ];
  test.each(headers)("with %s is removed, and the times stay", (_, header) => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const content = `WEBVTT - Title\n${header}\n\n${ONE}\n`.replaceAll("\n", end);
      const { text, warnings } = accepted(content);
      expect(text).not.toMatch(/timestamp-map/i);
      expect([cuesOf(content), warnings]).toEqual([HI, []]);
    }
  });

  test("leaves all other bytes as they are", () => {
    const rest = `Kind: captions\r\n\r\nNOTE x\r\n\r\nid\r\n00:01.000 -->  00:02.000 line:0\r\n<i>Hi</i>`;
    expect(accepted(`WEBVTT ä\r\n${MAP}\r\n${rest}`).text).toBe(`WEBVTT ä\r\n${rest}`);
  });

  test.each<[string, string, unknown[]]>([
    ["right behind the signature", `WEBVTT ${MAP}\n\n${ONE}`, HI],
    ["behind a title", `WEBVTT - Title\t${MAP.replace("00.000", "01.000")}\n\n00:02.000 --> 00:03.000\nHi`, HI],
    ["below a blank line", `WEBVTT\n\n${MAP}\n\n${ONE}`, HI],
    ["without a signature", `${MAP}\n\n${ONE}`, HI],
    ["right above a cue", `WEBVTT\n${MAP}\n${ONE}`, HI],
    ["right above a cue with a number", `WEBVTT\n${MAP}\n1\n${ONE}`, HI],
    ["right above a comment", `WEBVTT\n\n${MAP}\nNOTE x\n\n${ONE}`, HI],
    ["between cues", `WEBVTT\n\n${ONE}\n\n${MAP}\n\n${ONE}`, [...HI, ...HI]],
    ["in a concatenated file", `WEBVTT\n${MAP}\n\n${ONE}\n\nWEBVTT\n${MAP}\n\n${ONE}`, [...HI, ...HI]],
    ["below a text", `WEBVTT\n\n${ONE}\n${MAP}\n${ONE}`, [...HI, ...HI]],
    ["at the end", `WEBVTT\n\n${ONE}\n\n${MAP}`, HI],
  ])("%s is removed", (_, content, expected) => {
    expect(accepted(content).text).not.toContain("X-TIMESTAMP-MAP");
    expect(cuesOf(content)).toEqual(expected);
  });

  const local = (time: string, cues: string) => `WEBVTT\nX-TIMESTAMP-MAP=LOCAL:${time},MPEGTS:12345\n\n${cues}`;
  test.each<[string, string, unknown[]]>([
    ["with hours", local("00:00:04.000", "00:05.000 --> 00:06.000\nHi"), HI],
    ["without hours", local("00:04.000", "00:05.000 --> 00:06.000\nHi"), HI],
    ["of many hours", local("265:07:19.913", "265:07:20.913 --> 265:07:21.913\nHi"), HI],
    ["in milliseconds", local("00:00:00.001", "00:01.001 --> 00:02.001\nHi"), HI],
    ["with a short fraction", local("00:00:00.5", "00:01.500 --> 00:02.500\nHi"), HI],
    ["within a cue, which is cut", local("00:00:01.500", ONE), [[0, 500, "Hi"]]],
    [
      "with timestamp tags, which move too",
      local("00:04.000", "00:05.000 --> 00:06.000 line:0\nH<00:05.500>i<00:00:05.750><c>!</c>"),
      [[1000, 2000, "H<00:00:01.500>i<00:00:01.750><c>!</c>"]],
    ],
    [
      "of each concatenated file",
      `${local("00:04.000", "00:05.000 --> 00:06.000\nHi")}\n\n${local("00:07.000", "00:08.000 --> 00:09.000\nHi")}\n\nWEBVTT\n\n${ONE}`,
      [...HI, ...HI, ...HI],
    ],
  ])("LOCAL %s is subtracted", (_, content, expected) => {
    expect([cuesOf(content), accepted(content).warnings]).toEqual([expected, []]);
  });

  test("cues that end before LOCAL are left out, with a warning", () => {
    const content = local(
      "00:00:10.000",
      `first\n${ONE}\n\n00:09.000 --> 00:10.000\nIs over\n\n00:09.000 --> 00:11.000\nIs cut\n\nlast\n00:10.000 --> 00:12.000\nHi`,
    );
    expect(accepted(content)).toEqual({
      text: "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nIs cut\n\nlast\n00:00:00.000 --> 00:00:02.000\nHi",
      warnings: [
        {
          code: "cues_skipped",
          count: 2,
          message: "2 cues were left out: 2 before the start of the video (lines 5, 8).",
        },
      ],
    });
  });
});

const COUNTED = "1\n00:01.000 --> 00:02.000\nA\n\n2\n00:03.000 --> 00:04.000\nB\n";
const AB = [
  [1000, 2000, "A"],
  [3000, 4000, "B"],
];
describe("small faults", () => {
  test.each<[string, string, unknown[]]>([
    ["a lone index at the end", `WEBVTT\n\n${COUNTED}\n3`, AB],
    ["a lone index and blank lines at the end", `WEBVTT\n\n${COUNTED}\n3\n\n\n`, AB],
    ["a lone index at the start", `WEBVTT\n\n0\n\n${COUNTED}`, AB],
    ["lone indices between cues", `WEBVTT\n\n${COUNTED.replace("\n2", "\n7\n\n8\n2")}`, AB],
    ["Ctrl-Z in a line at the end", `WEBVTT\n\n${COUNTED}\u001a`, AB],
    ["Ctrl-Z behind the text", `WEBVTT\n\n${COUNTED.trimEnd()}\u001a`, AB],
    ["Ctrl-Z behind a lone index", `WEBVTT\n\n${COUNTED}\n3\n\u001a\n`, AB],
    ["Ctrl-Z between concatenated files", `WEBVTT\n\n1\n${ONE}\n\u001aWEBVTT\n\n${COUNTED}`, [...HI, ...AB]],
    ["\\N for a line break", `WEBVTT\n\n00:01.000 --> 00:02.000\nA\\NB \\N C`, [[1000, 2000, "A\nB\nC"]]],
    [
      "\\N at both ends, and twice",
      `WEBVTT\n\n00:01.000 --> 00:02.000\n\\NA\\N\\NB\\N\n\\N\nC`,
      [[1000, 2000, "A\nB\nC"]],
    ],
    ["no blank lines", `WEBVTT\n${COUNTED.replace("\n\n", "\n")}`, AB],
    ["no blank lines and no indices", "WEBVTT\n00:01.000 --> 00:02.000\nA\n00:03.000 --> 00:04.000\nB", AB],
    ["blanks in blank lines", `WEBVTT\n \n${COUNTED.replace("\n\n", "\n\n\t\n")}\n  \n`, AB],
    ["no spaces around the arrow", `WEBVTT\n\n${COUNTED.replaceAll(" --> ", "-->")}`, AB],
    ["tabs around the arrow", `WEBVTT\n\n${COUNTED.replaceAll(" --> ", "\t-->\t")}`, AB],
    ["blanks around the times", `WEBVTT\n\n${COUNTED.replaceAll("00:0", " 00:0")}`, AB],
    ["one digit of hours", `WEBVTT\n\n${COUNTED.replaceAll("00:0", "0:00:0")}`, AB],
    ["the old name of centered", `WEBVTT\n\n${ONE.replace("\n", " align:middle size:50%\n")}`, HI],
    ["a signature in lower case", `webvtt\n\n${COUNTED}`, AB],
    ["blank lines above the signature", `\n\nWEBVTT\n\n${COUNTED}`, AB],
    ["two byte order marks", `\ufeff\ufeffWEBVTT\n\n${COUNTED}`, AB],
    ["duplicate ids", `WEBVTT\n\n${COUNTED.replace("2\n", "1\n")}`, AB],
    ["numbers that are said", "WEBVTT\n\n1\n00:01.000 --> 00:02.000\n1984\n2\n42", [[1000, 2000, "1984\n2\n42"]]],
    ["a cue named like a header", `WEBVTT\n\nWEBVTT\n${ONE}`, HI],
  ])("%s: the file is accepted, without a warning", (_, text, expected) => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const content = text.replaceAll("\n", end);
      expect([cuesOf(content), accepted(content).warnings]).toEqual([expected, []]);
    }
  });

  test.each<[string, string]>([
    [
      "a valid file",
      `WEBVTT x\r\n\r\nNOTE \\N\r\n\r\nSTYLE\r\n::cue { color: red }\r\n\r\n1\r\n00:01.000 -->\t00:02.000 \r\n7\r\n\r\n\r\n${ONE}`,
    ],
    ["comments with numbers", `WEBVTT\n\nNOTE\n1\n2\n\nNOTE ${MAP}\n\n${ONE}\n`],
    ["a text that names the header", `WEBVTT\n\n00:01.000 --> 00:02.000\nWrite ${MAP}\n`],
    ["an empty text", "WEBVTT\n\n00:01.000 --> 00:02.000\n\n00:02.000 --> 00:03.000"],
    ["paths", "WEBVTT\n\n00:01.000 --> 00:02.000\nC:\\new\\home"],
  ])("%s is unchanged", (_, content) => {
    expect(accepted(content)).toEqual({ text: content, warnings: [] });
  });

  test("cues without duration are left out with their ids and texts, with a warning", () => {
    const content =
      "WEBVTT\n\nNOTE x\n\n1\n00:01.000 --> 00:01.000\nGone\n7\n\n2\n00:01.000 --> 00:02.000\nA\n3\n00:05.000 --> 00:05.000 line:0\nGone\n\n00:06.000-->00:06.000\n4\n00:03.000 --> 00:04.000\nB\n\n00:00.000 --> 00:00.000";
    expect(accepted(content)).toEqual({
      text: "WEBVTT\n\nNOTE x\n\n2\n00:01.000 --> 00:02.000\nA\n\n4\n00:03.000 --> 00:04.000\nB\n\n",
      warnings: [
        {
          code: "cues_skipped",
          count: 4,
          message: "4 cues were left out: 4 without duration (lines 6, 14, 17, 22).",
        },
      ],
    });
  });

  test("a warning lists ten lines", () => {
    const many = "00:01.000 --> 00:01.000\nx\n\n".repeat(12);
    expect(accepted(`WEBVTT\n\n${many}${ONE}`).warnings).toEqual([
      {
        code: "cues_skipped",
        count: 12,
        message: "12 cues were left out: 12 without duration (lines 3, 6, 9, 12, 15, 18, 21, 24, 27, 30 and 2 more).",
      },
    ]);
  });
});

describe("what remains a fault, with the line of the file", () => {
  const repaired = `WEBVTT\n${MAP}\n1\n${ONE}\\Nthere\n2\n00:03.000 --> 00:03.000\nGone\n\n`;
  test.each<[string, string, number, RegExp]>([
    ["the end before the start", "00:02.000 --> 00:01.000\nx", 10, /end after it starts/],
    ["the end before the start, and before LOCAL", "00:00.002 --> 00:00.001\nx", 10, /end after it starts/],
    ["commas", "00:00:01,000 --> 00:00:02,000\nx", 10, /a point before the milliseconds/],
    ["text without times", "3\n\nhello", 12, /"hello" has no timing line/],
    ["seconds over 59", "00:01.000 --> 00:60.000\nx", 10, /is not a time/],
    ["an unknown setting", "00:05.000 --> 00:06.000 colour:red\nx", 10, /is not a setting/],
    ["an arrow in a text", "00:05.000 --> 00:06.000\na --> b", 11, /arrow/],
    ["an arrow in a comment", "NOTE\n00:05.000 --> 00:06.000\nx", 11, /comment must not/],
  ])("%s", (_, block, line, message) => {
    const checked = checkVtt(`${repaired}${block}\n\n\n00:09.000 --> 00:09.000\n`);
    const moved = checkVtt(`${repaired.replace("LOCAL:00:00:00.000", "LOCAL:00:00:00.500")}${block}`);
    for (const one of [checked, moved])
      expect("faults" in one && one.faults[0]).toEqual({ line, message: expect.stringMatching(message) });
  });

  test("no cue that can be shown", () => {
    expect(checkVtt("WEBVTT\n\n00:01.000 --> 00:01.000\nx")).toEqual({
      message: "must contain at least one cue; 1 cue was left out: 1 without duration (line 3)",
    });
  });
});

test("a file named .vtt that is SubRip is converted", () => {
  const bytes = Buffer.from("1\n00:00:01,000 --> 00:00:02,500\nHi\n");
  expect(checkSubtitleFile({ filename: "a.vtt", bytes })).toEqual({
    text: "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHi\n",
    warnings: [],
  });
});

describe("generated files", () => {
  const line = fc.constantFrom(
    "WEBVTT",
    MAP,
    "X-TIMESTAMP-MAP=LOCAL:00:01.500",
    "",
    "",
    " ",
    "1",
    "2",
    "Hi",
    "a\\Nb",
    "NOTE x",
    "\u001a",
    "00:01.000 --> 00:02.000",
    "00:01.000 --> 00:01.000",
    "0:00:01.000-->00:02.000",
    "00:01.600 --> 00:02.000 align:middle",
    "<00:01.700>",
  );
  test("are accepted only if the W3C's own validator has no errors in the result, and are then unchanged by a second check", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 14 }), fc.constantFrom("\n", "\r\n", "\r"), (lines, end) => {
        const checked = checkVtt(lines.join(end));
        if (!("text" in checked)) return;
        // It requires times in ascending order, and knows no metadata below the signature.
        const errors = new webVtt.WebVTTParser()
          .parse(checked.text)
          .errors.filter(({ message }) => !/timestamp|after the signature/i.test(message));
        expect(errors, checked.text).toEqual([]);
        expect(checkVtt(checked.text), checked.text).toEqual({ text: checked.text, warnings: [] });
        expect(checked.text.match(/^x-timestamp-map/im)).toBeNull();
      }),
      { numRuns: 3000 },
    );
  });

  test("have the faulty lines that they have", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 14 }), fc.constantFrom("\n", "\r\n"), (lines, end) => {
        const checked = checkVtt([...lines, "", "not a cue", ""].join(end));
        const faults = "faults" in checked ? checked.faults : [];
        expect(faults.map((fault) => fault.line)).toContain(lines.length + 2);
      }),
    );
  });
});

test("the example of a map is shown at its time", () => {
  const file = new URL("../../support/timestamp-map.vtt", import.meta.url);
  expect(cuesOf(readFileSync(file, "utf8"))).toEqual([[1000, 3000, "MAPPED"]]);
});
