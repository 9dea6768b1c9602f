import { describe, expect, test } from "vitest";
import type { ProgramTrack } from "#media/transport/program-tracks.ts";
import { TransportClock } from "#media/transport/transport-clock.ts";

/** Times of PES packets (ISO/IEC 13818-1, 2.4.3.7) of a program whose clock jumps. */

const SECOND = 90_000;
const RANGE = 2 ** 33;
const trackOf = (kind: "video" | "audio" | "other", continues: ProgramTrack | null = null): ProgramTrack =>
  ({ type: 0, pid: 0, descriptors: Buffer.alloc(0), codec: "", kind, continues }) as ProgramTrack;

const field = (prefix: number, time: number): Buffer => {
  const bytes = Buffer.alloc(5);
  bytes[0] = (prefix << 4) | (Math.floor(time / 2 ** 30) << 1) | 1;
  bytes.writeUInt16BE(((Math.floor(time / 2 ** 15) % 2 ** 15) << 1) | 1, 1);
  bytes.writeUInt16BE(((time % 2 ** 15) << 1) | 1, 3);
  return bytes;
};
const timeIn = (bytes: Buffer, at: number): number =>
  (((bytes[at] as number) >> 1) & 7) * 2 ** 30 +
  (bytes.readUInt16BE(at + 1) >> 1) * 2 ** 15 +
  (bytes.readUInt16BE(at + 3) >> 1);

/** What becomes of the decoding time of a packet, in seconds; its presentation time stays as much later as it was. */
function corrected(clock: TransportClock, track: ProgramTrack, seconds: number): number {
  const dts = ((Math.round(seconds * SECOND) % RANGE) + RANGE) % RANGE;
  const head = Buffer.from([0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10]);
  const packet = Buffer.concat([head, field(3, (dts + 3600) % RANGE), field(1, dts)]);
  clock.correct(packet, 0, packet.length, track);
  expect((timeIn(packet, 9) - timeIn(packet, 14) + RANGE) % RANGE).toBe(3600);
  return timeIn(packet, 14) / SECOND;
}

const count = (from: number, to: number, step = 0.04) =>
  Array.from({ length: Math.round((to - from) / step) }, (_, at) => from + at * step);

describe("the clock of a program", () => {
  test.each([
    ["continues", 12, 0],
    ["begins again", 0, 1],
    ["steps back by 2 s", 10, 1],
    ["jumps by an hour", 3600, 1],
    ["pauses for 5 s", 17, 0],
  ])("%s", (_, from, jumps) => {
    const clock = new TransportClock();
    const video = trackOf("video");
    for (const seconds of count(8, 12)) expect(corrected(clock, video, seconds)).toBeCloseTo(seconds, 4);
    for (const [at, seconds] of count(from, from + 2).entries())
      expect(corrected(clock, video, seconds)).toBeCloseTo((jumps > 0 ? 12 : from) + at * 0.04, 3);
    expect(clock.count).toBe(jumps);
    if (jumps > 0) expect(clock.firstSeconds).toBeCloseTo(4, 3);
  });

  test("wraps after 33 bits", () => {
    const clock = new TransportClock();
    const video = trackOf("video");
    const end = RANGE / SECOND;
    for (const seconds of count(end - 1, end + 1)) corrected(clock, video, seconds);
    expect(clock.count).toBe(0);
  });

  test("is that of all tracks, also of packets that are stored late", () => {
    const clock = new TransportClock();
    const video = trackOf("video");
    const audio = trackOf("audio");
    for (const seconds of count(0, 4)) {
      corrected(clock, video, seconds);
      corrected(clock, audio, seconds - 0.02);
    }
    expect(corrected(clock, video, 3600)).toBeCloseTo(4, 2);
    expect(corrected(clock, audio, 3.98)).toBeCloseTo(3.98, 2);
    expect(corrected(clock, audio, 3600)).toBeCloseTo(4, 2);
    expect(clock.count).toBe(1);
  });

  test("reaches a track that continues in another codec", () => {
    const clock = new TransportClock();
    const former = trackOf("video");
    for (const seconds of count(0, 4)) corrected(clock, former, seconds);
    expect(corrected(clock, trackOf("video", former), 2)).toBeCloseTo(4, 2);
  });

  test("leaves what has no times", () => {
    const clock = new TransportClock();
    for (const packet of [Buffer.alloc(20), Buffer.from([0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10, 1]), Buffer.alloc(3)]) {
      const before = Buffer.from(packet);
      clock.correct(packet, 0, packet.length, trackOf("video"));
      expect(packet).toEqual(before);
    }
  });
});
