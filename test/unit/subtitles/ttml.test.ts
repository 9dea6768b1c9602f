import { describe, expect, test } from "vitest";
import { runToEnd } from "#lib/base";
import { checkSubtitleFile, languageOfTtml } from "#src/lib/subtitles/index.ts";
import { fromTtml } from "#src/lib/subtitles/ttml/from-ttml.ts";

const NAMESPACES =
  'xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" xmlns:ttm="http://www.w3.org/ns/ttml#metadata"';
type Parts = { root?: string; head?: string; body?: string };
const tt = ({ root = 'xml:lang="en"', head = "", body = "" }: Parts) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<tt ${NAMESPACES} ${root}>\n<head>${head}</head>\n<body>${body}</body></tt>`;
const inDiv = (content: string, parts: Parts = {}) => tt({ ...parts, body: `<div>${content}</div>` });
const cue = (text: string, attributes = "") => inDiv(`<p begin="1s" end="2s" ${attributes}>${text}</p>`);

/** The cues of a document as `start-end settings text`, times in milliseconds. */
function cuesOf(source: string): string[] {
  const { text, faults } = runToEnd(fromTtml(source));
  expect(faults).toEqual([]);
  return text
    .trimEnd()
    .split("\n\n")
    .slice(1)
    .map((block) => {
      const [timing = "", ...lines] = block.split("\n");
      const [start = "", , end = "", ...settings] = timing.split(" ");
      return [`${ms(start)}-${ms(end)}`, ...settings, lines.join("|")].join(" ");
    });
}

function ms(time: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = time.split(":").map(Number);
  return Math.round(((hours * 60 + minutes) * 60 + seconds) * 1000);
}

test("a file becomes WebVTT, whatever its name is", () => {
  const bytes = Buffer.from(`\ufeff${cue("Tom &amp; Jerry<br/>&lt;are&gt; here --&gt;")}`);
  for (const filename of ["a.ttml", "a.dfxp", "a.xml", "a.srt", "a"])
    expect(checkSubtitleFile({ filename, bytes })).toEqual({
      text: "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nTom &amp; Jerry\n&lt;are&gt; here --&gt;\n",
      warnings: [],
    });
});

describe("times", () => {
  const at = (begin: string, root: string) => inDiv(`<p begin="${begin}" dur="100s">x</p>`, { root });
  test.each<[begin: string, root: string, startMs: number]>([
    ["01:02:03", "", 3_723_000],
    ["00:00:01.5", "", 1500],
    ["00:00:01.123456789", "", 1123],
    ["100:00:00.000", "", 360_000_000],
    ["00:00:01:15", "", 1500],
    ["00:00:01:15", 'ttp:frameRate="25"', 1600],
    ["00:00:01:15.1", 'ttp:frameRate="25" ttp:subFrameRate="2"', 1620],
    ["00:00:10:15", 'ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"', 10_501],
    ["00:00:10:12", 'ttp:frameRate="24" ttp:frameRateMultiplier="1000:1001"', 10_501],
    ["1h", "", 3_600_000],
    ["1.5h", "", 5_400_000],
    ["2m", "", 120_000],
    ["2.25s", "", 2250],
    ["1500ms", "", 1500],
    ["45f", "", 1500],
    ["45f", 'ttp:frameRate="25"', 1800],
    ["24f", 'ttp:frameRate="24" ttp:frameRateMultiplier="1000 1001"', 1001],
    ["7t", "", 7000],
    ["10000000t", 'ttp:tickRate="10000000"', 1000],
    ["50t", 'ttp:frameRate="25"', 2000],
    ["50t", 'ttp:frameRate="25" ttp:subFrameRate="2"', 1000],
    ["00:01:00:00", 'ttp:timeBase="smpte" ttp:frameRate="25"', 60_000],
    ["00:01:00:00", 'ttp:timeBase="smpte" ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"', 60_060],
    [
      "00:01:00:02",
      'ttp:timeBase="smpte" ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001" ttp:dropMode="dropNTSC"',
      60_060,
    ],
    [
      "01:00:00:00",
      'ttp:timeBase="smpte" ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001" ttp:dropMode="dropNTSC"',
      3_599_996,
    ],
    [" 1s ", "", 1000],
  ])("%s with %s", (begin, root, startMs) =>
    expect(cuesOf(at(begin, root))).toEqual([`${startMs}-${startMs + 100_000} x`]),
  );

  test.each<[string, string, string[]]>([
    ["a duration", '<div><p begin="1s" dur="2s">x</p></div>', ["1000-3000 x"]],
    ["the earlier one of duration and end", '<div><p begin="1s" dur="9s" end="2s">x</p></div>', ["1000-2000 x"]],
    ["no begin", '<div><p end="2s">x</p></div>', ["0-2000 x"]],
    ["a division that begins later", '<div begin="10s"><p begin="1s" end="2s">x</p></div>', ["11000-12000 x"]],
    ["a division that ends before", '<div end="3s"><p begin="1s" end="9s">x</p></div>', ["1000-3000 x"]],
    ["times of the division alone", '<div begin="1s" end="2s"><p>x</p><p>y</p></div>', ["1000-2000 x", "1000-2000 y"]],
    [
      "a sequence",
      '<div timeContainer="seq"><p dur="1s">a</p><p begin="500ms" dur="1s">b</p><p end="2s">c</p></div>',
      ["0-1000 a", "1500-2500 b", "2500-4500 c"],
    ],
    [
      "divisions in a sequence, which last as long as what they contain",
      '<div timeContainer="seq"><div><p begin="1s" dur="1s">a</p><p dur="3s">b</p></div><div><p dur="1s">c</p></div></div>',
      ["0-3000 b", "1000-2000 a", "3000-4000 c"],
    ],
    [
      "words with times of their own",
      '<div><p begin="1s" end="5s">a <span begin="1s">b</span> <span begin="2s" end="3s">c</span></p></div>',
      ["1000-2000 a", "2000-3000 a b", "3000-4000 a b c", "4000-5000 a b"],
    ],
    [
      "words in a sequence",
      '<div><p begin="1s" timeContainer="seq"><span dur="1s">a</span> <span dur="1s">b</span></p></div>',
      ["1000-2000 a", "2000-3000 b"],
    ],
    ...(
      [
        ["a line break", "<br/>", "A|B"],
        ["white space", "<span> </span>", "A B"],
        ["a line break in an element", "<span><br/></span>", "A|B"],
        ["a hidden element", '<span tts:display="none">no</span>', "AB"],
        ["a text that is not visible", '<span tts:visibility="hidden">no</span>', "AB"],
      ] as const
    ).map(([name, between, text]): [string, string, string[]] => [
      `${name} between timed words`,
      `<div><p><span begin="1s" end="2s">A</span>${between}<span begin="1s" end="2s">B</span></p></div>`,
      [`1000-2000 ${text}`],
    ]),
    [
      "a line break in a sequence of paragraphs",
      '<div timeContainer="seq"><p><span end="1s">a</span><br/><span end="1s">b</span></p><p dur="1s">c</p></div>',
      ["0-1000 a|b", "1000-2000 c"],
    ],
    [
      "a text that has no end next to one that has",
      '<div><p begin="1s">no <span end="1s">a</span><br/><span end="2s">b</span></p></div>',
      ["1000-2000 a|b", "2000-3000 b"],
    ],
    [
      "paragraphs without order",
      '<div><p begin="3s" end="4s">b</p><p begin="1s" end="2s">a</p></div>',
      ["1000-2000 a", "3000-4000 b"],
    ],
  ])("%s", (_name, body, cues) => expect(cuesOf(tt({ body }))).toEqual(cues));
});

describe("text", () => {
  test.each<[string, string, string]>([
    ["line breaks", "a<br/>b<br></br>c", "a|b|c"],
    ["white space", "\n   a\n   b  <span> c</span>  <br/>\n d ", "a b c|d"],
    ["blank lines", "a<br/><br/> <br/>b", "a|b"],
    ["space that is preserved", '<span xml:space="preserve">a  b\nc</span>', "a  b|c"],
    ["a CDATA section", "<![CDATA[a < b & c]]>", "a &lt; b &amp; c"],
    ["character references", "&#x263A;&#169;&quot;&apos;", "☺©\"'"],
    ["comments", "a<!-- <b> -->b", "ab"],
    ["metadata", "<metadata><ttm:desc>no</ttm:desc></metadata><ttm:title>no</ttm:title>a", "a"],
    ["other namespaces", '<x xmlns="urn:other">no<p>no</p></x>a', "a"],
    ["italic", '<span tts:fontStyle="italic">a</span> b', "<i>a</i> b"],
    ["oblique", '<span tts:fontStyle="oblique">a</span>', "<i>a</i>"],
    ["bold and underlined", '<span tts:fontWeight="bold" tts:textDecoration="underline">a</span>', "<b><u>a</u></b>"],
    ["styles of several lines", '<span tts:fontStyle="italic">a<br/>b</span>', "<i>a|b</i>"],
    [
      "nested styles",
      '<span tts:fontStyle="italic">a <span tts:fontWeight="bold">b</span> <span tts:fontStyle="normal">c</span></span>',
      "<i>a </i><b><i>b</i></b><i> </i>c",
    ],
    [
      "ruby",
      '<span tts:ruby="container"><span tts:ruby="base">字</span><span tts:ruby="text">じ</span></span>',
      "<ruby>字<rt>じ</rt></ruby>",
    ],
    ["another language", '<span xml:lang="DE-at">Grüße</span> all', "<lang de-AT>Grüße</lang> all"],
    ["what is hidden", '<span tts:visibility="hidden">a</span><span tts:display="none">b</span>c', "c"],
  ])("%s", (_name, text, expected) => expect(cuesOf(cue(text))).toEqual([`1000-2000 ${expected}`]));

  test.each<[string, string, string]>([
    ["a style by name", 'style="i"', "<i>x</i>"],
    ["a style of a style", 'style="both"', "<b><i>x</i></b>"],
    ["an attribute over a style", 'style="i" tts:fontStyle="normal"', "x"],
    ["a style that refers to itself", 'style="loop"', "<u>x</u>"],
    ["an unknown style", 'style="none"', "x"],
    ["a style of its region", 'region="r"', "<i>x</i>"],
  ])("%s", (_name, attributes, expected) => {
    const head = `<styling><style xml:id="i" tts:fontStyle="italic"/><style xml:id="both" style="i" tts:fontWeight="bold"/>
      <style xml:id="loop" style="loop" tts:textDecoration="underline"/></styling>
      <layout><region xml:id="r" style="i"/></layout>`;
    expect(cuesOf(inDiv(`<p begin="1s" end="2s" ${attributes}>x</p>`, { head }))).toEqual([`1000-2000 ${expected}`]);
  });
});

describe("regions", () => {
  test.each<[string, string, string, string]>([
    ["none", "", "", ""],
    ["at the bottom", 'tts:origin="10% 80%" tts:extent="80% 15%"', "", ""],
    ["at the top", 'tts:origin="10% 5%" tts:extent="80% 15%"', "", "line:0"],
    ["in the middle", 'tts:origin="10% 40%" tts:extent="80% 20%" tts:displayAlign="center"', "", "line:50%"],
    ["whole, at its end", 'tts:displayAlign="after"', "", ""],
    ["whole, at its start", 'tts:displayAlign="before"', "", "line:0"],
    ["in pixels", 'tts:origin="128px 36px" tts:extent="1024px 100px"', 'tts:extent="1280px 720px"', "line:0"],
    ["in cells", 'tts:origin="4c 13c" tts:extent="24c 2c"', "", ""],
    [
      "in cells of its own",
      'tts:origin="4c 13c" tts:extent="24c 2c"',
      'ttp:cellResolution="40 100"',
      "line:0 position:40%",
    ],
    [
      "aligned to the left",
      'tts:origin="10% 80%" tts:extent="80% 15%" tts:textAlign="left"',
      "",
      "position:10% align:left",
    ],
    [
      "aligned to the end",
      'tts:origin="10% 80%" tts:extent="80% 15%" tts:textAlign="end"',
      "",
      "position:90% align:end",
    ],
    ["vertical", 'tts:writingMode="tbrl"', "", "vertical:rl"],
    ["that cannot be read", 'tts:origin="1em 2em" tts:extent="auto"', "", ""],
  ])("%s", (_name, region, root, settings) => {
    const head = `<layout><region xml:id="r" ${region}/></layout>`;
    const source = inDiv('<p region="r" begin="1s" end="2s">x</p>', { head, root });
    expect(cuesOf(source)).toEqual([["1000-2000", settings, "x"].filter(Boolean).join(" ")]);
  });
});

test.each<[string, string, string]>([
  ["DFXP", "http://www.w3.org/2006/10/ttaf1", "tt"],
  ["a prefix", "http://www.w3.org/ns/ttml", "other:tt"],
])("%s is read", (_name, uri, name) => {
  const prefix = name.replace(/tt$/, "");
  const source = `<${name} xmlns${prefix && ":other"}="${uri}" xmlns:s="${uri}#styling"><${prefix}body><${prefix}div>
    <${prefix}p begin="1s" end="2s" s:fontStyle="italic">x</${prefix}p></${prefix}div></${prefix}body></${name}>`;
  expect(cuesOf(source)).toEqual(["1000-2000 <i>x</i>"]);
});

test("the language is that of the document", () => {
  expect(languageOfTtml(tt({ root: 'xml:lang="de-at"' }))).toBe("de-AT");
  expect(languageOfTtml('<a:tt xmlns:a="http://www.w3.org/ns/ttml" xml:lang="fr">')).toBe("fr");
  const none = ["", 'xml:lang=""', 'xml:lang="no language"'].map((root) => tt({ root }));
  for (const source of [...none, "WEBVTT", "", '<html xml:lang="de"/>', "<tt", '<tt xml:lang="de'])
    expect(languageOfTtml(source)).toBe(null);
});

test("what cannot be shown is left out, with a warning", () => {
  const body = `<div smpte:backgroundImage="#a"/>
<p begin="1s" end="1s">a</p>
<p begin="1s">b</p>
<p begin="1s" end="2s"> <br/> </p>
<p begin="1s">d <span end="1s">c</span></p>`;
  const checked = checkSubtitleFile({ filename: "a.ttml", bytes: Buffer.from(tt({ body })) });
  expect(checked).toEqual({
    text: "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nc\n",
    warnings: [
      {
        code: "cues_skipped",
        count: 5,
        message:
          "5 cues were left out: 1 with an image in place of text (line 4), 1 without duration (line 5), 2 without an end (lines 6, 8), 1 without text (line 7).",
      },
    ],
  });
});

test.each<[string, string, number, RegExp]>([
  ["an end tag that is missing", "<tt>\n<body>\n</tt>", 3, /^<\/tt> has no start tag/],
  ["no end tag", "<tt>\n<body>", 2, /^<body> has no end tag/],
  [
    "a document type",
    '<?xml version="1.0"?>\n<!DOCTYPE tt [<!ENTITY a "b">]>\n<tt/>',
    2,
    /^a document type is not supported/,
  ],
  ["an entity", "<tt>\n<body>&other;</body></tt>", 2, /^the entity &other; is unknown/],
  ["a tag that is cut off", "<tt>\n\n<body", 3, /^the XML is malformed here/],
  ["another root", "<?xml version='1.0'?>\n<html/>", 2, /^the root element is html; expected tt/],
  ["another namespace", '<tt xmlns="urn:other"/>', 1, /^the root element is tt; expected tt of TTML/],
  ["two roots", "<tt/>\n<tt/>", 2, /^the document has several root elements/],
  ["a time", inDiv('\n<p begin="1,5s" end="3s">x</p>'), 5, /^begin="1,5s" is not a time/],
  ["a frame", inDiv('<p begin="00:00:01:30" end="3s">x</p>'), 4, /the frame must be less than ttp:frameRate, 30/],
  ["minutes", inDiv('<p begin="00:60:01" end="3s">x</p>'), 4, /minutes and seconds must be at most 59/],
  ["a time of a clock", inDiv("", { root: 'ttp:timeBase="clock"' }), 2, /ttp:timeBase="clock" must be media or smpte/],
  ["a frame rate", inDiv("", { root: 'ttp:frameRate="0"' }), 2, /ttp:frameRate="0" must be a positive whole number/],
])("%s is a fault with its line", (_name, source, line, message) => {
  const [fault] = runToEnd(fromTtml(source)).faults;
  expect(fault).toEqual({ line, message: expect.stringMatching(message) });
});

test.each<[string, string]>([
  ["elements inside each other", inDiv("<span>".repeat(50))],
  ["elements", inDiv("<br/>".repeat(100_001))],
  [
    "styles that refer to each other in a row",
    tt({
      head: `<styling>${Array.from({ length: 100 }, (_, n) => `<style xml:id="s${n}" style="s${n + 1}"/>`).join("")}</styling>`,
      body: '<p style="s0" begin="1s" end="2s">x</p>',
    }),
  ],
  [
    "texts in paragraphs whose parts have times",
    cue(Array.from({ length: 3000 }, (_, n) => `<span begin="${n}ms">x</span>`).join("")),
  ],
])("a document with too many %s is too complex", (message, source) =>
  expect(() => runToEnd(fromTtml(source))).toThrow(message),
);
