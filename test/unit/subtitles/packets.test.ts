import { expect, test } from "vitest";
import { runToEnd } from "#lib/base";
import { type PacketFormat, parsing, readPacket, TrackText } from "#lib/subtitles";

const textOf = (format: PacketFormat, packet: string | Buffer) =>
  readPacket(format, Buffer.from(packet))?.map(({ text, settings }) => (settings ? [text, settings] : text));

const EVENTS: [string, unknown][] = [
  ["plain", "plain"],
  ["one, two, three", "one, two, three"],
  ["a\\Nb\\nc\\hd", "a\nb c\u00a0d"],
  ["{\\i1}a{\\i0} b", "<i>a</i> b"],
  ["{\\b1\\i1}a{\\b0}b", "<b><i>a</i></b><i>b</i>"],
  ["{\\b700}a{\\b100}b{\\u1}c{\\r}d", "<b>a</b>b<u>c</u>d"],
  ["{\\rAlt\\i1}a", "<i>a</i>"],
  ["{\\bord2\\be1\\blur3\\iclip(0,0,1,1)\\pos(1,2)\\pbo3\\alpha&HFF&\\fnArial}a", "a"],
  ["{a comment}b", "b"],
  ["{\\p1}m 0 0 l 1 1{\\p0}after", "after"],
  ["{\\p1}m 0 0 l 1 1", ""],
  ["{\\an8}top", ["top", "line:0"]],
  ["{\\a6}top", ["top", "line:0"]],
  ["{\\an2}bottom", "bottom"],
  ["1 < 2 & 3 > 2 --> x", "1 &lt; 2 &amp; 3 &gt; 2 --&gt; x"],
  ["{not closed", "{not closed"],
  ["a}b{", "a}b{"],
  ["\\N\\N \\N", ""],
  ["{\\i1}\\N{\\i0}", ""],
  ["{\\i1}a\\N\\Nb{\\i0}", "<i>a\nb</i>"],
  ["back\\slash", "back\\slash"],
];
test.each(EVENTS)("the text %s of ASS", (text, expected) => {
  expect(textOf("ass", `7,0,Default,,0,0,0,,${text}`)).toEqual([expected]);
});

test.each(["", "Dialogue", "1,2,3,4,5,6,7", "\0"])("%j is no event of ASS", (packet) => {
  expect(readPacket("ass", Buffer.from(packet))).toBeNull();
});

const SUBRIP: [string, unknown][] = [
  ["<i>a</i> <b>b</b> <u>c</u>", "<i>a</i> <b>b</b> <u>c</u>"],
  ['<font color="#fff">a</font>', "a"],
  ["<i>a", "<i>a</i>"],
  ["a</i>", "a"],
  ["{\\an8}a", ["a", "line:0"]],
  ["a\r\n\r\nb\rc", "a\nb\nc"],
  ["00:00:01.000 --> 00:00:02.000", "00:00:01.000 --&gt; 00:00:02.000"],
  ["<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"],
  ["\u0000a\u0007\u001b[31m", "a[31m"],
];
test.each(SUBRIP)("the text %j of SubRip", (text, expected) => {
  expect(textOf("subrip", text)).toEqual([expected]);
});

/** A sample of tx3g with a box of styles. */
function timedText(text: string | Buffer, ...styles: [from: number, to: number, face: number][]): Buffer {
  const bytes = Buffer.from(text as string);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  if (styles.length === 0) return Buffer.concat([length, bytes]);
  const box = Buffer.alloc(10 + styles.length * 12);
  box.writeUInt32BE(box.length);
  box.write("styl", 4, "latin1");
  box.writeUInt16BE(styles.length, 8);
  for (const [index, [from, to, face]] of styles.entries()) {
    box.writeUInt16BE(from, 10 + index * 12);
    box.writeUInt16BE(to, 12 + index * 12);
    box[16 + index * 12] = face;
  }
  return Buffer.concat([length, bytes, box]);
}
const SAMPLES: [string, Buffer, unknown][] = [
  ["of text", timedText("one\rtwo"), "one\ntwo"],
  ["of a pause", timedText(""), ""],
  ["of UTF-16", timedText(Buffer.from("feff00410042", "hex")), "AB"],
  ["of the Macintosh", timedText(Buffer.from([0x8a, 0x62])), "äb"],
  ["with styles", timedText("ab😀cd", [0, 1, 1], [2, 3, 2], [4, 99, 4]), "<b>a</b>b<i>😀</i>c<u>d</u>"],
  ["with styles out of order", timedText("abc", [2, 3, 1], [0, 1, 2], [5, 4, 1]), "ab<b>c</b>"],
  ["with markup", timedText("<b> & -->"), "&lt;b&gt; &amp; --&gt;"],
];
test.each(SAMPLES)("a sample of timed text %s", (_, sample, expected) => {
  expect(textOf("timed-text", sample)).toEqual([expected]);
});
test("a sample that ends before its text is none", () => {
  expect(readPacket("timed-text", Buffer.from([0]))).toBeNull();
  expect(readPacket("timed-text", Buffer.from([0, 9, 0x41]))).toBeNull();
  expect(textOf("timed-text", Buffer.alloc(0))).toEqual([""]);
});

test("settings of WebVTT are kept where they are valid, without regions", () => {
  const settingsOf = (settings: string) => readPacket("webvtt", Buffer.from("x"), { settings })?.[0]?.settings;
  expect(settingsOf("align:start  line:10%\tregion:r")).toBe("align:start line:10%");
  expect(settingsOf("align:middle")).toBe("");
  expect(settingsOf("line:0\n\nSTYLE")).toBe("");
});

/** A generator of numbers below a limit, alike in each run. */
function numbers(seed: number) {
  let state = seed;
  return (limit: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % limit;
  };
}
const PARTS = [
  "{",
  "}",
  "\\",
  "\\N",
  "\\p1",
  "\\i1",
  "<i>",
  "</b>",
  "&",
  "-->",
  "\n\n",
  "\r",
  "WEBVTT",
  "NOTE",
  ",",
  "é",
  "a",
  " ",
  "\0",
  "1",
];
const FORMATS: PacketFormat[] = ["subrip", "ass", "webvtt", "webvtt-sample", "timed-text"];

test("whatever a packet has, the text is a valid WebVTT file", () => {
  const next = numbers(7);
  for (let round = 0; round < 400; round++) {
    const text = new TrackText(100);
    for (const format of FORMATS) {
      const parts = Array.from({ length: next(40) }, () => PARTS[next(PARTS.length)] as string).join("");
      const bytes = Buffer.concat([
        Buffer.from(format === "ass" ? `,,,,,,,,${parts}` : parts),
        Buffer.alloc(next(3), next(256)),
      ]);
      const head = format === "timed-text" ? Buffer.from([0, Math.min(255, bytes.length)]) : Buffer.alloc(0);
      for (const cue of readPacket(format, Buffer.concat([head, bytes])) ?? [])
        text.add(next(200_000) - 50_000, next(200_000) - 50_000, cue);
    }
    const { vtt } = text.end();
    if (vtt !== null) expect(runToEnd(parsing(vtt)).faults).toEqual([]);
  }
});

test("long packets of markup take time in proportion to their length", () => {
  const longest = 32 * 1024;
  for (const format of FORMATS)
    for (const part of PARTS) {
      const packet = Buffer.from((format === "ass" ? ",,,,,,,," : "") + part.repeat(longest)).subarray(0, longest);
      const cues = readPacket(format, packet) ?? [];
      for (const { text } of cues) expect(text.length).toBeLessThanOrEqual(10_000);
    }
  expect(readPacket("subrip", Buffer.alloc(longest + 1, 0x61))).toBeNull();
});

test("cues outside of the video are left out, and those across its edges end there", () => {
  const text = new TrackText(10);
  const cue = (name: string) => ({ text: name, settings: "" });
  text.add(-2000, -1, cue("before"));
  text.add(-2000, 500, cue("across"));
  text.add(9000, 99_000, cue("end"));
  text.add(10_000, 11_000, cue("behind"));
  text.add(5000, 5000, cue("none"));
  text.add(6000, 4000, cue("backwards"));
  text.add(Number.NaN, 4000, cue("no number"));
  text.add(4000.4, 4999.6, cue("rounded"));
  const { vtt, skipped } = text.end();
  expect(skipped).toBe(3);
  expect(vtt).toBe(
    "WEBVTT\n\n00:00:00.000 --> 00:00:00.500\nacross\n\n00:00:04.000 --> 00:00:05.000\nrounded\n\n00:00:09.000 --> 00:00:10.000\nend\n",
  );
});
