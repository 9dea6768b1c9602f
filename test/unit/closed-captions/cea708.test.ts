import { expect, test } from "vitest";
import { CaptionReader } from "#src/lib/closed-captions/caption-reader.ts";
import { randomFrom } from "#test/support/lib/random-dialogue.ts";
import {
  captionUnit,
  carriageReturn,
  defineWindow,
  deleteWindows,
  displayWindows,
  type PacketPart,
  packetOf,
  packetUnit,
  popOn,
  textCodes,
} from "#test/support/live/closed-captions.ts";

const FRAME_SECONDS = 1 / 30;

const sampleOf = (units: readonly Buffer[]) =>
  Buffer.concat(
    units.flatMap((unit) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(unit.length);
      return [length, unit];
    }),
  );

/** What is read of so many frames, some of which have units; a segment ends every second. */
function readUnits(units: Readonly<Record<number, readonly Buffer[]>>, frames = 90) {
  const services: string[] = [];
  const shown: { service: string; startMs: number; endMs: number; text: string; row: number }[] = [];
  const reader = new CaptionReader({
    codec: "h264",
    onService: (service) => services.push(service),
    onCaption: ({ service, startMs, endMs, text, row }) => shown.push({ service, startMs, endMs, text, row }),
  });
  let segmentEnd = 1;
  for (let index = 0; index < frames; index++) {
    const seconds = index * FRAME_SECONDS;
    if (seconds >= segmentEnd) reader.endSegment(segmentEnd++);
    const data = sampleOf([...(units[index] ?? []), Buffer.from([0x65, 1, 2, 3])]);
    reader.add({ decodedSeconds: seconds, presentedSeconds: seconds, data });
  }
  reader.endSegment(frames * FRAME_SECONDS);
  return { services, shown };
}
const read = (packets: Readonly<Record<number, readonly PacketPart[]>>, frames?: number) =>
  readUnits(Object.fromEntries(Object.entries(packets).map(([at, parts]) => [at, [packetUnit(parts)]])), frames);
const main = (...bytes: (number | readonly number[])[]) => packetOf([[1, bytes.flat() as number[]]]);
const textsOf = ({ shown }: ReturnType<typeof read>) => shown.map(({ text }) => text);

test("a caption pops on with its window, is divided by segments, and ends with the window", () => {
  const { services, shown } = read({
    3: main(defineWindow(), textCodes("Hello"), carriageReturn, textCodes("world")),
    15: main(displayWindows(1)),
    45: main(deleteWindows(1)),
  });
  expect(services).toEqual(["service1"]);
  expect(shown).toEqual([
    { service: "service1", startMs: 500, endMs: 1000, text: "Hello\nworld", row: 12 },
    { service: "service1", startMs: 1000, endMs: 1500, text: "Hello\nworld", row: 12 },
  ]);
});

test("lines roll up in a window, and letters that are written one by one are one caption", () => {
  const { shown } = read({
    0: main(defineWindow({ isVisible: true })),
    ...Object.fromEntries([..."The fox"].map((letter, index) => [2 + index, main(textCodes(letter))])),
    20: main(carriageReturn, textCodes("jumps")),
    35: main(carriageReturn, textCodes("high")),
  });
  expect(new Set(shown.map(({ text }) => text))).toEqual(new Set(["The fox", "The fox\njumps", "jumps\nhigh"]));
});

test("services are tracks of their own, also those with numbers of more bits", () => {
  const window = [...defineWindow({ isVisible: true })];
  const { services, shown } = read({
    1: packetOf([
      [1, [...window, ...textCodes("Hello")]],
      [2, [...window, ...textCodes("Hola")]],
      [9, [...window, ...textCodes("Hallo")]],
    ]),
  });
  expect(services.toSorted()).toEqual(["service1", "service2", "service9"]);
  expect(new Set(shown.map(({ service, text }) => `${service} ${text}`))).toEqual(
    new Set(["service1 Hello", "service2 Hola", "service9 Hallo"]),
  );
});

test("windows are read from top to bottom, each where it is on the screen", () => {
  const { shown } = read({
    1: main(
      ...[defineWindow({ number: 0, isVisible: true, rows: 1 }), textCodes("below")],
      ...[defineWindow({ number: 1, isVisible: true, rows: 1, vertical: 5, anchor: 1 }), textCodes("above")],
    ),
  });
  expect(shown[0]).toMatchObject({ text: "above\nbelow", row: 1 });
});

const TEXTS: [string, (number | readonly number[])[], string][] = [
  ["letters of Latin-1", [textCodes("Señor Ærø")], "Señor Ærø"],
  ["notes", [0x7f, textCodes(" la")], "♪ la"],
  ["characters of the second page", [0x10, 0x39, 0x10, 0x25, 0x10, 0x31, 0x10, 0xa0], "™…‘[CC]"],
  ["unknown characters of it", [textCodes("a"), 0x10, 0x40, textCodes("b")], "a_b"],
  ["a letter that is corrected", [textCodes("helo"), 8, textCodes("lo")], "hello"],
  ["a row that is erased", [textCodes("wrong"), 14, textCodes("right")], "right"],
  ["a window that is cleared", [textCodes("wrong"), 12, textCodes("right")], "right"],
  ["a pen that moves", [0x92, 1, 2, textCodes("low"), 0x92, 0, 0, textCodes("high")], "high\nlow"],
  ["colors and attributes", [0x90, 5, 0, 0x91, 42, 0, 0, 0x97, 1, 2, 3, 4, textCodes("plain")], "plain"],
  ["reserved codes with their bytes", [0x12, 65, 0x19, 65, 65, 0x10, 0x19, 65, 65, 65, 0x10, 0x85, 65, 65, 65, 65], ""],
  ["codes of variable length", [0x10, 0x95, 3, 65, 65, 65, textCodes("b")], "b"],
  ["a delay, which is not kept", [0x8d, 20, textCodes("now")], "now"],
];
test.for(TEXTS)("texts with %s", ([, codes, text]) => {
  const result = read({ 1: main(defineWindow({ isVisible: true }), ...codes) }, 30);
  expect(textsOf(result)).toEqual(text === "" ? [] : [text]);
});

test("CEA-608 with text is preferred: encoders send the same in both", () => {
  const pairs = popOn("From 608");
  const packet = packetUnit(main(defineWindow({ isVisible: true }), textCodes("From 708")));
  const units = Object.fromEntries(pairs.map((pair, index) => [index, [captionUnit([pair])]]));
  const { services, shown } = readUnits({ ...units, [pairs.length]: [packet] });
  expect(services).toEqual(["cc1"]);
  expect(new Set(shown.map(({ text }) => text))).toEqual(new Set(["From 608"]));
});

test("empty pairs of CEA-608 do not hide CEA-708", () => {
  const packet = packetUnit(main(defineWindow({ isVisible: true }), textCodes("From 708")), { pairs: 1 });
  const { services, shown } = readUnits({ 0: [captionUnit([[0x80, 0x80]])], 2: [packet] });
  expect(services).toEqual(["cc1", "service1"]);
  expect(new Set(shown.map(({ text }) => text))).toEqual(new Set(["From 708"]));
});

const window = defineWindow({ isVisible: true });
const HOSTILE: [string, readonly PacketPart[]][] = [
  ["a packet that does not begin", [[2, 65, 65]]],
  ["a packet that does not end", [[3, 0x3f, 0x22]]],
  [
    "a block beyond its packet",
    [
      [3, 2, 0x3f],
      [2, 65, 65],
    ],
  ],
  ["a service whose number is missing", [[3, 1, 0xe5]]],
  ["a service of no number", packetOf([[0, [...window, 65]]])],
  ["text without a window", main(textCodes("nowhere"))],
  ["a window that was never defined", main(0x87, textCodes("nowhere"), displayWindows(255))],
  ["a command without its bytes", main(0x98, 0x20)],
  ["an extended code without its byte", main(window, 0x10)],
  ["a length beyond the block", main(window, 0x10, 0x9f, 0x3f)],
  ["a pen outside of its window", main(window, 0x92, 15, 63, textCodes("outside"))],
  [
    "windows of every size that are turned on and off",
    main(
      ...Array.from({ length: 3 }, (_, at) => defineWindow({ number: at, rows: 16, columns: 64 })),
      0x8b,
      255,
      0x8b,
      255,
    ),
  ],
  ["nothing but backspaces", main(window, Array(20).fill(8))],
  ["a reset", main(window, textCodes("gone"), 0x8f)],
];
test.for(HOSTILE)("%s shows nothing, and is no fault", ([, parts]) => {
  expect(textsOf(read({ 1: parts, 5: main(0x8c, 255) }))).toEqual([]);
});

test("more services than there are languages are left out", () => {
  const packets = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [index + 1, packetOf([[index + 1, [...window, 65]]])]),
  );
  expect(read(packets).services).toHaveLength(6);
});

test("random packets give texts, in order, and not more than can be read", () => {
  const next = randomFrom(11);
  const byte = () => Math.floor(next() * 256);
  const frames = 3000;
  const packets = Object.fromEntries(
    Array.from({ length: frames }, (_, at) => {
      const codes = [...window, ...Array.from({ length: 12 }, byte)];
      const parts =
        at % 3 === 0 ? main(codes) : Array.from({ length: 6 }, () => [2 + (byte() & 1), byte(), byte()] as PacketPart);
      return [at, parts];
    }),
  );
  const { shown } = read(packets, frames);
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.length).toBeLessThanOrEqual(frames * FRAME_SECONDS * 10 * 6);
  for (const { startMs, endMs, text, row } of shown) {
    expect(endMs - startMs).toBeGreaterThanOrEqual(100);
    expect(text.length).toBeLessThanOrEqual(8 * 16 * 70);
    expect(row).toBeGreaterThanOrEqual(0);
    expect(row).toBeLessThan(15);
  }
});
