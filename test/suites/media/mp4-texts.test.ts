import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readTextTracks } from "#media/captions/read-text-tracks.ts";
import { withEditLists } from "#test/media/corpus/edits.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { cuesOf } from "#test/support/media/source-captions.ts";
import { textsIn } from "#test/support/media/source-texts.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { type TextEdit, type TextSample, textMp4, timedText, ttml } from "#test/support/media/text-mp4.ts";

const folder = emptyFolder();
const at = (name: string) => join(folder, name);
const SRT = `1
00:00:01,500 --> 00:00:03,000
Plain <i>italic</i>

2
00:00:05,000 --> 00:00:07,250
3 < 4 & Ü
second line
`;
const SHOWN = [
  [1.5, 3],
  [5, 7.25],
];
beforeAll(async () => {
  writeFileSync(at("a.srt"), SRT);
  const codecs = [...fast, "-g", "20", "-c:a", "aac"];
  await ffmpeg(...picture("160x90", "10", 12), ...sound(12), ...codecs, at("plain.mp4"));
});
const muxed = (name: string, codec: string) =>
  ffmpeg("-i", at("plain.mp4"), "-i", at("a.srt"), "-map", "0", "-map", "1", "-c", "copy", "-c:s", codec, at(name));

/** Reads a file that has only text. */
async function read(bytes: Buffer, durationSeconds: number | null = 60) {
  writeFileSync(at("text.mp4"), bytes);
  const options = { startSeconds: 0, durationSeconds, signal: new AbortController().signal, onMove: () => {} };
  const { tracks, warnings } = await readTextTracks(at("text.mp4"), options);
  const [track] = tracks;
  return {
    cues: (track ? cuesOf(track.vtt) : []).map(({ start, end, text }) => [start, end, text]),
    language: track?.language,
    skipped: track?.skippedCues,
    messages: warnings.map(({ message }) => message),
  };
}

test("TTML as ffmpeg writes it: all of the text in one document", async () => {
  await muxed("ttml.mp4", "ttml");
  const { texts, messages } = await textsIn(at("ttml.mp4"));
  expect(messages).toEqual([]);
  expect(texts).toMatchObject([{ number: 3, codec: "stpp", kind: "subtitles", skippedCues: 0 }]);
  expect(texts[0]?.cues.map(({ start, end }) => [start, end])).toEqual(SHOWN);
  expect(texts[0]?.cues.map(({ text }) => text)).toEqual(["Plain italic", "3 &lt; 4 &amp; Ü\nsecond line"]);
});

describe("TTML in several samples has times of the presentation", () => {
  const document = (...paragraphs: [times: string, text: string][]) => ttml(paragraphs);
  const SAMPLES: [name: string, samples: TextSample[], cues: unknown[]][] = [
    [
      "a paragraph that both of two documents have is one cue",
      [
        { ms: 4000, data: document(['begin="1s" end="2s"', "one"], ['begin="3s" end="6s"', "two"]) },
        { ms: 4000, data: document(['begin="3s" end="6s"', "two"], ['begin="6s" end="7s"', "three"]) },
      ],
      [
        [1, 2, "one"],
        [3, 6, "two"],
        [6, 7, "three"],
      ],
    ],
    [
      "one that is cut at the edges of the samples is one cue",
      [
        { ms: 4000, data: document(['begin="3s" end="4s"', "two"]) },
        { ms: 4000, data: document(['begin="4s" end="6s"', "two"]) },
      ],
      [[3, 6, "two"]],
    ],
    [
      "a document without times is shown while its sample is",
      [
        { ms: 2000, data: document() },
        { ms: 2000, data: document(["", "all of it"]) },
        { ms: 2000, data: "" },
        { ms: 2000, data: document(['begin="7s"', "to its end"]) },
      ],
      [
        [2, 4, "all of it"],
        [7, 8, "to its end"],
      ],
    ],
    [
      "what is outside of its sample is not shown",
      [{ ms: 2000, data: document(['begin="1s" end="9s"', "a"]) }],
      [[1, 2, "a"]],
    ],
  ];
  test.each(SAMPLES)("%s", async (_, samples, cues) => {
    for (const isFragmented of [false, true])
      expect(await read(textMp4({ entry: "stpp", samples, isFragmented }))).toEqual({
        cues,
        language: "de",
        skipped: 0,
        messages: [],
      });
  });

  test("what is no TTML is counted, and a track of it is named", async () => {
    const faulty = ["<tt", Buffer.from([0xff, 0xfe]), "<!DOCTYPE tt><tt/>", document(['begin="nonsense"', "x"])];
    const samples = faulty.map((data) => ({ ms: 1000, data }));
    const left = "Track 1 (subtitles, stpp) has no cue that can be read and was left out.";
    expect((await read(textMp4({ entry: "stpp", samples }))).messages).toEqual([left]);
    const good = { ms: 1000, data: document(['begin="4s" end="5s"', "good"]) };
    const found = await read(textMp4({ entry: "stpp", samples: [...samples, good] }));
    expect(found).toMatchObject({ cues: [[4, 5, "good"]], skipped: 4, messages: [] });
  });
});

describe("edit lists of text", () => {
  const SECONDS = ["one", "two", "three", "four"];
  const texts = SECONDS.map((text) => ({ ms: 1000, data: timedText(text) }));
  const EDITS: [name: string, edits: TextEdit[], cues: unknown[]][] = [
    [
      "a pause between two edits",
      [
        { ms: 2000, from: 0 },
        { ms: 3000, from: null },
        { ms: 2000, from: 2000 },
      ],
      [
        [0, 1, "one"],
        [1, 2, "two"],
        [5, 6, "three"],
        [6, 7, "four"],
      ],
    ],
    [
      "a part that is cut out",
      [
        { ms: 1500, from: 0 },
        { ms: 1000, from: 3000 },
      ],
      [
        [0, 1, "one"],
        [1, 1.5, "two"],
        [1.5, 2.5, "four"],
      ],
    ],
    [
      "another order, and a part that is shown twice",
      [
        { ms: 1000, from: 2000 },
        { ms: 1000, from: 0 },
        { ms: 1000, from: 2000 },
      ],
      [
        [0, 1, "three"],
        [1, 2, "one"],
        [2, 3, "three"],
      ],
    ],
    [
      "a moment that is held, and half the speed",
      [
        { ms: 4000, from: 1500, rate: 0 },
        { ms: 4000, from: 2000, rate: 0.5 },
      ],
      [
        [0, 4, "two"],
        [4, 6, "three"],
        [6, 8, "four"],
      ],
    ],
    [
      "a delay, and an end that is not stated",
      [
        { ms: 500, from: null },
        { ms: 0, from: 1000 },
      ],
      [
        [0.5, 1.5, "two"],
        [1.5, 2.5, "three"],
        [2.5, 3.5, "four"],
      ],
    ],
  ];
  test.each(EDITS)("%s", async (_, edits, cues) => {
    for (const isFragmented of [false, true])
      expect(await read(textMp4({ entry: "tx3g", samples: texts, edits, isFragmented }))).toMatchObject({
        cues,
        messages: [],
      });
  });

  test("edits of the video do not matter for the text", async () => {
    for (const [name, codec] of [
      ["paused.mp4", "mov_text"],
      ["paused-ttml.mp4", "ttml"],
    ] as const) {
      await muxed(name, codec);
      const video = [
        [2, 0],
        [2, null],
        [8, 2],
      ] as const;
      writeFileSync(at(name), withEditLists(readFileSync(at(name)), { video }));
      const { texts, messages } = await textsIn(at(name));
      expect(messages).toEqual([]);
      expect(texts[0]?.cues.map(({ start, end }) => [start, end])).toEqual(SHOWN);
    }
  });

  test("a file whose end is missing has the cues before that", async () => {
    const file = textMp4({ entry: "tx3g", samples: texts });
    const moov = file.indexOf("moov") - 4;
    // The index in front, and less media than it states.
    const head = file.subarray(0, 20);
    expect(head.toString("latin1", 4, 8)).toBe("ftyp");
    const moved = Buffer.concat([head, file.subarray(moov), file.subarray(head.length, moov)]);
    const offset = moved.indexOf("stco") + 12;
    moved.writeUInt32BE(moved.readUInt32BE(offset) + file.length - moov, offset);
    expect(await read(moved)).toMatchObject({
      cues: [expect.anything(), expect.anything(), expect.anything(), expect.anything()],
    });
    expect(await read(moved.subarray(0, moved.length - 4))).toMatchObject({
      cues: SECONDS.slice(0, 3).map((text, index) => [index, index + 1, text]),
    });
  });

  test("lists that are made to be slow are named, or end early", async () => {
    const many = Array.from({ length: 20_000 }, () => ({ ms: 1000, from: 0 }));
    const found = await read(textMp4({ entry: "tx3g", samples: texts, edits: many }));
    expect(found.messages).toEqual(["Track 1 (subtitles, tx3g) cannot be read and was left out."]);
    const lines = Array.from({ length: 2000 }, (_, index) => ({ ms: 1, data: timedText(`${index}`) }));
    const edits = Array.from({ length: 9000 }, () => ({ ms: 2000, from: 0 }));
    expect((await read(textMp4({ entry: "tx3g", samples: lines, edits }))).messages).toHaveLength(1);
  });
});
