import { join } from "node:path";
import { expect, test } from "vitest";
import { type Block, MatroskaBlocks } from "#media/captions/matroska-blocks.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { randomFrom } from "#test/support/lib/random-dialogue.ts";
import { fast, ffmpeg, ffprobe, picture } from "#test/support/media/sources.ts";

const read = (blocks: MatroskaBlocks, ...chunks: Buffer[]): Block[] =>
  chunks.flatMap((chunk) => [...blocks.take(chunk)].map(({ ms, data }) => ({ ms, data: Buffer.from(data) })));

/** What ffmpeg writes to a pipe, as it does for captions. */
const piped = (path: string) => ffmpeg("-i", path, "-map", "0:v", "-c", "copy", "-f", "matroska", "-");

test("blocks are the packets of the file, however the bytes arrive", async () => {
  const path = join(emptyFolder(), "a.mp4");
  await ffmpeg(...picture("320x180", "30", 8), ...fast, "-bf", "2", "-g", "30", path);
  const stream = await piped(path);
  const whole = read(new MatroskaBlocks(), stream);
  const packets = (await ffprobe("-show_entries", "packet=pts_time,size", "-of", "csv=p=0", path)).trim().split("\n");
  expect(whole.map(({ data }) => data.length)).toEqual(packets.map((line) => Number(line.split(",")[1])));
  for (const [index, { ms }] of whole.entries())
    expect(Math.abs(ms - Number(packets[index]?.split(",")[0]) * 1000)).toBeLessThan(1.5);
  const next = randomFrom(3);
  for (let round = 0; round < 5; round++) {
    const chunks: Buffer[] = [];
    for (let at = 0; at < stream.length; ) {
      const to = at + 1 + Math.floor(next() ** 4 * 5000);
      chunks.push(stream.subarray(at, to));
      at = to;
    }
    expect(read(new MatroskaBlocks(), ...chunks)).toEqual(whole);
  }
});

test("a stream with random changes is read without a fault", async () => {
  const path = join(emptyFolder(), "a.mp4");
  await ffmpeg(...picture("64x64", "30", 1), ...fast, path);
  const stream = await piped(path);
  const next = randomFrom(9);
  for (let round = 0; round < 300; round++) {
    const changed = Buffer.from(stream);
    for (let change = 0; change < 20; change++) changed[Math.floor(next() * changed.length)] = Math.floor(next() * 256);
    for (const { ms, data } of read(new MatroskaBlocks(), changed.subarray(0, 9000), changed.subarray(9000))) {
      expect(Number.isFinite(ms)).toBe(true);
      expect(data.length).toBeLessThanOrEqual(2 ** 20);
    }
  }
});

test("of a large block only the beginning is kept", () => {
  const size = 3 * 2 ** 20;
  const head = Buffer.from([0x1f, 0x43, 0xb6, 0x75, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xe7, 0x81, 7]);
  const blockHead = Buffer.from([0xa3, 0x10 | (size >> 24), (size >> 16) & 255, (size >> 8) & 255, size & 255]);
  const large = Buffer.concat([head, blockHead, Buffer.from([0x81, 0, 2, 0]), Buffer.alloc(size - 4, 9)]);
  const small = Buffer.from([0xa3, 0x85, 0x81, 0, 3, 0, 42]);
  const blocks = read(new MatroskaBlocks(), ...[large, small]);
  expect(blocks.map(({ ms, data }) => [ms, data.length])).toEqual([
    [9, 2 ** 20 - 4],
    [10, 1],
  ]);
});
