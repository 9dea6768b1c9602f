import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type LiveSample, opusSamples } from "#lib/codecs";
import { PublishStream } from "#lib/publishing";
import { OggWriter } from "#live/converted-audio/ogg.ts";
import { H264Depacketizer } from "#live/whip/h264-depacketizer.ts";
import { JitterBuffer } from "#live/whip/jitter-buffer.ts";
import { DEFAULT_LIMITS } from "#live/whip/limits.ts";
import { MediaReceiver } from "#live/whip/media-receiver.ts";
import type { NegotiatedTrack } from "#live/whip/negotiation.ts";
import { SessionClock } from "#live/whip/sender-clock.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { audioOf, packetsOf, signalAudio, signalVideo, videoOf } from "#test/support/live/whip-media.ts";
import { ffprobe } from "#test/support/media/sources.ts";

const MAX_BYTES = 1_000_000;
const packet = (timestamp: number, payload: Buffer, marker = false) => ({ timestamp, marker, payload });
const unit = (type: number, bytes: number) => Buffer.concat([Buffer.of(0x60 | type), Buffer.alloc(bytes, type)]);
function fragments(whole: Buffer, size: number): Buffer[] {
  const [header] = whole as unknown as [number];
  const parts: Buffer[] = [];
  for (let at = 1; at < whole.length; at += size) {
    const flags = (at === 1 ? 0x80 : 0) | (at + size >= whole.length ? 0x40 : 0) | (header & 0x1f);
    parts.push(Buffer.concat([Buffer.of((header & 0xe0) | 28, flags), whole.subarray(at, at + size)]));
  }
  return parts;
}

describe("H.264 in RTP", () => {
  test("is read from single NAL units, aggregates and fragments", () => {
    const reader = new H264Depacketizer(MAX_BYTES);
    const sps = unit(7, 10);
    const pps = unit(8, 4);
    const idr = unit(5, 5000);
    const sized = (one: Buffer) => Buffer.concat([Buffer.of(one.length >> 8, one.length & 0xff), one]);
    expect(reader.push(packet(1, Buffer.concat([Buffer.of(24), sized(sps), sized(pps)])))).toEqual([]);
    const parts = fragments(idr, 1200);
    const frames = parts.flatMap((part, index) => reader.push(packet(1, part, index === parts.length - 1)));
    expect(frames).toEqual([{ timestamp: 1, units: [sps, pps, idr] }]);
    // Without a marker, the next timestamp ends the frame.
    expect(reader.push(packet(2, unit(1, 9)))).toEqual([]);
    expect(reader.push(packet(3, unit(1, 8), true)).map(({ timestamp }) => timestamp)).toEqual([2, 3]);
  });

  test("without one of its packets is dropped, and the next frame is not", () => {
    const reader = new H264Depacketizer(MAX_BYTES);
    const [first, , last] = fragments(unit(1, 3000), 1000) as [Buffer, Buffer, Buffer];
    reader.push(packet(1, first));
    reader.lose();
    expect(reader.push(packet(1, last, true))).toEqual([]);
    expect(reader.push(packet(2, unit(1, 5), true))).toHaveLength(1);
  });

  test("that is malformed or unlimited is dropped or rejected", () => {
    const reader = new H264Depacketizer(2000);
    for (const payload of [
      Buffer.alloc(0),
      Buffer.of(24, 0, 9),
      Buffer.of(28),
      Buffer.of(28, 0x40, 1),
      Buffer.of(0),
      Buffer.of(29, 1),
    ])
      expect(reader.push(packet(1, payload, true))).toEqual([]);
    expect(() => {
      for (const part of fragments(unit(5, 9000), 500)) reader.push(packet(2, part));
    }).toThrow(/too large/);
    const many = new H264Depacketizer(MAX_BYTES);
    expect(() => {
      for (let index = 0; index < 3000; index++) many.push(packet(2, unit(1, 1)));
    }).toThrow(/NAL units/);
  });
});

describe("a jitter buffer", () => {
  const drain = (buffer: JitterBuffer<{ sequence: number }>) => {
    const taken: [number, boolean][] = [];
    for (let next = buffer.take(); next; next = buffer.take()) taken.push([next.packet.sequence, next.isAfterLoss]);
    return taken;
  };

  test("puts packets in order across the wrap, and drops repeated ones", () => {
    const buffer = new JitterBuffer<{ sequence: number }>({ delayMs: 100, canRequest: false });
    for (const sequence of [65_534, 0, 65_535, 1, 1]) buffer.add({ sequence }, 0);
    expect(drain(buffer).map(([sequence]) => sequence)).toEqual([65_534, 65_535, 0, 1]);
    expect(buffer.add({ sequence: 65_535 }, 0)).toBe(false);
    expect(buffer.counts).toMatchObject({ received: 4, expected: 4 });
  });

  test("requests what is missing, again and again, and skips it in the end", () => {
    const buffer = new JitterBuffer<{ sequence: number }>({ delayMs: 500, canRequest: true });
    for (const sequence of [10, 13]) buffer.add({ sequence }, 0);
    expect(drain(buffer)).toEqual([[10, false]]);
    // Packets that overtake others are not lost.
    expect(buffer.requests(1)).toEqual([]);
    expect(buffer.requests(10)).toEqual([11, 12]);
    expect(buffer.requests(20)).toEqual([]);
    buffer.add({ sequence: 12 }, 30);
    expect(buffer.requests(100)).toEqual([11]);
    buffer.skip(550);
    expect(drain(buffer)).toEqual([]);
    // Requests of a process that was paused may have been answered: the answer is read first.
    for (const now of [550, 650]) expect(buffer.requests(now)).toEqual([11]);
    buffer.skip(651);
    expect(drain(buffer)).toEqual([
      [12, true],
      [13, false],
    ]);
  });

  test("continues after a jump, with what follows it", () => {
    const buffer = new JitterBuffer<{ sequence: number }>({ delayMs: 500, canRequest: true });
    buffer.add({ sequence: 1 }, 0);
    drain(buffer);
    buffer.add({ sequence: 20_000 }, 1);
    expect(drain(buffer)).toEqual([[20_000, true]]);
  });

  test.each([true, false])(
    "continues after several packets that are lost at once, requested again: %s",
    (canRequest) => {
      const buffer = new JitterBuffer<{ sequence: number }>({ delayMs: 100, canRequest });
      // They are read together, as after a pause of the process.
      for (const sequence of [10, 12, 13, 15, 18]) buffer.add({ sequence }, 0);
      expect(drain(buffer)).toEqual([[10, false]]);
      for (const now of [10, 80, 150, 220]) buffer.requests(now);
      buffer.skip(300);
      expect(drain(buffer)).toEqual([
        [12, true],
        [13, false],
        [15, true],
        [18, true],
      ]);
      expect(buffer.hasGap).toBe(false);
      buffer.add({ sequence: 19 }, 310);
      expect(drain(buffer)).toEqual([[19, false]]);
    },
  );
});

describe("the clock of a session", () => {
  const WRAP = 2 ** 32;

  test("follows the reports of the sender, although audio arrives later and timestamps wrap", () => {
    const session = new SessionClock();
    const video = session.add({ rate: 90_000, isSlewed: true });
    const audio = session.add({ rate: 48_000, isSlewed: false });
    const videoBase = WRAP - 45_000;
    const audioBase = 1000;
    const videoAt = (ms: number) => (videoBase + ms * 90) % WRAP;
    const audioAt = (ms: number) => audioBase + ms * 48;
    video.mediaMs(videoAt(0));
    audio.mediaMs(audioAt(0));
    const report = { source: 1, ntpMiddle: 0 };
    video.report({ ...report, ntpMs: 5000, timestamp: videoAt(1000) });
    audio.report({ ...report, ntpMs: 4500, timestamp: audioAt(500) });
    expect(session.hasReports).toBe(true);
    session.start();
    for (const ms of [0, 1000, 60_000]) {
      expect(video.sessionMs(video.mediaMs(videoAt(ms)))).toBeCloseTo(4000 + ms, 3);
      expect(audio.sessionMs(audio.mediaMs(audioAt(ms)))).toBeCloseTo(4000 + ms, 3);
    }
  });

  test("keeps both tracks together when their clocks drift for half an hour", () => {
    const session = new SessionClock();
    const video = session.add({ rate: 90_000, isSlewed: true });
    const audio = session.add({ rate: 48_000, isSlewed: false });
    // The clock of the microphone is 100 parts in a million faster.
    const videoAt = (ms: number) => Math.round(ms * 90);
    const audioAt = (ms: number) => Math.round(ms * 48 * 1.0001);
    let worst = 0;
    for (let ms = 0; ms <= 1_800_000; ms += 1000) {
      const videoMs = video.mediaMs(videoAt(ms) % WRAP);
      const audioMs = audio.mediaMs(audioAt(ms) % WRAP);
      for (const [clock, timestamp] of [
        [video, videoAt(ms)],
        [audio, audioAt(ms)],
      ] as const)
        clock.report({ source: 1, ntpMiddle: 0, ntpMs: ms, timestamp: timestamp % WRAP });
      if (ms === 0) session.start();
      worst = Math.max(worst, Math.abs(video.sessionMs(videoMs) - audio.sessionMs(audioMs)));
    }
    expect(worst).toBeLessThan(5);
  });

  test("does not jump when the clock of the sender is set", () => {
    const session = new SessionClock();
    const video = session.add({ rate: 90_000, isSlewed: true });
    video.mediaMs(0);
    video.report({ source: 1, ntpMiddle: 0, ntpMs: 1000, timestamp: 0 });
    session.start();
    expect(video.sessionMs(video.mediaMs(90_000))).toBe(2000);
    video.report({ source: 1, ntpMiddle: 0, ntpMs: 3_600_000, timestamp: 90_000 });
    video.report({ source: 1, ntpMiddle: 0, ntpMs: 3_601_000, timestamp: 180_000 });
    expect(video.sessionMs(video.mediaMs(180_000))).toBeCloseTo(3000, 0);
  });

  test("begins with the arrival of packets when there are no reports", () => {
    const session = new SessionClock();
    const video = session.add({ rate: 90_000, isSlewed: true });
    video.arrived(video.mediaMs(0), 700);
    video.arrived(video.mediaMs(9000), 760);
    session.start();
    expect(video.sessionMs(video.mediaMs(9000))).toBe(760);
  });
});

describe("media that wait when the connection is lost", () => {
  const track = (kind: "audio" | "video"): NegotiatedTrack => ({
    kind,
    mid: kind,
    payloadType: kind === "video" ? 96 : 111,
    clockRate: kind === "video" ? 90_000 : 48_000,
    extensions: { mid: null, rid: null, transportSequence: null },
    hasNack: false,
    parameterSets: "",
    rids: [],
  });

  /** Receives two seconds of both tracks while the encoder of audio writes nothing, and then loses the connection. */
  async function lost({ hasReports }: { hasReports: boolean }) {
    const ffmpeg = join(emptyFolder(), "ffmpeg");
    await writeFile(ffmpeg, "#!/bin/sh\nexec cat > /dev/null\n", { mode: 0o755 });
    const [video, audio] = await Promise.all([videoOf(signalVideo(2)), audioOf(signalAudio(2))]);
    const passed: number[] = [];
    const sink = {
      onConfig: () => {},
      onMetadata: () => {},
      onEnd: () => {},
      onSample: ({ kind, timestamp }: LiveSample) => void (kind === "video" && passed.push(timestamp)),
    };
    const receiver = new MediaReceiver({
      ...{ tracks: [track("audio"), track("video")], limits: DEFAULT_LIMITS, stream: new PublishStream(sink), ffmpeg },
      ...{ onAudioError: () => {}, onError: () => {} },
    });
    const sequences = { 1: 0, 2: 0 };
    const send = (source: 1 | 2, ms: number, payloads: readonly Buffer[]) => {
      for (const [index, payload] of payloads.entries())
        receiver.receive(
          {
            payloadType: source === 1 ? 96 : 111,
            marker: source === 1 && index === payloads.length - 1,
            sequence: sequences[source]++,
            timestamp: ms * (source === 1 ? 90 : 48),
            source,
            extensions: new Map(),
            payload,
          },
          ms,
        );
    };
    const due = [
      ...video.map((timed) => ({ ...timed, source: 1 as const })),
      ...audio.map((timed) => ({ ...timed, source: 2 as const })),
    ].toSorted((one, other) => one.ms - other.ms);
    for (const { source, ms, payloads } of due) {
      send(source, ms, payloads);
      if (hasReports && ms === 0) receiver.report({ source, ntpMiddle: 0, ntpMs: 1000, timestamp: 0 }, ms);
    }
    const before = passed.length;
    receiver.flush();
    receiver.close();
    return { frames: video.length, before, passed };
  }

  test.each([
    ["video that waits for the encoder of audio", true],
    ["all of it, before the clocks of the tracks are known", false],
  ])("is passed on: %s", async (_, hasReports) => {
    const { frames, before, passed } = await lost({ hasReports });
    expect(before).toBeLessThan(frames / 2);
    // The end of the last frame is not known: a marker says it.
    expect(passed).toHaveLength(frames);
    expect(passed).toEqual(passed.toSorted((one, other) => one - other));
  });
});

test("Opus in Ogg is what other programs read", async () => {
  const packets = (await audioOf(signalAudio(2))).map(({ payloads }) => payloads[0] as Buffer);
  const own = new OggWriter();
  const file = Buffer.concat([own.headers(), ...packets.map((one, index) => own.page(one, 960 * (index + 1)))]);
  expect(packetsOf(file).slice(2)).toEqual(packets);
  const path = join(emptyFolder(), "audio.ogg");
  await writeFile(path, file);
  const shown = await ffprobe("-show_entries", "stream=codec_name,channels,duration", "-of", "csv=p=0", path);
  expect(shown.trim()).toMatch(/^opus,2,2\.0/);
  expect([Buffer.alloc(0), Buffer.of(0xff, 0x3f)].map(opusSamples)).toEqual([null, null]);
});
