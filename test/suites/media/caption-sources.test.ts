import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import {
  captionUnit,
  defineWindow,
  deleteWindows,
  displayWindows,
  erase,
  type PacketPart,
  type Pair,
  packetOf,
  packetUnit,
  paintOn,
  popOn,
  rollUp,
  secondChannel,
  textCodes,
} from "#test/support/live/closed-captions.ts";
import { type UnitsOf, writeCaptioned } from "#test/support/media/captioned-source.ts";
import { captionsIn, pairsByFrame } from "#test/support/media/source-captions.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";

const SECONDS = 10;
const NOTHING: Pair = [0x80, 0x80];
const folder = emptyFolder();
const source = (name: string) => join(folder, name);
const bFrames = ["-bf", "3", "-b_strategy", "0", "-g", "30"];

const SCRIPT = [
  [500, popOn("HELLO")],
  [3000, erase()],
  [5000, popOn("AGAIN")],
  [7000, erase()],
] as const;
/** In seconds: a caption is shown with the last pair but one of its 11, and erased with the first. */
const SHOWN = [
  { start: 0.8, end: 3, text: "HELLO" },
  { start: 5.3, end: 7, text: "AGAIN" },
];
const pairsOf =
  (script: Parameters<typeof pairsByFrame>[0], { rate = 30, field = 0 as 0 | 1 } = {}): UnitsOf =>
  ({ index }) =>
    captionUnit([pairsByFrame(script, rate).get(index) ?? NOTHING], { field });

/** A file of H.264 in Matroska. */
async function written(name: string, units: UnitsOf, rate = "30", seconds = SECONDS): Promise<string> {
  const path = source(name);
  await writeCaptioned(path, { video: [...picture("320x180", rate, seconds), ...fast, ...bFrames], units });
  return path;
}

/** Times of frames and containers round; a frame is 33 ms. */
function expectCues(cues: readonly { start: number; end: number; text: string }[] = [], expected = SHOWN, shift = 0) {
  expect(cues.map(({ text }) => text)).toEqual(expected.map(({ text }) => text));
  for (const [index, { start, end }] of expected.entries()) {
    expect(Math.abs((cues[index]?.start ?? 0) - start - shift)).toBeLessThan(0.07);
    expect(Math.abs((cues[index]?.end ?? 0) - end - shift)).toBeLessThan(0.07);
  }
}

const h264 = source("h264.mkv");
const hevc = source("hevc.mkv");
beforeAll(async () => {
  await written("h264.mkv", pairsOf(SCRIPT));
  const x265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:bframes=3"];
  const units = pairsOf(SCRIPT);
  await writeCaptioned(hevc, { codec: "hevc", video: [...picture("320x180", "30", SECONDS), ...x265], units });
});

const COPY = ["-c", "copy"];
const MPEG2 = ["-c:v", "mpeg2video", "-b:v", "1M", "-bf", "2"];
const CONTAINERS: [name: string, input: string, args: readonly string[]][] = [
  ["h264.mp4", h264, COPY],
  ["h264.mov", h264, COPY],
  ["h264.ts", h264, COPY],
  ["h264.flv", h264, COPY],
  ["fragments.mp4", h264, [...COPY, "-movflags", "frag_keyframe+empty_moov"]],
  ["hevc.mp4", hevc, COPY],
  ["hevc.ts", hevc, COPY],
  // ffmpeg's encoder passes the captions on as user data.
  ["mpeg2.ts", h264, MPEG2],
  ["mpeg2.mpg", h264, MPEG2],
  ["mpeg2.mov", h264, MPEG2],
  ["mpeg2.mxf", h264, MPEG2],
];
test("captions in Matroska, with frames that are stored in another order than they are shown", async () => {
  for (const path of [h264, hevc]) expectCues((await captionsIn(path)).services.cc1);
});
test.for(rows(CONTAINERS, 2))("captions in %s", async ([name, input, args]) => {
  const path = source(name);
  await ffmpeg("-i", input, ...args, path);
  const { services } = await captionsIn(path);
  expect(Object.keys(services)).toEqual(["cc1"]);
  expectCues(services.cc1);
});

/** Times of captions are those of the encode, which begins with the first of the tracks. */
const CLOCKS: [name: string, shift: number, args: readonly string[]][] = [
  ["late.mp4", 2, ["-itsoffset", "2", "-i", h264, ...sound(12), "-map", "0:v", "-map", "1:a", "-c:v", "copy"]],
  ["late.mkv", 2, ["-itsoffset", "2", "-i", h264, ...sound(12), "-map", "0:v", "-map", "1:a", "-c:v", "copy"]],
  ["late.ts", 2, ["-itsoffset", "2", "-i", h264, ...sound(12), "-map", "0:v", "-map", "1:a", "-c:v", "copy"]],
  ["from-an-hour.ts", 0, ["-i", h264, ...COPY, "-output_ts_offset", "3600"]],
  ["from-an-hour.mkv", 0, ["-i", h264, ...COPY, "-output_ts_offset", "3600"]],
];
test.for(rows(CLOCKS, 2))("captions in %s are in time with the video", async ([name, shift, args]) => {
  const path = source(name);
  await ffmpeg(...args, path);
  expectCues((await captionsIn(path)).services.cc1, SHOWN, shift);
});

test("a caption that was shown before the start of an edit list is shown from the start", async () => {
  const path = source("cut.mp4");
  const long = source("long.mkv");
  const video = [...picture("320x180", "30", SECONDS), ...fast, "-bf", "3", "-b_strategy", "0", "-g", "600"];
  await writeCaptioned(long, { video, units: pairsOf(SCRIPT) });
  // All frames before it are in the file, because the only keyframe is the first one.
  await ffmpeg("-ss", "1.5", "-i", long, ...COPY, "-avoid_negative_ts", "disabled", path);
  const { services, seconds } = await captionsIn(path);
  expect(seconds).toBeCloseTo(8.5, 1);
  const [first, second] = services.cc1 ?? [];
  expect(first).toMatchObject({ start: 0, text: "HELLO" });
  expect(first?.end).toBeCloseTo(1.5, 1);
  expect(second?.start).toBeCloseTo(3.8, 1);
});

test("a caption that is never erased ends with the video", async () => {
  const path = await written("open.mkv", pairsOf([[500, popOn("OPEN")]]));
  const { services, seconds } = await captionsIn(path);
  expect(services.cc1).toMatchObject([{ text: "OPEN", end: seconds }]);
});

test("rates: 29.97 and 59.94 frames a second, with a pair in every second one of these", async () => {
  const ntsc = await written("ntsc.mkv", pairsOf(SCRIPT, { rate: 30 / 1.001 }), "30000/1001");
  expectCues((await captionsIn(ntsc)).services.cc1);
  const halved: UnitsOf = ({ index }) =>
    index % 2 === 0 ? captionUnit([pairsByFrame(SCRIPT, 30 / 1.001).get(index / 2) ?? NOTHING]) : null;
  expectCues((await captionsIn(await written("double.mkv", halved, "60000/1001"))).services.cc1);
});

test("a variable frame rate", async () => {
  const path = source("variable.mkv");
  // Frames follow each other after 33 ms, then 133 ms.
  const times = "setpts='(floor(N/2)*5+mod(N,2))/30/TB'";
  const video = [...picture("320x180", "30", 4), "-vf", times, "-vsync", "vfr", ...fast, ...bFrames];
  const msOf = (index: number) => ((Math.floor(index / 2) * 5 + (index % 2)) * 1000) / 30;
  const script = pairsByFrame([
    [0, popOn("SLOWLY")],
    [1000, erase()],
  ]);
  await writeCaptioned(path, { video, units: ({ index }) => captionUnit([script.get(index) ?? NOTHING]) });
  const [cue, ...others] = (await captionsIn(path)).services.cc1 ?? [];
  expect(others).toEqual([]);
  // The last pair but one of 13 shows it; the first of those that erase it is in frame 30.
  const shown = popOn("SLOWLY").length - 1;
  expect(cue?.text).toBe("SLOWLY");
  expect(Math.abs((cue?.start ?? 0) * 1000 - msOf(shown - 1))).toBeLessThan(140);
  expect(Math.abs((cue?.end ?? 0) * 1000 - msOf(30))).toBeLessThan(140);
});

/** Byte by byte as in ANSI/CTA-608-E, with odd parity; `texts`: what is shown, in order. */
const byHand = (hex: string): Pair[] =>
  hex.split(" ").map((pair) => [Number.parseInt(pair.slice(0, 2), 16), Number.parseInt(pair.slice(2), 16)]);
const MODES: [mode: string, script: Parameters<typeof pairsByFrame>[0], texts: string[], lastEnd: number][] = [
  [
    "pop-on, by hand: RCL, ENM, row 15, Hi, EOC; EDM",
    [
      [500, byHand("9420 9420 94ae 94ae 9470 9470 c8e9 942f 942f")],
      [4000, byHand("942c 942c")],
    ],
    ["Hi"],
    4,
  ],
  [
    "pop-on that replaces what is shown, without an erase between",
    [
      [500, popOn("ONE")],
      [3000, popOn("TWO")],
      [6000, erase()],
    ],
    ["ONE", "TWO"],
    6,
  ],
  [
    "roll-up, by hand: RU2, CR, row 15, Up; CR, On; EDM",
    [
      [500, byHand("9425 9425 94ad 94ad 9470 9470 d570")],
      [3000, byHand("94ad 94ad 4f6e")],
      [6000, byHand("942c 942c")],
    ],
    ["Up", "Up\nOn"],
    6,
  ],
  [
    "paint-on, by hand: RDC, row 15, No; EDM",
    [
      [500, byHand("9429 9429 9470 9470 ceef")],
      [4000, byHand("942c 942c")],
    ],
    ["No"],
    4,
  ],
  [
    "paint-on of a longer line, which grows by words",
    [
      [500, paintOn("PAINT")],
      [4000, erase()],
    ],
    ["PAINT"],
    4,
  ],
  [
    "commands that are sent once",
    [
      [500, byHand("9420 94ae 9470 c8e9 942f")],
      [4000, byHand("942c")],
    ],
    ["Hi"],
    4,
  ],
];
test.for(MODES)("%s", async ([mode, script, texts, lastEnd]) => {
  const { services } = await captionsIn(
    await written(`mode-${MODES.findIndex(([one]) => one === mode)}.mkv`, pairsOf(script)),
  );
  const cues = services.cc1 ?? [];
  expect(cues.map(({ text }) => text)).toEqual(texts);
  expect(Math.abs((cues.at(-1)?.end ?? 0) - lastEnd)).toBeLessThan(0.07);
  for (const [index, { start, end }] of cues.entries()) {
    expect(end).toBeGreaterThan(start);
    expect(start).toBeGreaterThanOrEqual(cues[index - 1]?.end ?? 0);
  }
});

test("lines that roll up are shown until the next one, also with words that arrive in pairs", async () => {
  const script = [
    [500, rollUp("FIRST LINE")],
    [3000, rollUp("SECOND")],
    [6000, erase()],
  ] as const;
  const cues = (await captionsIn(await written("roll.mkv", pairsOf(script)))).services.cc1 ?? [];
  expect(cues.at(-1)).toMatchObject({ text: "FIRST LINE\nSECOND" });
  expect(cues.at(-1)?.end).toBeCloseTo(6, 0);
});

test("all four channels are tracks", async () => {
  const script = (text: string) =>
    [
      [500, popOn(text)],
      [4000, erase()],
    ] as const;
  const channel = (text: string, field: 0 | 1, isSecond: boolean) =>
    [
      script(text).map(([ms, pairs]) => [ms + (isSecond ? 2500 : 0), isSecond ? secondChannel(pairs) : pairs] as const),
      field,
    ] as const;
  const all = [channel("ONE", 0, false), channel("TWO", 0, true), channel("THREE", 1, false), channel("FOUR", 1, true)];
  const frames = all.map(([one, field]) => ({ field, pairs: pairsByFrame(one) }));
  const units: UnitsOf = ({ index }) => {
    const pairOf = (field: number) =>
      frames.find((one) => one.field === field && one.pairs.has(index))?.pairs.get(index);
    const triples = [0, 1].map((field) => [0xfc | field, ...(pairOf(field) ?? NOTHING)]);
    const payload = [0xb5, 0, 0x31, ...Buffer.from("GA94"), 3, 0x42, 0xff, ...triples.flat(), 0xff];
    return Buffer.from([6, 4, payload.length, ...payload, 0x80]);
  };
  const { services } = await captionsIn(await written("four.mkv", units));
  const texts = Object.entries(services).map(([service, cues]) => [service, cues.map(({ text }) => text)]);
  expect(texts).toEqual([
    ["cc1", ["ONE"]],
    ["cc2", ["TWO"]],
    ["cc3", ["THREE"]],
    ["cc4", ["FOUR"]],
  ]);
});

/** A service of CEA-708 that shows a text from 1 s to 4 s. */
const windowsOf = (texts: Record<number, string>): Record<number, PacketPart[]> => {
  const blocks = (codes: (text: string) => number[]) =>
    packetOf(Object.entries(texts).map(([service, text]) => [Number(service), codes(text)] as const));
  return {
    15: blocks((text) => [...defineWindow(), ...textCodes(text)]),
    30: blocks(() => displayWindows(1)),
    120: blocks(() => deleteWindows(1)),
  };
};
test("services of CEA-708 are tracks where there is no text in CEA-608", async () => {
  const packets = windowsOf({ 1: "HELLO", 2: "HOLA" });
  const alone: UnitsOf = ({ index }) => packetUnit(packets[index] ?? [], { pairs: 1 });
  const { services } = await captionsIn(await written("708.mkv", alone));
  expect(Object.keys(services)).toEqual(["service1", "service2"]);
  expectCues(services.service1, [{ start: 1, end: 4, text: "HELLO" }]);
  expectCues(services.service2, [{ start: 1, end: 4, text: "HOLA" }]);

  const pairs = pairsByFrame([
    [6000, popOn("IN 608")],
    [8000, erase()],
  ]);
  const both: UnitsOf = ({ index }) => {
    const pair = pairs.get(index);
    return pair ? captionUnit([pair]) : packetUnit(packets[index] ?? [], { pairs: 1 });
  };
  expect(Object.keys((await captionsIn(await written("both.mkv", both))).services)).toEqual(["cc1"]);
});

/** A QuickTime file of ProRes with a caption track, of which ffmpeg writes the samples. */
async function withTrack(name: string, scenarist: string, video: readonly string[] = ["-c:v", "prores_ks"]) {
  const path = source(name);
  const script = `${path}.scc`;
  writeFileSync(script, `Scenarist_SCC V1.0\n\n${scenarist}\n`);
  const maps = ["-map", "0:v", "-map", "1:s", "-c:s", "copy"];
  await ffmpeg(...picture("320x180", "30", 6), "-f", "scc", "-i", script, ...maps, ...video, path);
  return path;
}
test("captions in a track of QuickTime, next to video of any codec", async () => {
  const lines = "00:00:00:15\t9420 9420 94ae 94ae 9470 9470 c8e9 942f 942f\n\n00:00:03:00\t942c 942c\n";
  expectCues((await captionsIn(await withTrack("track.mov", lines))).services.cc1, [
    { start: 0.73, end: 3, text: "Hi" },
  ]);
});

test("a video without captions, or with empty ones, has none", async () => {
  const silent = await written("silent.mkv", () => captionUnit([NOTHING]));
  const plain = await written("plain.mkv", () => null);
  for (const path of [silent, plain]) expect((await captionsIn(path)).services).toEqual({});
});

test("reading is canceled by the signal", async () => {
  await expect(captionsIn(h264, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" });
});
