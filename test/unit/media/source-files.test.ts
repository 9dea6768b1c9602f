import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { adtsSeconds } from "#media/adts.ts";
import { linksOf } from "#media/ogg/links.ts";
import { readEmptyEdits } from "#src/lib/isobmff/empty-edits.ts";
import { isFragmented } from "#src/lib/isobmff/fragments.ts";
import { box, u32 } from "#test/support/media/boxes.ts";

/** What is read of a source without ffmpeg: links of Ogg, frames of ADTS, edits and fragments of MP4. */

const folder = mkdtempSync(join(tmpdir(), "source-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let number = 0;
const file = (...bytes: Buffer[]): string => {
  const path = join(folder, String(number++));
  writeFileSync(path, Buffer.concat(bytes));
  return path;
};

const page = (flags: number, bodies: number[] = [10]): Buffer =>
  Buffer.concat([
    Buffer.from("OggS\0", "latin1"),
    Buffer.from([flags]),
    Buffer.alloc(20),
    Buffer.from([bodies.length, ...bodies]),
    Buffer.alloc(
      bodies.reduce((sum, one) => sum + one, 0),
      7,
    ),
  ]);
const link = (streams: number, pages = 3): Buffer =>
  Buffer.concat([...Array<Buffer>(streams).fill(page(2)), ...Array<Buffer>(pages).fill(page(0, [255, 255, 3]))]);

describe("links of an Ogg file", () => {
  test.each<[string, Buffer[], number[] | null]>([
    ["one", [link(2)], null],
    ["two", [link(2), link(1)], [link(2).length, link(1).length]],
    ["two, of more than is read at once", [link(1, 5000), link(1)], [link(1, 5000).length, link(1).length]],
    ["two, with damage between", [link(1), Buffer.alloc(5000, 3), link(1)], [link(1).length + 5000, link(1).length]],
    ["none", [Buffer.alloc(3_000_000)], null],
    ["nothing", [], null],
    ["more than are followed", Array<Buffer>(600).fill(link(1, 1)), null],
  ])("%s", async (_, bytes, lengths) => {
    const found = await linksOf(file(...bytes));
    expect(found?.map(([, length]) => length) ?? null).toEqual(lengths);
  });
});

const adts = (rate: number, length = 20): Buffer => {
  const frame = Buffer.alloc(length);
  frame.set([
    0xff,
    0xf1,
    (1 << 6) | (rate << 2),
    0x80 | (length >> 11),
    (length >> 3) & 255,
    ((length & 7) << 5) | 0x1f,
    0xfc,
  ]);
  return frame;
};
describe("the length of ADTS", () => {
  test.each<[string, Buffer[], number | null]>([
    ["one rate", Array<Buffer>(100).fill(adts(3)), (100 * 1024) / 48_000],
    [
      "two rates",
      [...Array<Buffer>(100).fill(adts(3)), ...Array<Buffer>(50).fill(adts(5))],
      (100 * 1024) / 48_000 + 1.6,
    ],
    ["with a tag before", [Buffer.alloc(3000, 1), ...Array<Buffer>(3).fill(adts(3))], (3 * 1024) / 48_000],
    ["another file", [Buffer.alloc(2_000_000, 0xff)], null],
  ])("%s", async (_, bytes, seconds) => {
    const found = await adtsSeconds(file(...bytes));
    if (seconds === null) expect(found).toBeNull();
    else expect(found).toBeCloseTo(seconds, 6);
  });
});

const movie = (entries: [duration: number, time: number, rate?: number][], more: Buffer[] = []): Buffer =>
  Buffer.concat([
    box("ftyp", Buffer.from("isom\0\0\0\0")),
    box(
      "moov",
      box("mvhd", u32(0, 0, 0, 1000, 0)),
      ...more,
      box(
        "trak",
        box(
          "edts",
          box(
            "elst",
            u32(0, entries.length),
            ...entries.map(([length, time, rate = 0x10000]) => u32(length, time, rate)),
          ),
        ),
      ),
    ),
    box("mdat", Buffer.alloc(8)),
  ]);
const EMPTY = 0xffffffff;
describe("empty edits", () => {
  test.each<[string, Buffer, unknown]>([
    ["none", movie([[1000, 0]]), []],
    [
      "before the first edit",
      movie([
        [500, EMPTY],
        [1000, 0],
      ]),
      [],
    ],
    [
      "between two",
      movie([
        [1000, 0],
        [500, EMPTY],
        [1000, 9],
      ]),
      [[0, [{ from: 1, to: 1.5, isFrozen: false }]]],
    ],
    [
      "a frozen one",
      movie([
        [1000, 0],
        [500, 5, 0],
        [1000, 9],
      ]),
      [[0, [{ from: 1, to: 1.5, isFrozen: true }]]],
    ],
    [
      "in a file with fragments",
      movie(
        [
          [1000, 0],
          [500, EMPTY],
        ],
        [box("mvex")],
      ),
      [],
    ],
    ["in no movie", Buffer.alloc(1000), []],
  ])("%s", async (_, bytes, edits) => {
    expect([...(await readEmptyEdits(file(bytes)))]).toEqual(edits);
  });

  test("of a list that is cut off", async () => {
    const whole = movie([
      [1000, 0],
      [500, EMPTY],
      [1000, 9],
    ]);
    const at = whole.indexOf("elst") + 8;
    const longer = Buffer.from(whole);
    longer.writeUInt32BE(0xffffffff, at);
    await expect(readEmptyEdits(file(longer))).rejects.toThrow("truncated");
  });
});

test.each<[string, Buffer[], boolean]>([
  ["a whole file", [movie([[1000, 0]])], false],
  ["fragments", [box("ftyp", Buffer.alloc(8)), box("moov"), box("sidx"), box("moof")], true],
  ["boxes without end", [u32(0), Buffer.from("free"), Buffer.alloc(100)], false],
  ["nothing", [], false],
])("fragments: %s", async (_, bytes, expected) => {
  expect(await isFragmented(file(...bytes))).toBe(expected);
});
