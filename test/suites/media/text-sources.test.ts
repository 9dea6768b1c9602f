import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { readIndex, readSubtitleTracks } from "#lib/isobmff";
import { readTextTracks } from "#media/captions/read-text-tracks.ts";
import { emptyFolder } from "#test/support/folder.ts";
import {
  cluster,
  compression,
  element,
  matroska,
  TRACK,
  textBlock,
  textTrack,
} from "#test/support/media/matroska-file.ts";
import { cuesOf, type ReadCue } from "#test/support/media/source-captions.ts";
import { textsIn } from "#test/support/media/source-texts.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";

const SECONDS = 12;
const folder = emptyFolder();
const at = (name: string) => join(folder, name);

const SRT = `1
00:00:01,500 --> 00:00:03,000
Plain <i>italic</i> <font color="#ff0000">red</font>

2
00:00:05,000 --> 00:00:07,250
3 < 4 & Ü
second line

3
00:00:08,000 --> 00:00:09,000
{\\an8}Top
`;
const ASS = `[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,20,&H00FFFFFF,&H000000FF,&H00000000,&H00000000,0,0,0,0,100,100,0,0,1,2,2,2,10,10,10,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,Not shown
Dialogue: 0,0:00:01.50,0:00:03.00,Default,,0,0,0,,{\\fad(100,100)}Plain {\\i1}italic{\\i0} {\\c&H0000FF&}red{note}
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,{\\p1}m 0 0 l 100 0 100 100{\\p0}
Dialogue: 0,0:00:05.00,0:00:07.25,Default,Speaker,0,0,0,,3 < 4 & Ü\\Nsecond\\hline
Dialogue: 0,0:00:08.00,0:00:09.00,Default,,0,0,0,,{\\an8}Top
`;
const VTT = `WEBVTT

first
00:01.500 --> 00:03.000 align:start
Plain <i>italic</i> red

00:05.000 --> 00:07.250
3 &lt; 4 &amp; Ü
second line

00:08.000 --> 00:09.000 line:0
Top
`;
const EXPECTED: ReadCue[] = [
  { start: 1.5, end: 3, text: "Plain <i>italic</i> red" },
  { start: 5, end: 7.25, text: "3 &lt; 4 &amp; Ü\nsecond line" },
  { start: 8, end: 9, text: "Top" },
];

/** Clocks of containers round. */
function expectCues(cues: readonly ReadCue[] = [], shift = 0, expected = EXPECTED): void {
  expect(cues.map(({ text }) => text.replaceAll("\u00a0", " "))).toEqual(expected.map(({ text }) => text));
  for (const [index, { start, end }] of expected.entries()) {
    expect(Math.abs((cues[index]?.start ?? 0) - start - shift)).toBeLessThan(0.05);
    expect(Math.abs((cues[index]?.end ?? 0) - end - shift)).toBeLessThan(0.05);
  }
}

const H264 = [...fast, "-g", "20", "-c:a", "aac"];
const VP8 = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"];
beforeAll(async () => {
  for (const [name, text] of Object.entries({ "a.srt": SRT, "a.ass": ASS, "a.vtt": VTT }))
    writeFileSync(at(name), text);
  await ffmpeg(...picture("160x90", "10", SECONDS), ...sound(SECONDS), ...H264, at("plain.mp4"));
});

const MUXED: [name: string, input: string, args: readonly string[]][] = [
  ["srt.mkv", "a.srt", ["-c:s", "copy"]],
  ["ass.mkv", "a.ass", ["-c:s", "copy"]],
  ["ssa.mkv", "a.ass", ["-c:s", "ssa"]],
  ["vtt.mkv", "a.vtt", ["-c:s", "copy"]],
  ["vtt.webm", "a.vtt", ["-c:s", "copy", ...VP8]],
  ["srt.mp4", "a.srt", ["-c:s", "mov_text"]],
  ["faststart.mp4", "a.srt", ["-c:s", "mov_text", "-movflags", "+faststart"]],
  ["srt.m4v", "a.srt", ["-c:s", "mov_text"]],
  ["srt.mov", "a.srt", ["-c:s", "mov_text"]],
];
test.for(MUXED)("text in %s", async ([name, input, args]) => {
  const inputs = ["-i", at("plain.mp4"), "-i", at(input), "-map", "0", "-map", "1", "-c:v", "copy", "-c:a", "copy"];
  await ffmpeg(...inputs, "-metadata:s:s:0", "language=ger", ...args, at(name));
  const { texts, messages } = await textsIn(at(name));
  expect(messages).toEqual([]);
  expect(texts).toMatchObject([{ number: 3, kind: "subtitles", isDefault: false, skippedCues: 0 }]);
  expect(["ger", "de"]).toContain(texts[0]?.language);
  expectCues(texts[0]?.cues);
});

/** Times of text are those of the encode, which begins with the first of the tracks. */
const CLOCKS: [name: string, shift: number, before: readonly string[], after: readonly string[]][] = [
  ["from-an-hour.mkv", 0, [], ["-output_ts_offset", "3600", "-c:s", "copy"]],
  ["late-text.mkv", 2, ["-itsoffset", "2"], ["-c:s", "copy"]],
  ["late-text.mp4", 2, ["-itsoffset", "2"], ["-c:s", "mov_text"]],
];
test.for(CLOCKS)("text in %s is in time with the video", async ([name, shift, before, after]) => {
  await ffmpeg(
    "-i",
    at("plain.mp4"),
    ...before,
    "-i",
    at("a.srt"),
    "-map",
    "0",
    "-map",
    "1",
    "-c",
    "copy",
    ...after,
    at(name),
  );
  expectCues((await textsIn(at(name))).texts[0]?.cues, shift);
});

test("text before the first frame is shown from the start", async () => {
  for (const [name, codec, begin] of [
    ["late-video.mp4", "mov_text", 2],
    // ffmpeg counts from text that begins less than a second before.
    ["late-video.mkv", "copy", 1.5],
  ] as const) {
    const late = ["-itsoffset", "2", "-i", at("plain.mp4"), "-i", at("a.srt"), "-map", "0", "-map", "1", "-c", "copy"];
    await ffmpeg(...late, "-c:s", codec, at(name));
    const expected = EXPECTED.map(({ start, end, text }) => ({ start: Math.max(begin, start), end, text }));
    expectCues((await textsIn(at(name))).texts[0]?.cues, -begin, expected);
  }
});

test("flags, titles and languages of several tracks", async () => {
  const inputs = ["-i", at("plain.mp4"), "-i", at("a.srt"), "-map", "0", ...Array(3).fill(["-map", "1"]).flat()];
  const flags = [
    ...["-metadata:s:s:0", "language=eng", "-metadata:s:s:0", "title=English\u202e", "-disposition:s:0", "default"],
    ...["-metadata:s:s:1", "language=eng", "-disposition:s:1", "hearing_impaired"],
    ...["-metadata:s:s:2", "language=fre", "-disposition:s:2", "forced"],
  ];
  const described = (path: string) =>
    textsIn(path).then(({ texts }) =>
      texts.map(({ language, title, kind, isDefault }) => [language, title, kind, isDefault]),
    );
  await ffmpeg(...inputs, "-c", "copy", ...flags, at("flags.mkv"));
  expect(await described(at("flags.mkv"))).toEqual([
    ["eng", "English\ufffd", "subtitles", true],
    ["eng", null, "captions", false],
    ["fre", null, "forced", false],
  ]);
  await ffmpeg(...inputs, "-c", "copy", "-c:s", "mov_text", ...flags, at("flags.mp4"));
  expect(await described(at("flags.mp4"))).toEqual([
    ["eng", "English\ufffd", "subtitles", false],
    ["eng", null, "captions", false],
    ["fre", null, "forced", false],
  ]);
});

test.for(["frag_keyframe+empty_moov", "frag_keyframe+empty_moov+default_base_moof"])(
  "text in fragments of MP4: %s",
  async (flags) => {
    const path = at(`${flags}.mp4`);
    const inputs = ["-i", at("plain.mp4"), "-i", at("a.srt"), "-map", "0", "-map", "1"];
    await ffmpeg(...inputs, "-c", "copy", "-c:s", "mov_text", "-movflags", flags, path);
    const { texts, messages } = await textsIn(path);
    expect(messages).toEqual([]);
    // ffmpeg writes no pauses between samples there: each lasts until the next one.
    const lasting = EXPECTED.map((cue, index) => ({ ...cue, end: EXPECTED[index + 1]?.start ?? cue.end }));
    expectCues(texts[0]?.cues, 0, lasting);
  },
);

test("chapters of QuickTime are no subtitles", async () => {
  writeFileSync(
    at("chapters.txt"),
    ";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1\nSTART=0\nEND=5\ntitle=One\n[CHAPTER]\nTIMEBASE=1/1\nSTART=5\nEND=12\ntitle=Two\n",
  );
  await ffmpeg(
    "-i",
    at("plain.mp4"),
    "-i",
    at("chapters.txt"),
    "-map",
    "0",
    "-map_chapters",
    "1",
    "-c",
    "copy",
    at("chapters.mov"),
  );
  expect(await textsIn(at("chapters.mov"))).toEqual({ texts: [], messages: [] });
});

/** A display set of PGS that shows nothing. */
const pgs = (seconds: number): Buffer => {
  const segment = (type: number, data: Buffer) => {
    const head = Buffer.alloc(13);
    head.write("PG", 0, "latin1");
    head.writeUInt32BE(seconds * 90_000, 2);
    head[10] = type;
    head.writeUInt16BE(data.length, 11);
    return Buffer.concat([head, data]);
  };
  return Buffer.concat([
    segment(0x16, Buffer.from("07800438100000800000 00".replace(" ", ""), "hex")),
    segment(0x80, Buffer.alloc(0)),
  ]);
};
test("subtitles that are images are named, and text next to them is read", async () => {
  writeFileSync(at("a.sup"), Buffer.concat([1, 3, 5].map(pgs)));
  const inputs = ["-i", at("plain.mp4"), "-f", "sup", "-i", at("a.sup"), "-i", at("a.srt")];
  await ffmpeg(...inputs, "-map", "0", "-map", "1", "-map", "2", "-c", "copy", at("images.mkv"));
  const { texts, messages } = await textsIn(at("images.mkv"));
  expect(messages).toEqual(["Track 3 (subtitles, hdmv_pgs_subtitle) has no text that can be read and was left out."]);
  expect(texts.map(({ number }) => number)).toEqual([4]);
  expectCues(texts[0]?.cues);
});

test("WebVTT samples of MP4", async () => {
  const text = "A caption that is long enough";
  writeFileSync(at("long.srt"), `1\n00:00:01,000 --> 00:00:02,000\n${text}\n`);
  await ffmpeg(
    "-i",
    at("plain.mp4"),
    "-i",
    at("long.srt"),
    "-map",
    "0",
    "-map",
    "1",
    "-c",
    "copy",
    "-c:s",
    "mov_text",
    at("tx3g.mp4"),
  );
  // Samples and the entry are replaced by those of another format, of the same size.
  const file = await readFile(at("tx3g.mp4"));
  file.write("wvtt", file.indexOf("tx3g"), "latin1");
  const sample = file.indexOf(text) - 2;
  const size = 2 + text.length;
  const box = (type: string, content: Buffer) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + content.length);
    head.write(type, 4, "latin1");
    return Buffer.concat([head, content]);
  };
  box("vttc", box("payl", Buffer.from("<b>Bold</b> & ".padEnd(size - 16, "!")))).copy(file, sample);
  writeFileSync(at("wvtt.mp4"), file);
  expect((await textsIn(at("wvtt.mp4"))).texts).toMatchObject([
    { codec: "wvtt", cues: [{ start: 1, end: 2, text: expect.stringMatching(/^<b>Bold<\/b> & !/) }] },
  ]);
});

/** Reads a file that has only text. */
async function read(name: string, bytes: Buffer, durationSeconds: number | null = 60) {
  writeFileSync(at(name), bytes);
  const options = { startSeconds: 0, durationSeconds, signal: new AbortController().signal, onMove: () => {} };
  const { tracks, warnings } = await readTextTracks(at(name), options);
  return {
    tracks: tracks.map(({ vtt, ...track }) => ({ ...track, cues: cuesOf(vtt), vtt })),
    messages: warnings.map(({ message }) => message),
  };
}

describe("Matroska as other programs write it", () => {
  test("WebVTT with settings, and times in the text, as mkvmerge writes it", async () => {
    const additions = (settings: string) =>
      element(0x75a1, element(0xa6, element(0xee, 1), element(0xa5, `${settings}\nid\n`)));
    const blocks = [
      textBlock({ ms: 500, text: "One <00:00:00.500>two", more: [additions("align:start region:r1 line:10%")] }),
      textBlock({ ms: 2000, text: "a --> b\n\n\nnext", more: [additions("nonsense")] }),
    ];
    const { tracks } = await read(
      "mkvmerge.mkv",
      matroska([textTrack(1, "S_TEXT/WEBVTT")], [cluster(1000, ...blocks)]),
    );
    expect(tracks[0]?.vtt).toBe(
      "WEBVTT\n\n00:00:01.500 --> 00:00:02.500 align:start line:10%\nOne two\n\n00:00:03.000 --> 00:00:04.000\na --&gt; b\nnext\n",
    );
  });

  test("compressed blocks, and a language of BCP 47", async () => {
    const deflated = deflateSync(Buffer.from("Deflated"));
    const tracks = [
      textTrack(
        1,
        "S_TEXT/UTF8",
        compression(0),
        element(TRACK.language, "chi"),
        element(TRACK.languageBcp47, "zh-Hant-TW"),
      ),
      textTrack(2, "S_TEXT/UTF8", compression(3, Buffer.from("Head"))),
      textTrack(3, "S_TEXT/UTF8", compression(2)),
    ];
    const blocks = [textBlock({ ms: 0, text: deflated }), textBlock({ track: 2, ms: 0, text: "er" })];
    const found = await read("compressed.mkv", matroska(tracks, [cluster(0, ...blocks)]));
    expect(found.tracks).toMatchObject([
      { language: "zh-Hant-TW", cues: [{ text: "Deflated" }] },
      // RFC 9559, 5.1.4.1.19.
      { language: "eng", cues: [{ text: "Header" }] },
    ]);
    expect(found.messages).toEqual(["Track 3 (subtitles, S_TEXT/UTF8) cannot be read and was left out."]);
  });

  test("cues without an end last until the next one", async () => {
    const blocks = [
      textBlock({ ms: 0, lasts: null, text: "one" }),
      textBlock({ ms: 2000, lasts: null, text: "two" }),
      textBlock({ ms: 30_000, lasts: null, text: "three" }),
    ];
    const { tracks } = await read("open.mkv", matroska([textTrack(1, "S_TEXT/UTF8")], [cluster(0, ...blocks)]), 32);
    expect(tracks[0]?.cues.map(({ start, end }) => [start, end])).toEqual([
      [0, 2],
      [2, 12],
      [30, 32],
    ]);
  });
});

describe("hostile files", () => {
  const TRACKS = [textTrack(1, "S_TEXT/UTF8"), textTrack(2, "S_TEXT/ASS")];
  const sound2 = textBlock({ track: 2, ms: 0, text: "0,0,Default,,0,0,0,,Next to it" });
  const OVER = "Track 1 (subtitles, S_TEXT/UTF8) has more text or cues than a subtitle may have and was left out.";

  test("a track with too many cues, or too much text, is left out; others are read", async () => {
    const many = Array.from({ length: 50_002 }, (_, index) =>
      textBlock({ ms: index % 30_000, lasts: 1, text: `${index}` }),
    );
    const found = await read("many.mkv", matroska(TRACKS, [cluster(0, sound2, ...many)]));
    expect(found.messages).toEqual([OVER]);
    expect(found.tracks.map(({ number }) => number)).toEqual([2]);
    const large = Array.from({ length: 400 }, (_, index) =>
      textBlock({ ms: index * 70, text: `${index}${"x".repeat(6000)}` }),
    );
    expect((await read("large.mkv", matroska(TRACKS, [cluster(0, ...large)]))).messages).toEqual([OVER]);
  });

  test("cues that are too long, malformed or outside of the video are left out, and counted", async () => {
    const blocks = [
      textBlock({ ms: 0, text: Buffer.alloc(10 * 2 ** 20, 0x61) }),
      textBlock({ ms: 10, text: "b".repeat(20_000) }),
      textBlock({ ms: 20, lasts: 0, text: "no duration" }),
      textBlock({ ms: -5000, text: "before" }),
      textBlock({ ms: -500, lasts: 1500, text: "across the start" }),
      textBlock({ ms: 30, lasts: 2 ** 47, text: "for ever" }),
      textBlock({ ms: 1000, text: Buffer.from([0xff, 0xfe, 0x41, 0, 0x1b, 0x42, 0xc3]) }),
      textBlock({ ms: 2000, text: "\n\n00:00:00.000 --> 00:00:01.000\n\nWEBVTT\n\nNOTE <script>" }),
      textBlock({ ms: 3000, text: "{\\i1}{\\b}<b><i></b>" }),
    ];
    const { tracks } = await read("malformed.mkv", matroska(TRACKS, [cluster(0, ...blocks)]));
    expect(tracks).toMatchObject([{ skippedCues: 3 }]);
    expect(tracks[0]?.cues).toEqual([
      { start: 0, end: 1, text: "across the start" },
      { start: 0.03, end: 60, text: "for ever" },
      { start: 1, end: 2, text: "��AB�" },
      { start: 2, end: 3, text: "00:00:00.000 --&gt; 00:00:01.000\nWEBVTT\nNOTE &lt;script&gt;" },
    ]);
  });

  test("events of one frame each with the same text are one cue", async () => {
    const frames = Array.from({ length: 500 }, (_, index) =>
      textBlock({
        track: 2,
        ms: index * 40,
        lasts: 40,
        text: `${index},0,Sign,,0,0,0,,{\\alpha&H${index}&\\pos(1,${index})}Sign`,
      }),
    );
    const { tracks } = await read("frames.mkv", matroska(TRACKS, [cluster(0, ...frames)]));
    expect(tracks).toMatchObject([{ cues: [{ start: 0, end: 20, text: "Sign" }] }]);
  });

  test("languages and titles that are none", async () => {
    const tracks = [
      textTrack(1, "S_TEXT/UTF8", element(TRACK.language, "x".repeat(1000)), element(TRACK.name, "é".repeat(1000))),
      textTrack(2, "S_TEXT/UTF8", element(TRACK.languageBcp47, "../en\u202e"), element(TRACK.name, "\u0000\n\t")),
      textTrack(3, "S_TEXT/UTF8", element(TRACK.language, "eng\0\0"), element(TRACK.name, Buffer.from([0xff, 0xd8]))),
    ];
    const blocks = tracks.map((_, index) => textBlock({ track: index + 1, ms: 0, text: "x" }));
    const found = await read("names.mkv", matroska(tracks, [cluster(0, ...blocks)]));
    expect(found.tracks.map(({ language, title }) => [language, title])).toEqual([
      [null, "é".repeat(200)],
      [null, null],
      ["eng", "��"],
    ]);
  });

  test("more tracks than an asset may have", async () => {
    const tracks = Array.from({ length: 25 }, (_, index) => textTrack(index + 1, "S_TEXT/UTF8"));
    const blocks = tracks.map((_, index) => textBlock({ track: index + 1, ms: 0, text: "x" }));
    const found = await read("tracks.mkv", matroska(tracks, [cluster(0, ...blocks)]));
    expect(found.tracks).toHaveLength(20);
    expect(found.messages).toHaveLength(5);
  });

  test("a file that is cut, or damaged, has the cues before that", async () => {
    const file = matroska(TRACKS, [
      cluster(0, textBlock({ ms: 0, text: "one" }), textBlock({ ms: 2000, text: "two" })),
    ]);
    for (let length = 0; length < file.length; length += 7) {
      const { tracks } = await read("cut.mkv", file.subarray(0, length));
      expect(tracks.flatMap(({ cues }) => cues).length).toBeLessThanOrEqual(2);
    }
    for (let seed = 0; seed < 200; seed++) {
      const damaged = Buffer.from(file);
      damaged[(seed * 37) % file.length] = (seed * 101) % 256;
      const { tracks } = await read("damaged.mkv", damaged);
      expect(tracks.length).toBeLessThanOrEqual(2);
    }
  });

  test("reading takes time in proportion to the blocks, and memory within limits", async () => {
    const blocks = Buffer.concat(Array.from({ length: 200_000 }, () => textBlock({ ms: 0, text: "" })));
    const file = matroska(TRACKS, [cluster(0, blocks)]);
    const before = process.memoryUsage.rss();
    await read("empty-cues.mkv", file);
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 2 ** 20);
  });

  test("reading is canceled by the signal", async () => {
    await ffmpeg("-i", at("plain.mp4"), "-i", at("a.srt"), "-map", "0", "-map", "1", "-c", "copy", at("abort.mkv"));
    const reason = new Error("stop");
    await expect(textsIn(at("abort.mkv"), { signal: AbortSignal.abort(reason) })).rejects.toThrow(reason);
  });

  test("a malformed index of MP4 has no subtitles", async () => {
    const random = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919) % 256));
    expect(readSubtitleTracks(random)).toEqual([]);
    expect(readIndex(random)).toBeNull();
  });
});
