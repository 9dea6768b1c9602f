import { execFile } from "node:child_process";
import { getPriority } from "node:os";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { readAc3Header, readMpegAudioHeader } from "#lib/codecs";
import type { AacPacket, AudioEncoder, AudioEncoderOptions } from "#live/converted-audio/aac-process.ts";
import { FrameEncoder } from "#live/converted-audio/frame-encoder.ts";
import { OpusEncoder } from "#live/converted-audio/opus-encoder.ts";
import { Random } from "#test/support/crash/random.ts";
import { descendantsOf, until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";
import { audioOf, signalAudio } from "#test/support/live/whip-media.ts";
import { binaries } from "#test/support/media/sources.ts";

const SECONDS = 4;
type Frame = { ms: number; data: Buffer };

async function framesOf(encoder: string, format: string, ...options: string[]): Promise<Frame[]> {
  const plain = format === "mp3" ? ["-write_xing", "0", "-id3v2_version", "0"] : [];
  const args = ["-v", "error", ...signalAudio(SECONDS), "-c:a", encoder, ...options, ...plain, "-f", format, "-"];
  const { stdout } = await promisify(execFile)("ffmpeg", args, { encoding: "buffer", maxBuffer: 2 ** 24 });
  const readHeader = format.endsWith("ac3") ? readAc3Header : readMpegAudioHeader;
  const frames: Frame[] = [];
  let ms = 0;
  let at = 0;
  for (let header = readHeader(stdout, at); header; header = readHeader(stdout, at)) {
    frames.push({ ms, data: stdout.subarray(at, at + header.bytes) });
    ms += (header.samples / header.rate) * 1000;
    at += header.bytes;
  }
  return frames;
}
const opusFrames = async () =>
  (await audioOf(signalAudio(SECONDS))).map(({ ms, payloads }) => ({ ms, data: payloads[0] as Buffer }));

const table: [string, () => Promise<Frame[]>, (options: AudioEncoderOptions) => AudioEncoder][] = [
  ["MP3", () => framesOf("libmp3lame", "mp3"), (options) => new FrameEncoder("mpeg", options)],
  ["AC-3", () => framesOf("ac3", "ac3"), (options) => new FrameEncoder("ac3", options)],
  ["Opus", opusFrames, (options) => new OpusEncoder(options)],
  ["MP2", () => framesOf("mp2", "mp2"), (options) => new FrameEncoder("mpeg", options)],
  ["Enhanced AC-3", () => framesOf("eac3", "eac3"), (options) => new FrameEncoder("ac3", options)],
];

async function encoded(
  open: (options: AudioEncoderOptions) => AudioEncoder,
  frames: readonly Frame[],
): Promise<{ packets: AacPacket[]; errors: Error[] }> {
  const packets: AacPacket[] = [];
  const errors: Error[] = [];
  const encoder = open({
    ffmpeg: binaries.ffmpeg,
    onPacket: (packet) => packets.push(packet),
    onError: (error) => errors.push(error),
  });
  atEnd(() => encoder.close());
  for (const { ms, data } of frames) encoder.push(ms, data);
  await encoder.finish(60_000);
  return { packets, errors };
}
const endOf = (packets: readonly AacPacket[]) => packets.at(-1)?.timeMs ?? 0;

test("AC-3 whose channels change stays in sync", async () => {
  const six = await framesOf("ac3", "ac3", "-ac", "6", "-b:a", "448k");
  const two = await framesOf("ac3", "ac3");
  const frames = two.map((frame, index) => ((index >> 5) % 2 === 0 ? (six[index] as Frame) : frame));
  const { packets, errors } = await encoded((options) => new FrameEncoder("ac3", options), frames);
  expect(errors).toEqual([]);
  expect(Math.abs(endOf(packets) - SECONDS * 1000)).toBeLessThan(100);
});

test("an encoder of a stream has the priority of the server: encodes that take all processors do not delay it", async () => {
  const errors: Error[] = [];
  const encoder = new OpusEncoder({
    ffmpeg: binaries.ffmpeg,
    onPacket: () => {},
    onError: (error) => errors.push(error),
  });
  atEnd(() => encoder.close());
  for (const { ms, data } of await opusFrames()) encoder.push(ms, data);
  const pids = await until("the encoder runs", () => {
    const found = descendantsOf(process.pid).filter(({ command }) => command.endsWith("-f adts pipe:1"));
    return found.some(({ command }) => !command.includes("--nice")) ? found.map(({ pid }) => pid) : null;
  });
  expect(pids.map((pid) => getPriority(pid))).toEqual(pids.map(() => getPriority()));
  await encoder.finish(60_000);
  expect(errors).toEqual([]);
});

describe.each(table)("%s", (_, read, open) => {
  test("keeps the times of what was pushed, without a frame too many or too few", async () => {
    const frames = (await read()).map(({ ms, data }) => ({ ms: ms + 5000, data }));
    const { packets, errors } = await encoded(open, frames);
    expect(errors).toEqual([]);
    expect(packets[0]?.timeMs).toBeCloseTo(5000, 0);
    const steps = packets.slice(1).map(({ timeMs }, index) => timeMs - (packets[index] as AacPacket).timeMs);
    for (const step of steps) expect(step).toBeCloseTo(1024 / 48, 1);
    expect(Math.abs(endOf(packets) - 5000 - SECONDS * 1000)).toBeLessThan(80);
  });

  test("is in sync after frames whose content is damaged", async () => {
    const random = new Random(7);
    const frames = (await read()).map(({ ms, data }, index) => {
      const isDamaged = index % 4 === 1 && index > 8;
      return {
        ms,
        data: isDamaged ? Buffer.concat([data.subarray(0, 8), random.bytes(Math.max(0, data.length - 8))]) : data,
      };
    });
    const { packets } = await encoded(open, frames);
    expect(Math.abs(endOf(packets) - SECONDS * 1000)).toBeLessThan(150);
  });

  test("has a gap, or silence, where frames are missing", async () => {
    const { packets, errors } = await encoded(
      open,
      (await read()).filter(({ ms }) => ms < 1000 || ms >= 2000),
    );
    expect(errors).toEqual([]);
    expect(Math.abs(endOf(packets) - SECONDS * 1000)).toBeLessThan(80);
    const isDense = (from: number, to: number) =>
      packets.filter(({ timeMs }) => timeMs >= from && timeMs < to).length >= (to - from) / 25;
    expect([isDense(0, 1000), isDense(2100, 3900)]).toEqual([true, true]);
  });

  test("ignores what is no frame", async () => {
    const random = new Random(3);
    const frames = await read();
    const others = [
      Buffer.alloc(0),
      Buffer.of(0xff),
      Buffer.from(random.bytes(500)),
      Buffer.alloc(200_000, 0xff),
      Buffer.alloc(70_000, 0x0b),
    ];
    const { packets } = await encoded(
      open,
      frames.flatMap((frame, index) =>
        index % 20 === 9 ? [...others.map((data) => ({ ms: frame.ms, data })), frame] : [frame],
      ),
    );
    expect(Math.abs(endOf(packets) - SECONDS * 1000)).toBeLessThan(150);
  });
});
