import { expect, test } from "vitest";
import { CaptionReader } from "#src/lib/closed-captions/caption-reader.ts";
import { captionsOfSample } from "#src/lib/closed-captions/caption-samples.ts";
import { CaptionText } from "#src/lib/closed-captions/caption-text.ts";
import { type CaptionedCodec, captionBytes } from "#src/lib/closed-captions/user-data.ts";
import { checkVtt } from "#src/lib/subtitles/vtt/subtitle-file.ts";
import { randomFrom } from "#test/support/lib/random-dialogue.ts";
import { captionUnit, erase, type Pair, popOn } from "#test/support/live/closed-captions.ts";

/** What uploads have in addition to streams: start codes, user data of MPEG-2, and frames without times of decoding. */

const startCoded = (...units: Buffer[]) => Buffer.concat(units.flatMap((unit) => [Buffer.from([0, 0, 0, 1]), unit]));
/** A frame of MPEG-2: its header, user data and a slice (ISO/IEC 13818-2, 6.2.3). */
const mpeg2Frame = (unit: Buffer) =>
  Buffer.concat([
    Buffer.from([0, 0, 1, 0, 0x10, 0x0f, 0xff, 0xf8, 0, 0, 1, 0xb2]),
    unit.subarray(unit.indexOf("GA94"), -1),
    Buffer.from([0, 0, 1, 1, 0x22, 0x33, 0x44]),
  ]);
const hevcUnit = (unit: Buffer) => Buffer.concat([Buffer.from([39 << 1, 1]), unit.subarray(1)]);
const slice = Buffer.from([0x65, 1, 2, 3, 4]);
const PAIR: Pair = [0x94, 0x20];

const FRAMES: [string, CaptionedCodec, (unit: Buffer) => Buffer][] = [
  ["H.264 with start codes", "h264", (unit) => startCoded(Buffer.from([9, 0xf0]), unit, slice)],
  ["H.264 with short start codes", "h264", (unit) => Buffer.concat([startCoded(unit), Buffer.from([0, 0, 1]), slice])],
  ["HEVC with start codes", "hevc", (unit) => startCoded(hevcUnit(unit), slice)],
  ["MPEG-2", "mpeg2video", mpeg2Frame],
  ["both fields of MPEG-2", "mpeg2video", (unit) => Buffer.concat([mpeg2Frame(unit), mpeg2Frame(captionUnit([]))])],
];
test.for(FRAMES)("captions are found in %s", ([, codec, frame]) => {
  expect(captionBytes(frame(captionUnit([PAIR])), codec)).toEqual({ first: [0x94, 0x20], second: [], packets: [] });
  expect(captionBytes(frame(captionUnit([PAIR], { field: 1 })), codec)?.second).toEqual([0x94, 0x20]);
});

test("a frame has a limited number of pairs, however many units it has", () => {
  const unit = captionUnit(Array.from({ length: 31 }, () => PAIR));
  const found = captionBytes(startCoded(...Array.from({ length: 400 }, () => unit)), "h264");
  expect(found?.first.length).toBeLessThanOrEqual(2 * 155);
});

const HOSTILE: [string, Buffer][] = [
  ["nothing", Buffer.alloc(0)],
  ["a start code", Buffer.from([0, 0, 0, 1])],
  ["start codes only", Buffer.concat(Array.from({ length: 40_000 }, () => Buffer.from([0, 0, 1])))],
  ["zeros", Buffer.alloc(2 ** 20)],
  ["user data without a type", Buffer.from([0, 0, 1, 0xb2])],
  ["user data that end in the identification", Buffer.from([0, 0, 1, 0xb2, 0x47, 0x41, 0x39])],
  ["user data of another kind", Buffer.concat([Buffer.from([0, 0, 1, 0xb2]), Buffer.from("DTG1A")])],
  ["a unit of a mebibyte", startCoded(Buffer.concat([captionUnit([PAIR]), Buffer.alloc(2 ** 20, 1)]))],
  [
    "thousands of user data",
    Buffer.concat(Array.from({ length: 40_000 }, () => Buffer.from([0, 0, 1, 0xb2, 0x47, 0x41, 0x39, 0x34]))),
  ],
];
test.for(HOSTILE)("%s has no captions, and no fault", ([, sample]) => {
  for (const codec of ["h264", "hevc", "mpeg2video"] as const)
    expect(captionBytes(sample, codec)?.first ?? []).toEqual([]);
});

test("frames with random changes are read without a fault, and give little", () => {
  const next = randomFrom(11);
  const frames = FRAMES.map(
    ([, codec, frame]) => [codec, frame(captionUnit([PAIR, [0x43, 0x43], [0x94, 0x2f]]))] as const,
  );
  for (let round = 0; round < 4000; round++) {
    const [codec, frame] = frames[round % frames.length] as (typeof frames)[number];
    const changed = Buffer.from(frame);
    for (let change = 0; change < 1 + (round % 5); change++)
      changed[Math.floor(next() * changed.length)] = Math.floor(next() * 256);
    const cut = changed.subarray(0, Math.floor(next() * (changed.length + 1)));
    for (const sample of [changed, cut]) {
      const found = captionBytes(sample, codec);
      if (found) expect(found.first.length + found.second.length + 2 * found.packets.length).toBeLessThanOrEqual(62);
    }
  }
});

const atom = (type: string, content: readonly number[]) => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.length);
  head.write(type, 4, "latin1");
  return Buffer.concat([head, Buffer.from(content)]);
};
const TRIPLES = [0xfc, 0x94, 0x20, 0xfd, 0x15, 0x2c, 0xff, 2, 33, 0xfe, 34, 35, 0xf8, 1, 1];
/** A caption distribution packet (SMPTE ST 334-2), with or without a time code. */
const packet = (timeCode: readonly number[]) => [
  ...[0x96, 0x69, 40, 0x4f, 0x43, 0, 1, ...timeCode, 0x72, 0xe5, ...TRIPLES, 0x74, 0, 1, 0],
];
const SAMPLES: [string, Buffer, ReturnType<typeof captionsOfSample>][] = [
  [
    "pairs of both fields",
    Buffer.concat([atom("cdat", [1, 2, 3, 4]), atom("cdt2", [5, 6])]),
    [
      { first: [1, 2], second: [5, 6], packets: [] },
      { first: [3, 4], second: [], packets: [] },
    ],
  ],
  ...[[], [0x71, 0xc0, 0x80, 0x80, 0x80]].map((timeCode): (typeof SAMPLES)[number] => [
    `a packet, with ${timeCode.length} bytes of a time code`,
    atom("ccdp", packet(timeCode)),
    [
      {
        first: [0x94, 0x20],
        second: [0x15, 0x2c],
        packets: [
          { isStart: true, bytes: [2, 33] },
          { isStart: false, bytes: [34, 35] },
        ],
      },
    ],
  ]),
  ["no pairs", atom("cdat", []), []],
  ["a packet that is cut", atom("ccdp", packet([]).slice(0, 9)), [{ first: [], second: [], packets: [] }]],
  ["another packet", atom("ccdp", [1, 2, 3, 4, 5, 6, 7, 8]), [{ first: [], second: [], packets: [] }]],
  ["text", atom("text", [1, 2]), null],
  [
    "a size beyond the end",
    Buffer.from([0, 0, 1, 0, ...Buffer.from("cdat"), 7, 8]),
    [{ first: [7, 8], second: [], packets: [] }],
  ],
  ["a size that is smaller than the head", Buffer.from([0, 0, 0, 4, ...Buffer.from("cdat"), 7, 8]), null],
  ["nothing", Buffer.alloc(0), null],
];
test.for(SAMPLES)("a sample of a caption track with %s", ([, sample, frames]) => {
  expect(captionsOfSample(sample)).toEqual(frames);
});

test("a sample of a caption track has a limited number of pairs, whatever is changed in it", () => {
  expect(captionsOfSample(atom("cdat", Array(200_000).fill(0x41)))?.length).toBe(4096);
  const next = randomFrom(21);
  const sample = Buffer.concat([atom("cdat", [1, 2]), atom("ccdp", packet([])), atom("cdt2", [5, 6])]);
  for (let round = 0; round < 2000; round++) {
    const changed = Buffer.from(sample);
    for (let change = 0; change < 3; change++) changed[Math.floor(next() * changed.length)] = Math.floor(next() * 256);
    const found = captionsOfSample(changed.subarray(0, Math.floor(next() * (changed.length + 1)))) ?? [];
    expect(found.length).toBeLessThanOrEqual(changed.length);
  }
});

/** The cues of frames in the order of decoding, with the time of each. */
function read(frames: readonly (readonly [seconds: number, pair: Pair])[]) {
  const cues: [number, number, string][] = [];
  const reader = new CaptionReader({
    codec: "h264",
    onService: () => {},
    onCaption: ({ startMs, endMs, text }) => cues.push([startMs, endMs, text]),
  });
  for (const [presentedSeconds, pair] of frames)
    reader.add({ decodedSeconds: null, presentedSeconds, data: startCoded(captionUnit([pair]), slice) });
  reader.endSegment(20);
  return cues;
}

test("frames without times of decoding are put into the order in which they are shown", () => {
  const pairs: Pair[] = [...popOn("OVER THERE"), ...Array.from({ length: 50 }, (): Pair => [0x80, 0x80]), ...erase()];
  const inOrder = pairs.map((pair, index) => [index / 30, pair] as const);
  const expected = [[expect.any(Number), expect.any(Number), "OVER THERE"]];
  expect(read(inOrder)).toEqual(expected);
  // The most that H.264 reorders: 16 frames, in reverse.
  const reordered = inOrder.flatMap((_, index) =>
    index % 16 === 0 ? inOrder.slice(index, index + 16).toReversed() : [],
  );
  expect(read(reordered)).toEqual(read(inOrder));
});

test("random pairs are texts that a subtitle may have, within its limits", () => {
  const next = randomFrom(5);
  const text = new CaptionText();
  const reader = new CaptionReader({ codec: "h264", onService: () => {}, onCaption: (caption) => text.add(caption) });
  const frames = 15_000;
  for (let index = 0; index < frames; index++) {
    const pair = [Math.floor(next() * 256), Math.floor(next() * 256)] as const;
    reader.add({ decodedSeconds: null, presentedSeconds: index * 0.36, data: startCoded(captionUnit([pair])) });
  }
  reader.endSegment(frames * 0.36);
  const vtt = text.end();
  expect(Buffer.byteLength(vtt)).toBeLessThanOrEqual(2_000_000);
  expect(checkVtt(vtt)).toHaveProperty("text");
});

test("a text has at most as many cues as a subtitle may have", () => {
  const text = new CaptionText();
  for (let index = 0; index < 60_000; index++)
    text.add({ startMs: index, endMs: index + 1, text: `${index % 10}`, row: 14 });
  expect(text.end().match(/-->/g)?.length).toBeLessThanOrEqual(50_000);
});
