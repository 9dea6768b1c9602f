import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { readAc3Header, readMpegAudioHeader } from "#lib/codecs";
import { Random } from "#test/support/crash/random.ts";
import { newFolder } from "#test/support/folder.ts";
import { ffprobe } from "#test/support/media/sources.ts";

/** Every frame that ffmpeg writes begins and ends where ffprobe says. */
const encodings: [string, string, number[], string[]][] = [
  ["mp2", "mp2", [16_000, 22_050, 24_000, 32_000, 44_100, 48_000], ["-b:a 64k", "-b:a 160k"]],
  ["libmp3lame", "mp3", [8000, 11_025, 12_000, 22_050, 44_100, 48_000], ["-b:a 32k", "-q:a 2", "-b:a 64k -ac 1"]],
  ["ac3", "ac3", [32_000, 44_100, 48_000], ["-b:a 96k", "-b:a 448k -ac 6"]],
  ["eac3", "eac3", [32_000, 44_100, 48_000], ["-b:a 96k", "-b:a 384k -ac 6"]],
];
const table = encodings.flatMap(([encoder, format, rates, options]) =>
  rates.map((rate) => ({ encoder, format, rate, options })),
);

const encoded = async (args: string[]): Promise<Buffer> =>
  (
    await promisify(execFile)("ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "anoisesrc=d=1:a=0.3", ...args, "-"], {
      encoding: "buffer",
      maxBuffer: 2 ** 24,
    })
  ).stdout;

describe("headers of audio", () => {
  test.each(table)("$encoder at $rate Hz", async ({ encoder, format, rate, options }) => {
    const readHeader = format === "mp2" || format === "mp3" ? readMpegAudioHeader : readAc3Header;
    for (const option of options) {
      const plain = format === "mp3" ? ["-write_xing", "0", "-id3v2_version", "0"] : [];
      const data = await encoded([
        ..."-c:a".split(" "),
        encoder,
        "-ar",
        `${rate}`,
        ...option.split(" "),
        ...plain,
        "-f",
        format,
      ]);
      const file = join(newFolder(), `frames.${format}`);
      await writeFile(file, data);
      const entries = [
        "-show_entries",
        "packet=size,duration_time",
        "-of",
        "csv=p=0",
        "-f",
        format === "mp2" ? "mp3" : format,
      ];
      const packets = (await ffprobe(...entries, file))
        .trim()
        .split("\n")
        .map((line) => line.split(",").map(Number));
      let at = 0;
      const frames: number[][] = [];
      for (let header = readHeader(data, at); header; header = readHeader(data, at)) {
        expect(header.rate).toBe(rate);
        frames.push([header.samples / header.rate, header.bytes]);
        at += header.bytes;
      }
      expect(at).toBe(data.length);
      expect(frames.map(([, bytes]) => bytes)).toEqual(packets.map(([, bytes]) => bytes));
      for (const [index, [seconds]] of packets.entries()) expect(frames[index]?.[0]).toBeCloseTo(seconds as number, 4);
    }
  });

  test("any other bytes are none, or a frame that has a length", () => {
    const random = new Random(11);
    for (let count = 0; count < 50_000; count++) {
      const data = Buffer.from(random.bytes(12));
      data.writeUInt16BE(count % 2 ? 0x0b77 : 0xffe0 | (data[1] as number & 0x1f));
      const header = (count % 2 ? readAc3Header : readMpegAudioHeader)(data, 0);
      if (header === null) continue;
      const { bytes, samples, rate } = header;
      expect([bytes >= 6 && bytes <= 8192, samples >= 0 && samples <= 1536, rate >= 6000 && rate <= 48_000]).toEqual([
        true,
        true,
        true,
      ]);
    }
    for (let length = 0; length < 6; length++)
      for (const readHeader of [readAc3Header, readMpegAudioHeader])
        expect(readHeader(Buffer.from("fffda40400".slice(0, length * 2), "hex"), 0)).toBeNull();
  });
});
