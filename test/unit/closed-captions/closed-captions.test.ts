import { expect, test } from "vitest";
import { LiveCaptions } from "#live/captions/live-captions.ts";
import { CaptionReader } from "#src/lib/closed-captions/caption-reader.ts";
import { captionBytes } from "#src/lib/closed-captions/user-data.ts";
import { randomFrom } from "#test/support/lib/random-dialogue.ts";
import { captionUnit, erase, type Pair, popOn, rollUp } from "#test/support/live/closed-captions.ts";

const FRAME_SECONDS = 1 / 30;

function sampleOf(...units: Buffer[]): Buffer {
  return Buffer.concat(
    units.flatMap((unit) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(unit.length);
      return [length, unit];
    }),
  );
}

/** What is read of frames with these pairs, one in each; a segment ends every second. */
function read(pairs: readonly Pair[], { field = 0 as 0 | 1, order = (index: number) => index } = {}) {
  const services: string[] = [];
  const shown: [number, number, string][] = [];
  const reader = new CaptionReader({
    codec: "h264",
    onService: (service) => services.push(service),
    onCaption: ({ startMs, endMs, text }) => shown.push([startMs, endMs, text]),
  });
  let segmentEnd = 1;
  for (let index = 0; index < pairs.length; index++) {
    const decodedSeconds = index * FRAME_SECONDS;
    const picture = order(index);
    // B-frames are shown after they are decoded.
    const presentedSeconds = picture * FRAME_SECONDS;
    if (decodedSeconds >= segmentEnd) reader.endSegment(segmentEnd++);
    const data = sampleOf(captionUnit([pairs[picture] as Pair], { field }), Buffer.from([0x65, 1, 2, 3]));
    reader.add({ decodedSeconds: Math.min(decodedSeconds, presentedSeconds), presentedSeconds, data });
  }
  reader.endSegment(pairs.length * FRAME_SECONDS);
  return { services, shown };
}

const nothing = (count: number): Pair[] => Array.from({ length: count }, () => [0x80, 0x80] as const);

test("captions that pop on are shown until they are erased, and divided by segments", () => {
  const pairs = [...nothing(5), ...popOn("Hello"), ...nothing(40), ...erase(), ...nothing(10)];
  const { services, shown } = read(pairs);
  expect(services).toEqual(["cc1"]);
  expect(shown.map(([, , text]) => text)).toEqual(["Hello", "Hello"]);
  const [[start, middle], [again, end]] = shown as unknown as [[number, number], [number, number]];
  // The last pair but one: commands are sent twice.
  expect(Math.abs(start - (5 + 9) * 33.3)).toBeLessThan(67);
  expect([middle, again]).toEqual([1000, 1000]);
  expect(Math.abs(end - (5 + 11 + 40) * 33.3)).toBeLessThan(67);
});

test("frames that are sent in another order than they are shown give the same", () => {
  const pairs = [...popOn("Over there"), ...nothing(50), ...erase(), ...nothing(11)];
  // I P B B P B B: each P is sent before the two that are shown before it.
  const reordered = (index: number) => {
    if (index === 0 || index >= pairs.length - (pairs.length % 3)) return index;
    return index % 3 === 1 ? Math.min(index + 2, pairs.length - 1) : index - 1;
  };
  const inOrder = read(pairs).shown.map(([, , text]) => text);
  expect(inOrder.length).toBeGreaterThan(0);
  expect(read(pairs, { order: reordered }).shown.map(([, , text]) => text)).toEqual(inOrder);
});

test("lines that roll up grow by words, not by letters", () => {
  const text = "The quick brown fox";
  const { shown } = read([...rollUp(text), ...nothing(20), ...rollUp("jumps"), ...nothing(30)]);
  expect(shown.at(-1)?.[2]).toBe(`${text}\njumps`);
  // As long as a letter is, there were one for each pair.
  expect(shown.length).toBeLessThan(12);
  for (const [index, [start, end]] of shown.entries()) {
    expect(end).toBeGreaterThan(start);
    if (index > 0) expect(start).toBeGreaterThanOrEqual(shown[index - 1]?.[1] as number);
  }
});

test("captions of the second field are another service", () => {
  expect(read([...popOn("Hola"), ...nothing(9), ...erase(), ...nothing(3)], { field: 1 })).toMatchObject({
    services: ["cc3"],
    shown: [[expect.any(Number), expect.any(Number), "Hola"]],
  });
});

const valid = captionUnit([[0x94, 0x20]]);
const HOSTILE: [string, Buffer][] = [
  ["nothing", Buffer.alloc(0)],
  ["a length without a unit", Buffer.from([0, 0, 0, 9])],
  ["a length beyond the end", Buffer.from([0xff, 0xff, 0xff, 0xff, 6, 4])],
  ["units without bytes", Buffer.alloc(4000)],
  ["a unit of one byte", sampleOf(Buffer.from([6]))],
  ["a payload beyond its unit", sampleOf(Buffer.from([6, 4, 200, 0xb5, 0, 0x31]))],
  ["a size that does not end", sampleOf(Buffer.concat([Buffer.from([6, 4]), Buffer.alloc(2000, 0xff)]))],
  ["more pairs than bytes", sampleOf(Buffer.concat([valid.subarray(0, 11), Buffer.from([0x5f, 0xff, 0xfc, 0x94])]))],
  ["a unit of a mebibyte", sampleOf(Buffer.concat([valid, Buffer.alloc(2 ** 20)]))],
  ["thousands of units", sampleOf(...Array.from({ length: 50_000 }, () => Buffer.from([6, 4, 1, 0x80])))],
];
test.for(HOSTILE)("%s has no captions, and no fault", ([, sample]) => {
  const bytes = captionBytes(sample, "h264");
  expect([undefined, 0]).toContain(bytes?.first.length);
  expect([undefined, 0]).toContain(captionBytes(sample, "hevc")?.first.length);
});

test("random bytes of captions give texts, in order", () => {
  const next = randomFrom(7);
  const pairs = Array.from({ length: 3000 }, () => [Math.floor(next() * 256), Math.floor(next() * 256)] as const);
  const { shown } = read(pairs);
  // Also what a publisher can cause is limited: ten captions a second.
  expect(shown.length).toBeLessThanOrEqual(pairs.length * FRAME_SECONDS * 10);
  for (const [start, end, text] of shown) {
    expect(end).toBeGreaterThan(start);
    expect(text.length).toBeLessThanOrEqual(15 * 101);
  }
});

test("emulation prevention within captions is removed", () => {
  // 00 00 03 before a byte up to 3.
  const pairs = [0xfc, 0x00, 0x00, 0x03, 0x01, 0xfc, 0x94, 0x20];
  const payload = [0xb5, 0, 0x31, ...Buffer.from("GA94"), 3, 0x42, 0xff, ...pairs.slice(0, 3), 0xfc, 0x01, 0x80];
  const unit = Buffer.from([6, 4, payload.length, ...payload, 0x80]);
  const at = unit.indexOf(Buffer.from([0xfc, 0, 0])) + 3;
  const escaped = Buffer.concat([unit.subarray(0, at), Buffer.from([3]), Buffer.from([1]), unit.subarray(at + 1)]);
  const plain = Buffer.concat([unit.subarray(0, at), Buffer.from([1]), unit.subarray(at + 1)]);
  expect(captionBytes(sampleOf(escaped), "h264")).toEqual(captionBytes(sampleOf(plain), "h264"));
});

test("a segment contains what is shown in it, whatever its text", () => {
  const captions = new LiveCaptions();
  captions.announce("cc1");
  for (let second = 0; second < 100; second++) {
    const text = second === 50 ? "a --> b\n<i>&" : `at ${second}`;
    captions.add({ service: "cc1", startMs: second * 1000, endMs: second * 1000 + 1000, text, row: second % 15 });
  }
  const segment = (startSeconds: number) => captions.segment("cc1", { startSeconds, durationSeconds: 2 });
  expect(segment(10).match(/at \d+/g)).toEqual(["at 10", "at 11"]);
  expect(segment(50)).toContain("a --&gt; b\n&lt;i&gt;&amp;");
  expect(segment(200)).toMatch(/^WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n$/);
});
