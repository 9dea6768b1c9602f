import { deflateSync } from "node:zlib";
import type { ParserInput, ParserName } from "#platform/parsing/parsers.ts";

/** Units that texts repeat, including lone surrogates, byte order marks and NULs. */
// biome-ignore format: a list to be read, not a column.
const UNITS = [
  '"', "'", ",", "<", ">", "</", "/>", "<!--", "-->", "<?", "?>", "<![CDATA[", "<!DOCTYPE", " ", "\t", "\n", "\r", "\r\n", "\n\r", "\0",
  "\ud800", "\ufeff", "\u2028", "a", "A", "a=", "A=", 'A="', 'A="",', ",URI=", ',URI="', ':URI="x"', "=", "9", "9.", ":", "0:", "-", "&", "&amp;",
  "&#", "&#x41;", "#", "#EXT", "#EXTINF:1,\na\n", "#EXTINF:9e9,\n", "#EXT-X-MAP:", "\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"a\"",
  "\n#EXT-X-STREAM-INF:SUBTITLES=\"a\"\nb", "#xywh=", "\nx#xywh=1,1,1,1", "x#xywh=", "00:00.000 --> 00:01.000\nx\n\n", "\n00:00.000 --> ",
  "00:00.000 --> 00:01.000\nx.jpg#xywh=0,0,1,1\n", "NOTE\n", "STYLE\n", "REGION\n", "id:", "<b>", "<c.", "<00:00.000>", "{\\", "{\\an8}", "[", "(", "【",
  "1\n00:00:00,000 --> 00:00:01,000\nx\n\n", "1\n", "<Period>", "</Period>", "<Period/>", "<MPD", "<MPD>", "<BaseURL", "<BaseURL>", "<BaseURL>a/</BaseURL>",
  "<ProgramInformation", "<S/>", "<S d='1'/>", "<a b='", "<a b=''", " b=''", "$", "$Number$", "$Number%099d$", "$$", "/", "../../", "./", "%", "%41", "é", "あ", "😀", "word ",
  "1\n\n", "\\N", "\u001a", "\u001a\n", "WEBVTT\n\n", "X-TIMESTAMP-MAP=LOCAL:00:00.001\n", "LOCAL:", "00:00.000 --> 00:00.000\n", " 0:00:00.000-->00:00.001\n", "-00:00,0 --> -00:00,0\n",
];

/** `unit` repeated, at most `size` characters; in one line, or in lines of the maximum length of a playlist. */
const repeated = (unit: string, size: number) => unit.repeat(Math.floor(size / unit.length));
const inLines = (unit: string, size: number) => {
  const line = `${repeated(unit, 60_000)}\n`;
  return repeated(line, size);
};

type Text = (size: number) => string;
type Named = [name: string, text: Text];

/** Texts of about `size` characters that begin with one of `heads`, repeat a unit, and end with one of `tails`. */
const around = (heads: readonly string[], tails: readonly string[] = [""]): Named[] =>
  heads.flatMap((head) =>
    tails.flatMap((tail) =>
      UNITS.flatMap((unit): Named[] => {
        const name = JSON.stringify([head, unit, tail]);
        return [
          [name, (size) => head + repeated(unit, size) + tail],
          [`${name} in lines`, (size) => head + inLines(unit, size) + tail],
        ];
      }),
    ),
  );

const MPD = '<MPD type="static" mediaPresentationDuration="PT9000000S"><Period><AdaptationSet>';
const END = "</AdaptationSet></Period></MPD>";
const mpd = (inner: string) => MPD + inner + END;
const template = (attributes: string, inner = "", id = "a") =>
  `<Representation id="${id}"><SegmentTemplate ${attributes}>${inner}</SegmentTemplate></Representation>`;
const filled = (unit: string, size: number) => repeated(unit, size - 500);

/** Well-formed manifests, which reach the expansion. */
const MANIFESTS: Named[] = [
  ["10^15 refused segments", () => mpd(template('media="/x" duration="1" endNumber="999999999999999"'))],
  ["10^15 segments", () => mpd(template('media="$Number$" duration="1" endNumber="999999999999999"'))],
  ["10^15 segments by length", () => mpd(template('media="$Time$" duration="1" timescale="999999999999999"'))],
  [
    "10^15 repeats",
    () => mpd(template('media="$Time$"', '<SegmentTimeline><S d="1" r="999999999999999"/></SegmentTimeline>')),
  ],
  ["a negative repeat", () => mpd(template('media="$Time$"', '<SegmentTimeline><S d="1" r="-1"/></SegmentTimeline>'))],
  ["10^15 of one address", () => mpd(template('media="x" duration="1" endNumber="999999999999999"'))],
  ["wide numbers", () => mpd(template(`media="${"$Number%099d$".repeat(600)}" duration="1" endNumber="99999"`))],
  ["a number too wide", () => mpd(template('media="$Number%0999999999d$" duration="1" endNumber="99999"'))],
  [
    "a template that is mostly nothing",
    () => mpd(template(`media="${"$RepresentationID$".repeat(400)}$Number$" duration="1" endNumber="999999"`, "", "")),
  ],
  ["a long template", (size) => mpd(template(`media="${filled("m", size)}$Number$" duration="1" endNumber="50000"`))],
  [
    "a template within the limit",
    () => mpd(template(`media="${"m".repeat(8000)}$Number$" duration="1" endNumber="50000"`)),
  ],
  [
    "a long base",
    (size) =>
      mpd(`<BaseURL>${filled("a/", size)}</BaseURL>${template('media="$Number$" duration="1" endNumber="99999"')}`),
  ],
  [
    "bases within bases",
    (size) =>
      mpd(
        `<BaseURL>${"b/".repeat(2000)}</BaseURL>${filled("<Representation><BaseURL>c/</BaseURL></Representation>", size)}`,
      ),
  ],
  [
    "a timeline that representations share",
    (size) =>
      mpd(
        `<SegmentTemplate media="$Time$"><SegmentTimeline>${filled('<S d="1"/>', size / 2)}</SegmentTimeline></SegmentTemplate>${filled('<Representation id="a"/>', size / 2)}`,
      ),
  ],
  [
    "a timeline of something else",
    (size) =>
      mpd(
        `<SegmentTemplate media="$Time$"><SegmentTimeline>${filled("<X/>", size / 2)}</SegmentTimeline></SegmentTemplate>${filled('<Representation id="a"/>', size / 2)}`,
      ),
  ],
  [
    "a list that representations share",
    (size) =>
      mpd(
        `<SegmentList><SegmentURL media="a"/>${filled("<X/>", size / 2)}</SegmentList>${filled('<Representation id="a"/>', size / 2)}`,
      ),
  ],
  [
    "templates with many children",
    (size) =>
      mpd(
        `<SegmentTemplate media="a" duration="9000000">${filled("<X/>", size / 2)}</SegmentTemplate>${filled('<Representation id="a"><SegmentTemplate/></Representation>', size / 2)}`,
      ),
  ],
  ["elements within elements", (size) => `<MPD>${filled("<a>", size)}`],
  ["elements within elements, closed", (size) => `${repeated("<a>", size / 2)}${repeated("</a>", size / 2)}`],
  ["many attributes", (size) => `<MPD ${Array.from({ length: size / 12 }, (_, index) => `a${index}=""`).join(" ")}/>`],
  ["many periods", (size) => `<MPD>${filled("<Period/>", size)}</MPD>`],
  [
    "many references",
    (size) =>
      mpd(`<Representation><SegmentList>${filled('<SegmentURL media="a"/>', size)}</SegmentList></Representation>`),
  ],
  ["entities", (size) => mpd(`<BaseURL>${filled("&amp;", size)}</BaseURL>`)],
  ["a document type", (size) => `<!DOCTYPE a [<!ENTITY a "${filled("&a;", size)}">]><MPD>&a;</MPD>`],
];

const stream =
  (groups: (index: number) => string): Text =>
  (size) =>
    `#EXTM3U\n${Array.from({ length: size / 60 }, (_, index) => `#EXT-X-STREAM-INF:BANDWIDTH=1,SUBTITLES="${groups(index)}"\na\n`).join("")}`;
const PLAYLISTS: Named[] = [
  ["many groups", stream(String)],
  ["one group", stream(() => "a")],
  [
    "names that are taken",
    (size) =>
      `#EXTM3U\n${Array.from({ length: size / 70 }, (_, index) => `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subs",NAME="English (${index})"\n`).join("")}#EXT-X-STREAM-INF:SUBTITLES="subs"\na\n`,
  ],
  ["many segments", (size) => `#EXTM3U\n${repeated("#EXTINF:1,\na\n", size)}#EXT-X-ENDLIST\n`],
  ["ranges", (size) => `#EXTM3U\n${repeated("#EXT-X-BYTERANGE:1\n#EXTINF:1,\na\n", size)}#EXT-X-ENDLIST\n`],
];

/** A playlist whose segments are numbered. */
const CLIPPABLE: Named[] = [
  [
    "numbered segments",
    (size) =>
      `#EXTM3U\n#EXT-X-MAP:URI="i"\n${Array.from({ length: size / 20 }, (_, index) => `#EXTINF:1,\n${index}.m4s\n`).join("")}#EXT-X-ENDLIST\n`,
  ],
];

const paragraphs =
  (paragraph: (index: number) => string): Text =>
  (size) => {
    const length = paragraph(1000).length;
    return `<tt><body><div>${Array.from({ length: size / length }, (_, index) => paragraph(index)).join("")}</div></body></tt>`;
  };
const TTML: Named[] = [
  ["paragraphs", paragraphs((index) => `<p begin="${index}s" dur="1s">x</p>`)],
  [
    "paragraphs in a sequence of themselves",
    paragraphs((index) => `<p xml:id="p${index}" timeContainer="seq"><span dur="1ms">x</span></p>`),
  ],
  [
    "timed words",
    paragraphs((index) => `<p begin="0s" end="9h"><span begin="${index}ms">x</span><span begin="1ms">y</span></p>`),
  ],
  [
    "one paragraph of timed words",
    (size) =>
      `<tt><body><div><p begin="0s" end="9h">${Array.from({ length: size / 40 }, (_, index) => `<span begin="${index}ms">x</span>`).join("")}</p></div></body></tt>`,
  ],
  [
    "nested words",
    (size) =>
      `<tt><body><div><p begin="0s" end="9h">${repeated(`${"<span>".repeat(30)}x${"</span>".repeat(30)}`, size)}</p></div></body></tt>`,
  ],
  [
    "styles that refer to each other",
    (size) =>
      `<tt><head><styling>${Array.from({ length: size / 40 }, (_, index) => `<style xml:id="${index}" style="${index + 1} 0"/>`).join("")}</styling></head></tt>`,
  ],
  ["namespaces", (size) => `<tt>${repeated('<a xmlns:a="b" xmlns:c="d"><a:b c:d=""/></a>', size)}</tt>`],
];

/** Timed texts with chosen words, which determine the cost of pairing. */
const cues =
  (text: (index: number) => string, end: (index: number) => number = (index) => index + 1): Text =>
  (size) => {
    const time = (seconds: number) => new Date(seconds * 1000).toISOString().slice(11, 23);
    const lines: string[] = [];
    let characters = 0;
    for (let index = 0; characters < size && index < 80_000; index++) {
      const cue = `${time(index)} --> ${time(end(index))}\n${text(index)}\n`;
      lines.push(cue);
      characters += cue.length + 1;
    }
    return `WEBVTT\n\n${lines.join("\n")}`;
  };
const TIMED: Named[] = [
  ["one word", cues(() => "la")],
  ["one word many times", cues(() => "la ".repeat(40))],
  ["words of their own", cues((index) => `word${index} other${index * 7919}`)],
  ["two alternating words", cues((index) => (index % 2 ? "left right" : "right left"))],
  ["words backwards", cues((index) => `w${80_000 - index}`)],
  [
    "ends that fall",
    cues(
      (index) => `line ${index} is its own text`,
      (index) => 86_000 - index,
    ),
  ],
  ["brackets", cues(() => "[(".repeat(50))],
];

const bytesOf = (text: string) => Buffer.from(text);
const below = {
  carried: "~token/",
  folder: "1-1/",
  root: "/media/1/~token/",
  hidden: ["hvc1", "hev1", "av01"],
  variant: null,
  audio: { changed: [], added: [] },
  isStereo: true,
  sides: { min: 360, max: 720 },
  isAscending: true,
  sheet: null,
  tracks: Array.from({ length: 20 }, (_, id) => ({
    id,
    list: `subtitles/${id}.m3u8`,
    file: `subtitles/${id}.vtt`,
    language: "en",
    label: "English",
    isDefault: false,
    role: "caption" as const,
  })),
};

type Hostile<N extends ParserName> = { texts: readonly Named[]; input(text: string): ParserInput<N> };

const playlists = [
  ...around(["#EXTM3U\n", "#EXTM3U\n#EXT-X-MEDIA:", '#EXTM3U\n#EXT-X-MEDIA:URI="', "#EXTM3U\n#EXTINF:"]),
  ...PLAYLISTS,
];
const manifests = [...around(["", "<MPD>", "<MPD ", "<MPD><BaseURL>", "<MPD><!--"]), ...MANIFESTS];
const storyboards = around(["WEBVTT\n\n", "WEBVTT\n\n00:00.000 --> 00:01.000\n", ""]);
const subtitles = [
  ...around(["WEBVTT\n\n", "WEBVTT\n\n00:00.000 --> 00:01.000", "WEBVTT\n\n00:00.000 --> 00:01.000\n"]),
  ...TIMED,
];
const ttml = [
  ...around(
    ["<tt><body><div><p begin='0s' end='1s'>", "<tt><head><styling>", "<tt "],
    ["", "</p></div></body></tt>", "</styling></head></tt>"],
  ),
  ...TTML,
];
const subRip = around(["", "1\n00:00:00,000 --> 00:00:01,000\n", "1\n00:00:00,000 --> "]);

/** Hostile documents for each parser. */
export const HOSTILE: { [N in ParserName]: Hostile<N> } = {
  csv: {
    texts: around(["", '"', "a,b\n", 'a,"b'], ["", '"', '"\n']),
    input: (text) => ({ bytes: bytesOf(text), isFirst: true, isLast: true }),
  },
  hls: { texts: playlists, input: (text) => ({ text, path: "folder/master.m3u8", stored: 1000 }) },
  hlsSegments: { texts: PLAYLISTS, input: (text) => ({ bytes: bytesOf(text) }) },
  mpd: { texts: manifests, input: (text) => ({ text, path: "folder/manifest.mpd", stored: 1000 }) },
  storyboard: { texts: storyboards, input: (text) => ({ text }) },
  rebase: {
    texts: [...playlists, ...manifests, ...storyboards],
    input: (text) => ({
      what: text.startsWith("#EXTM3U") ? "master" : text.startsWith("WEBVTT") ? "storyboard" : "mpd",
      bytes: bytesOf(text),
      below,
    }),
  },
  storyboardJson: {
    texts: storyboards,
    input: (text) => ({
      bytes: bytesOf(text),
      root: "http://localhost/media/1/",
      folder: "1-1/",
      durationSeconds: 10,
      sheet: null,
    }),
  },
  clipMaster: { texts: playlists, input: (text) => ({ bytes: bytesOf(text), path: "folder/master.m3u8" }) },
  clipPlaylist: {
    texts: [...playlists, ...CLIPPABLE],
    input: (text) => ({ bytes: bytesOf(text), path: "folder/low.m3u8", around: { start: 0, end: 1e9 } }),
  },
  clipMpd: {
    texts: manifests,
    input: (text) => ({
      bytes: bytesOf(text),
      path: "folder/manifest.mpd",
      range: { start: 0, end: 1e9 },
      shared: { startSeconds: 0, segments: [], objects: [] },
    }),
  },
  clipVtt: { texts: subtitles, input: (text) => ({ bytes: bytesOf(text), startMs: 0, endMs: 1e9 }) },
  clipStoryboard: { texts: storyboards, input: (text) => ({ bytes: bytesOf(text), startMs: 0, endMs: 1e9 }) },
  vtt: { texts: subtitles, input: (text) => ({ text }) },
  subtitleFile: { texts: [...subRip, ...ttml], input: (text) => ({ filename: "a.srt", bytes: bytesOf(text) }) },
  syncTexts: { texts: TIMED, input: (text) => ({ track: text, reference: text }) },
  payloads: { texts: subtitles, input: (text) => ({ text }) },
  transcript: { texts: subtitles, input: (text) => ({ text, asJson: "en" }) },
  spokenWords: {
    texts: around(["", "[", '[["', "[[[", '[["a",1,'], ["", "[", '"', '["a",0,1],']),
    input: (text) => ({ bytes: bytesOf(text) }),
  },
  editedWords: {
    texts: TIMED,
    input: (text) => ({
      text,
      words: deflateSync(JSON.stringify([...text.matchAll(/\p{L}+/gu)].map(([word], at) => [word, at, at + 1]))),
    }),
  },
  wordsTranscript: {
    texts: subtitles,
    input: (text) => ({ words: deflateSync(JSON.stringify([[text, 0, 1]])), language: "en" }),
  },
  searchSections: { texts: subtitles, input: (text) => ({ bytes: Buffer.from(text), tenantId: 1, language: "en" }) },
};
