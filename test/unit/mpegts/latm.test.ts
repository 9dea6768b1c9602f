import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { LiveSample, TrackConfig } from "#src/lib/codecs/samples.ts";
import { TsDemuxer } from "#src/lib/mpegts/demuxer.ts";
import { LatmReader } from "#src/lib/mpegts/latm-reader.ts";
import { RejectedMedia } from "#src/lib/publishing/rejected-media.ts";
import { DEFAULT_LIMITS } from "#src/lib/srt/limits.ts";
import { Random } from "#test/support/crash/random.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { aac, sound } from "#test/support/live/cmaf-publisher.ts";
import { ffmpeg } from "#test/support/media/sources.ts";

/** AAC in LATM, as ffmpeg writes it, is the AAC of the same source with ADTS headers. */

const streams = new Map<string, Buffer>();
beforeAll(async () => {
  const folder = newFolder();
  const source = join(folder, "source.m4a");
  await ffmpeg(...sound(2), ...aac, source);
  for (const flags of ["+pat_pmt_at_frames", "+latm"]) {
    const path = join(folder, "source.ts");
    await ffmpeg("-y", "-i", source, "-c", "copy", "-mpegts_flags", flags, "-f", "mpegts", path);
    streams.set(flags, await readFile(path));
  }
  return () => removeFolder(folder);
});
const latm = () => streams.get("+latm") as Buffer;

function read(bytes: Buffer) {
  const configs: TrackConfig[] = [];
  const samples: LiveSample[] = [];
  const limits = DEFAULT_LIMITS;
  const demuxer = new TsDemuxer({
    limits,
    onConfig: (one) => configs.push(one),
    onSample: (one) => samples.push(one),
    onConvertible: () => {},
  });
  demuxer.push(Buffer.from(bytes));
  demuxer.end();
  return { configs, samples };
}

test("has the same frames, at the same times, with an equal configuration", () => {
  const expected = read(streams.get("+pat_pmt_at_frames") as Buffer);
  const found = read(latm());
  expect(found.samples.length).toBeGreaterThan(90);
  expect(found.samples.map(({ data }) => data.toString("hex"))).toEqual(
    expected.samples.map(({ data }) => data.toString("hex")),
  );
  const distances = found.samples.map(({ timestamp }, index) =>
    Math.abs(timestamp - (expected.samples[index] as LiveSample).timestamp),
  );
  expect(Math.max(...distances)).toBeLessThanOrEqual(1);
  // The object type, the sample rate and the channels.
  expect(found.configs[0]?.configuration.readUInt16BE()).toBe(expected.configs[0]?.configuration.readUInt16BE());
});

test("is read wherever a packet ends, and whatever is damaged", () => {
  const random = new Random(5);
  const element = (payload: Buffer) => {
    const head = Buffer.alloc(3);
    head.writeUIntBE(0x56e000 | payload.length, 0, 3);
    return Buffer.concat([head, payload]);
  };
  const whole = Buffer.concat(
    Array.from({ length: 20 }, () => element(Buffer.from(Array.from({ length: 60 }, () => random.whole(0, 255))))),
  );
  for (let round = 0; round < 500; round++) {
    const reader = new LatmReader();
    const damaged = Buffer.from(whole);
    damaged[random.whole(0, damaged.length - 1)] = random.whole(0, 255);
    for (let at = 0; at < damaged.length; ) {
      const end = at + random.whole(1, 300);
      try {
        reader.read(damaged.subarray(at, end));
      } catch (error) {
        expect(error).toBeInstanceOf(RejectedMedia);
        break;
      }
      at = end;
    }
  }
});
