import { describe, expect, test } from "vitest";
import webVtt from "webvtt-parser";
import { runToEnd } from "#src/lib/base/sliced.ts";
import { decodeText } from "#src/lib/subtitles/vtt/decode.ts";
import { parsing, withHeader } from "#src/lib/subtitles/vtt/parse.ts";
import { formatTime, readTime } from "#src/lib/subtitles/vtt/time.ts";
import { writeCue } from "#src/lib/subtitles/vtt/write.ts";
import { fc } from "#test/support/property.ts";

const parse = (text: string, addedLines = 0) => runToEnd(parsing(text, addedLines));
const oracle = (text: string) => new webVtt.WebVTTParser().parse(text);
const cue = (timing: string, text = "Hi") => `WEBVTT\n\n${timing}\n${text}\n`;
const ONE = "00:01.000 --> 00:02.000\nHi";

describe("valid files", () => {
  test.each<[string, string, number]>([
    ["a cue", `WEBVTT\n\n${ONE}`, 1],
    ["a header with words", `WEBVTT - Español\n\n${ONE}\n`, 1],
    ["metadata below the header", `WEBVTT\nKind: captions\nLanguage: en\n\n${ONE}\n`, 1],
    ["CR LF", `WEBVTT\r\n\r\n${ONE.replaceAll("\n", "\r\n")}\r\n\r\n${ONE.replaceAll("\n", "\r\n")}`, 2],
    ["CR", `WEBVTT\r\r${ONE.replaceAll("\n", "\r")}\r`, 1],
    ["ids, of words too", `WEBVTT\n\n1\n${ONE}\n\nThe end - no. 2\n${ONE}`, 2],
    ["an empty text", "WEBVTT\n\n00:01.000 --> 00:02.000\n\n00:02.000 --> 00:03.000", 2],
    ["comments", `WEBVTT\n\nNOTE\nof\nlines\n\nNOTE in one\n\n${ONE}\n\nNOTE\tthe end`, 1],
    [
      "styles and regions",
      `WEBVTT\n\nSTYLE\n::cue { color: red }\n\nREGION \nid:a width:40%\nlines:3 regionanchor:0%,100% viewportanchor:10%,90% scroll:up\n\n${ONE}`,
      1,
    ],
    ["many blank lines", `WEBVTT\n\n\n\n${ONE}\n\n\n\n\n${ONE}\n\n\n`, 2],
    ["cues that overlap, in any order", `WEBVTT\n\n00:05.000 --> 00:09.000\nA\n\n${ONE}\n\n${ONE}`, 3],
    ["hours over 99", cue("100:00:00.000 --> 1000:59:59.999"), 1],
    ["tabs", cue("00:01.000\t \t-->\t00:02.000\tline:0 \t"), 1],
    [
      "all settings",
      cue("00:01.000 --> 00:02.000 vertical:rl line:-1,end position:10.5%,line-left size:50% align:center region:a"),
      1,
    ],
    ["a line as a percentage", cue("00:01.000 --> 00:02.000 line:100%,start align:left"), 1],
    ["no cue at all", "WEBVTT", 0],
  ])("%s", (_, text, cues) => {
    const parsed = parse(text);
    expect(parsed.faults).toEqual([]);
    expect(parsed.cues).toHaveLength(cues);
  });
});

describe("faults, with their lines", () => {
  test.each<[string, string, number, RegExp]>([
    ["no header", ONE, 1, /begin with WEBVTT/],
    ["another's header", `WEBVTTX\n\n${ONE}`, 1, /begin with WEBVTT/],
    ["a cue right below the header", `WEBVTT\n${ONE}`, 2, /blank line/],
    ["an id without times", "WEBVTT\n\nhello\nworld\n", 3, /"hello" has no timing line/],
    ["no start", cue("--> 00:02.000"), 3, /two times/],
    ["no end", cue("00:01.000 -->"), 3, /two times/],
    ["commas", cue("00:00:01,000 --> 00:00:02,000"), 3, /a point before the milliseconds/],
    ["short milliseconds", cue("00:01.00 --> 00:02.000"), 3, /"00:01.00" is not a time/],
    ["one digit of an hour", cue("0:00:01.000 --> 00:02.000"), 3, /is not a time/],
    ["seconds over 59", cue("00:01.000 --> 00:60.000"), 3, /"00:60.000" is not a time/],
    ["minutes over 59", cue("00:60:01.000 --> 01:02:00.000"), 3, /is not a time/],
    ["hours beyond all", cue(`00:01.000 --> ${"9".repeat(30)}:00:00.000`), 3, /is not a time/],
    ["letters", cue("00:01.000 --> soon"), 3, /"soon" is not a time/],
    ["the end before the start", cue("00:02.000 --> 00:01.000"), 3, /end after it starts/],
    ["no length", cue("00:02.000 --> 00:02.000"), 3, /end after it starts/],
    ["no spaces", cue("00:01.000-->00:02.000"), 3, /a space before and after/],
    ["a space before all", cue(" 00:01.000 --> 00:02.000"), 3, /begins with its first time/],
    ["an unknown setting", cue("00:01.000 --> 00:02.000 colour:red"), 3, /colour:red is not a setting/],
    ["a setting of objects", cue("00:01.000 --> 00:02.000 constructor:x"), 3, /is not a setting/],
    ["a bad setting", cue("00:01.000 --> 00:02.000 align:middle"), 3, /align must be start/],
    ["over a hundred percent", cue("00:01.000 --> 00:02.000 size:101%"), 3, /size must be/],
    ["a setting twice", cue("00:01.000 --> 00:02.000 size:1% size:2%"), 3, /twice/],
    ["an arrow in a text", cue("00:01.000 --> 00:02.000", "a\nb --> c"), 5, /arrow/],
    ["no blank line between cues", `WEBVTT\n\n${ONE}\n${ONE}`, 5, /blank line is missing/],
    ["an arrow in a comment", "WEBVTT\n\nNOTE\na --> b\n", 4, /comment must not/],
    ["an arrow in a style", `WEBVTT\n\nSTYLE\na --> b\n\n${ONE}`, 4, /STYLE block must not/],
    ["a style after a cue", `WEBVTT\n\n${ONE}\n\nSTYLE\nx\n`, 6, /precede the first cue/],
    ["a bad region", `WEBVTT\n\nREGION\nid:a\nlines:x\n\n${ONE}`, 5, /lines must be/],
  ])("%s", (_, text, line, message) => {
    const [fault] = parse(text).faults;
    expect(fault).toMatchObject({ line, message: expect.stringMatching(message) });
  });

  test("at most twenty faults are reported", () => {
    expect(parse(`WEBVTT\n\n${"x\n\n".repeat(100)}`).faults).toHaveLength(20);
    expect(parse(`WEBVTT\n\nREGION\n${"x\n".repeat(100)}`).faults).toHaveLength(20);
  });
});

describe("offsets", () => {
  test.each(["\n", "\r\n", "\r"])("refer to times and texts in the source, with any line ending (%j)", (end) => {
    const text =
      `WEBVTT ä😀\n\nid\n00:01.000  -->\t00:02.000 line:0\nOne\ntwo\n\n\n01:00:00.000 --> 02:00:00.000\n\nNOTE x`.replaceAll(
        "\n",
        end,
      );
    const at = ({ from, to }: { from: number; to: number }) => text.slice(from, to);
    expect(
      parse(text).cues.map((each) => [each.line, at(each.startAt), at(each.endAt), at(each.textAt), each.text]),
    ).toEqual([
      [4, "00:01.000", "00:02.000", `One${end}two`, "One\ntwo"],
      [9, "01:00:00.000", "02:00:00.000", "", ""],
    ]);
  });

  test("allow re-timing that preserves every other byte", () => {
    const text = "WEBVTT\r\n\r\nNOTE 00:01.000\r\n\r\n00:01.000 -->  00:02.000  line:0\r\n00:01.000";
    const [{ startAt, endAt }] = parse(text).cues as [ReturnType<typeof parse>["cues"][number]];
    const moved =
      text.slice(0, startAt.from) +
      formatTime(5000) +
      text.slice(startAt.to, endAt.from) +
      formatTime(6001) +
      text.slice(endAt.to);
    expect(moved).toBe("WEBVTT\r\n\r\nNOTE 00:01.000\r\n\r\n00:00:05.000 -->  00:00:06.001  line:0\r\n00:01.000");
  });
});

test("a missing header is added, with the file's own line endings, and line numbers are kept", () => {
  expect(withHeader(`WEBVTT\n\n${ONE}`)).toEqual({ text: `WEBVTT\n\n${ONE}`, addedLines: 0 });
  expect(withHeader(ONE)).toEqual({ text: `WEBVTT\n\n${ONE}`, addedLines: 2 });
  expect(withHeader("1\r\n00:01.000 --> 00:02.000").text).toMatch(/^WEBVTT\r\n\r\n1\r\n/);
  const { text, addedLines } = withHeader(`${ONE}\n\nx\n`);
  expect(parse(text, addedLines)).toMatchObject({ cues: [{ line: 1 }], faults: [{ line: 4 }] });
});

test.each<[string, Uint8Array, string | RegExp]>([
  ["UTF-8", Buffer.from("Grüße 😀"), "Grüße 😀"],
  ["a byte order mark", Buffer.from("\ufeffWEBVTT"), "WEBVTT"],
  ["UTF-16, little end first", Buffer.from("\ufeffWEBVTT", "utf16le"), /UTF-16; convert it/],
  ["UTF-16, big end first", Buffer.from("\ufeffWEBVTT", "utf16le").swap16(), /UTF-16; convert it/],
  ["UTF-16 without a mark", Buffer.from("WEBVTT", "utf16le"), /NUL/],
  ["Latin-1", Buffer.from("Grüße", "latin1"), /not in UTF-8; convert it/],
])("%s", (_, bytes, expected) => {
  const decoded = decodeText(bytes);
  if (typeof expected === "string") expect(decoded).toEqual({ text: expected });
  else expect(decoded).toMatchObject({ fault: expect.stringMatching(expected) });
});

const words = fc
  .stringMatching(/^[A-Za-zäß ,.!?😀-]{1,30}$/u)
  .filter((text) => !text.includes("-->") && text.trim() !== "");
const cues = fc
  .array(
    fc.record({
      gap: fc.nat(400_000_000),
      length: fc.integer({ min: 1, max: 100_000 }),
      id: fc.option(words.filter((text) => !/^(NOTE|STYLE|REGION)/.test(text))),
      settings: fc.constantFrom("", "line:0", "align:start position:10%", "size:35% line:-2"),
      text: fc.array(words, { maxLength: 3 }).map((lines) => lines.join("\n")),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((made) => {
    let at = 0;
    return made.map(({ gap, length, ...cue }) => {
      at += gap;
      return { ...cue, startMs: at, endMs: at + length };
    });
  });

describe("generated documents", () => {
  test("are parsed as written", () => {
    fc.assert(
      fc.property(cues, fc.constantFrom("\n", "\r\n", "\r"), (made, end) => {
        const text = `WEBVTT\n\n${made.map(writeCue).join("\n\n")}`.replaceAll("\n", end);
        const { cues: read, faults } = parse(text);
        expect(faults).toEqual([]);
        expect(read.map(({ id, startMs, endMs, settings, text }) => ({ id, startMs, endMs, settings, text }))).toEqual(
          made.map(({ id, startMs, endMs, settings, text }) => ({ id, startMs, endMs, settings, text })),
        );
        const { cues: theirs, errors } = oracle(text);
        expect(errors).toEqual([]);
        expect(theirs).toHaveLength(read.length);
      }),
    );
  });

  const line = fc.constantFrom(
    "WEBVTT",
    "",
    "",
    "1",
    "Hi",
    "NOTE x",
    "STYLE",
    "00:01.000 --> 00:02.000",
    "00:01.000 --> 00:01.000",
    "00:01.000 -->00:02.000",
    "00:01.000 --> 00:02.000 line:0",
    "00:01.000 --> 00:02.000 size:x",
    "0:01.000 --> 00:02.000",
    "00:00:01.000 --> 00:00:09.999",
    "a --> b",
  );
  test("are valid or invalid as for the W3C's own validator", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const text = `WEBVTT\n\n${lines.join("\n")}`;
        expect(parse(text).faults.length === 0, text).toBe(oracle(text).errors.length === 0);
      }),
      { numRuns: 2000 },
    );
  });

  test("never throw, and lines and offsets are within the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), fc.array(line), (junk, lines) => {
        const text = `${lines.join("\n")}${junk}\n${lines.join("\r\n")}`;
        for (const { startAt, textAt } of parse(text).cues) {
          expect(readTime(text.slice(startAt.from, startAt.to))).not.toBeNull();
          expect(textAt.to).toBeLessThanOrEqual(text.length);
        }
      }),
    );
  });
});
