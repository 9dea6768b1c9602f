import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TsDemuxer } from "#src/lib/mpegts/demuxer.ts";
import { RejectedMedia } from "#src/lib/publishing/rejected-media.ts";
import { DEFAULT_LIMITS } from "#src/lib/srt/limits.ts";
import { amount } from "#test/support/amount.ts";
import type { Random } from "#test/support/crash/random.ts";
import { emptyFolder } from "#test/support/folder.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import {
  control,
  data,
  extension,
  handshake,
  request,
  SrtClient,
  streamId,
  text,
} from "#test/support/live/srt-client.ts";
import { startSrt } from "#test/support/live/srt-recorder.ts";
import { AUDIO_PID, AUDIO_STREAM, adts, PidWriter, pes, tables } from "#test/support/live/ts-packets.ts";
import { ffmpeg } from "#test/support/media/sources.ts";
import { processorMs } from "#test/support/processor-time.ts";
import { seeded } from "#test/support/seed.ts";

const DATAGRAMS = amount(8000, 200_000, "FUZZ_RUNS");
const STREAMS = 300;
/** What the receive buffer of a socket holds. */
const BATCH = 40;
const EXTREMES = [0x00, 0x01, 0x7f, 0x80, 0xff];
const MB = 1024 * 1024;

function mutated(original: Buffer, random: Random, headerBytes: number): Buffer {
  let bytes = Buffer.from(original);
  for (let count = random.whole(1, 6); count > 0; count--) {
    if (bytes.length < 2) return Buffer.from(original);
    // Half of them in the headers.
    const at = random.whole(0, random.chance(0.5) ? Math.min(headerBytes, bytes.length - 1) : bytes.length - 1);
    const until = Math.min(bytes.length, at + random.whole(1, random.chance(0.1) ? 300 : 4));
    const kind = random.whole(0, 5);
    if (kind === 0) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(until)]);
    else if (kind === 1) bytes = Buffer.concat([bytes.subarray(0, until), bytes.subarray(at)]);
    else if (kind === 2) bytes = Buffer.from(bytes.subarray(0, at));
    else if (kind === 3) bytes[at] = (bytes[at] as number) ^ (1 << random.whole(0, 7));
    else if (kind === 4) bytes.fill(EXTREMES[random.whole(0, EXTREMES.length - 1)] as number, at, until);
    else bytes.set(random.bytes(until - at), at);
  }
  return bytes;
}

/** A second of H.264 and AAC. */
async function transportStream(...args: string[]): Promise<Buffer> {
  const path = join(emptyFolder(), "source.ts");
  const source = ["-f", "lavfi", "-i", "testsrc=s=96x64:r=10:d=1", "-f", "lavfi", "-i", "sine=d=1"];
  await ffmpeg(...source, ...args, "-c:a", "aac", "-b:a", "16k", "-f", "mpegts", path);
  return readFile(path);
}
const H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "1"];
const HEVC = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"];

const payloadsOf = (stream: Buffer) =>
  Array.from({ length: Math.ceil(stream.length / 1316) }, (_, index) =>
    stream.subarray(index * 1316, index * 1316 + 1316),
  );

/** What a caller sends after its handshake, with control packets of every type in between. */
function session(destination: number, payloads: Buffer[], random: Random): Buffer[] {
  const range = Buffer.alloc(8);
  range.writeUInt32BE(1000 + random.whole(0, 20));
  range.writeUInt32BE(1000 + random.whole(0, 9000), 4);
  const packets = payloads.map((payload, index) =>
    data(destination, 1000 + index, payload, { timestamp: index * 20_000 }),
  );
  const controls = [
    control(6, destination, Buffer.alloc(0), random.whole(0, 200)),
    control(7, destination, range),
    control(1, destination),
    control(2, destination, Buffer.alloc(28), 3),
    control(3, destination, Buffer.alloc(8, 0x80)),
    control(8, destination),
    handshake({ cookie: 5 }, request()),
  ];
  return [...packets.slice(0, 6), ...controls, ...packets.slice(6)];
}

/** The type of a handshake that rejects one (The SRT Protocol, 4.3); null of other packets. */
const rejectionOf = (packet: Buffer): number | null => {
  const isHandshake = packet.length >= 40 && packet.readUInt32BE(0) === 0x8000_0000;
  const type = isHandshake ? packet.readUInt32BE(36) : 0;
  return type >= 1000 && type < 3000 ? type : null;
};

test(`${DATAGRAMS} mutated datagrams disturb their own connection and nothing else`, async () => {
  const limits = { peerTimeoutMs: 1000, publishTimeoutMs: 500, closeTimeoutMs: 200, minLatencyMs: 50 };
  const seen = { accepted: 0, samples: 0, ends: new Map<number, number>() };
  const srt = await startSrt({
    limits: {
      ...limits,
      connectionsPerAddress: 10_000,
      handshakesPerAddress: 1e9,
      handshakesPerSecond: 1e9,
      inductionsPerSecond: 1e9,
    },
    authorize: async ({ name }) => {
      if (name === "healthy") return null;
      const id = seen.accepted++;
      const onEnd = () => void seen.ends.set(id, (seen.ends.get(id) ?? 0) + 1);
      const onSample = () => void seen.samples++;
      return { accepted: true, sink: { onConfig() {}, onSample, onMetadata() {}, onEnd } };
    },
  });
  const random = seeded(20_261_126);
  const payloads = payloadsOf(await transportStream(...H264));
  const conclusionParts = [
    request(),
    streamId("publish:live/fuzz:key=x"),
    text(6, "live"),
    extension(9, Buffer.alloc(8)),
  ];

  const healthy = await SrtClient.publish(srt.port, "publish:live/healthy:key=x");
  const audio = new PidWriter(AUDIO_PID);
  let sequence = 0;
  /** One frame of a publisher that does nothing wrong. */
  const keepPublishing = () => {
    const frame = audio.write(pes(AUDIO_STREAM, sequence * 1920, adts(Buffer.alloc(20, 1))));
    const payload = sequence === 0 ? Buffer.concat([tables([[0x0f, AUDIO_PID]]), frame]) : frame;
    healthy.client.send(data(healthy.destination, 1000 + sequence, payload, { timestamp: sequence * 20_000 }));
    healthy.client.received.length = 0;
    sequence++;
  };

  const reasons = new Set<unknown>();
  const errors: unknown[] = [];
  /** What the test keeps would count as growth of the server. */
  const drain = () => {
    for (const { level, message, fields } of srt.log.splice(0)) {
      reasons.add(fields.reason);
      if (level === "error") errors.push({ message, ...fields });
    }
    srt.requests.length = 0;
  };

  const memory = process.memoryUsage.rss();
  let sent = 0;
  let longestMs = 0;
  while (sent < DATAGRAMS) {
    const client = await SrtClient.open(srt.port);
    // The log has one line for the rejections of an address and a minute.
    client.socket.on("message", (packet) => reasons.add(rejectionOf(packet)));
    const cookie = await client.cookie();
    // Handshakes with a valid cookie.
    const conclusions = Array.from({ length: 20 }, (_, index) =>
      mutated(handshake({ cookie, socketId: 500 + index }, ...conclusionParts), random, 120),
    );
    for (const packet of conclusions) if (packet.length >= 48) packet.writeUInt32BE(cookie, 44);
    client.send(...conclusions);
    const answer = await client.conclude(cookie, request(), streamId("publish:live/fuzz:key=x"));
    const destination = answer.readUInt32BE(40);
    let count = conclusions.length;
    // The others lead to where a mutation matters.
    const packets = session(destination, payloads, random).map((packet) => {
      if (random.chance(0.5)) return packet;
      count++;
      return mutated(packet, random, 60);
    });
    // So that they reach the connection.
    for (const packet of packets) if (packet.length >= 16 && random.chance(0.9)) packet.writeUInt32BE(destination, 12);
    for (let at = 0; at < packets.length; at += BATCH) {
      const begin = process.threadCpuUsage();
      client.send(...packets.slice(at, at + BATCH));
      keepPublishing();
      await client.cookie();
      const { user, system } = process.threadCpuUsage(begin);
      longestMs = Math.max(longestMs, (user + system) / 1000);
      client.received.length = 0;
    }
    sent += count;
    client.close();
    drain();
  }
  const [publisher] = srt.recorders as [Recorder];
  await publisher.until(() => publisher.samples.length === sequence);
  expect(publisher.ends).toEqual([]);
  healthy.client.send(control(5, healthy.destination));
  expect(await publisher.ended).toBe("unpublished");
  await expect.poll(() => srt.server.connections, { timeout: 30_000 }).toBe(0);
  expect(process.memoryUsage.rss() - memory).toBeLessThan(300 * MB);
  drain();
  // An error in the log is an exception that is no violation of the protocol.
  expect(errors).toEqual([]);
  expect(seen.accepted).toBeGreaterThan(100);
  expect(seen.samples).toBeGreaterThan(1000);
  expect([...seen.ends.values()]).toEqual(Array(seen.accepted).fill(1));
  expect(reasons.size).toBeGreaterThan(5);
  // A batch takes 1 ms of processor time.
  expect(longestMs).toBeLessThan(1000);
});

test(`${STREAMS} mutated transport streams are read in linear time, or rejected`, async () => {
  const random = seeded(20_261_126);
  const sources = [await transportStream(...H264), await transportStream(...HEVC)];
  const rejections = new Set<string>();
  let samples = 0;
  for (let run = 0; run < STREAMS; run++) {
    const source = sources[run % sources.length] as Buffer;
    const demuxer = new TsDemuxer({
      limits: DEFAULT_LIMITS,
      onConfig: () => {},
      onSample: () => samples++,
      onConvertible: () => {},
    });
    try {
      for (const payload of payloadsOf(source))
        demuxer.push(random.chance(0.2) ? mutated(payload, random, 1316) : Buffer.from(payload));
      demuxer.end();
    } catch (error) {
      if (!(error instanceof RejectedMedia)) throw error;
      rejections.add(error.message);
    }
  }
  expect(samples).toBeGreaterThan(STREAMS * 5);
  expect(rejections.size).toBeGreaterThan(1);
});

test.each<[string, Buffer]>([
  ["start codes", Buffer.from([0, 0, 1])],
  ["zeros", Buffer.of(0)],
  ["sync bytes", Buffer.of(0x47)],
  ["syncwords of audio", Buffer.of(0xff)],
])("endless %s take time that grows with their length only", (_, content) => {
  const video = new PidWriter(0x101);
  const audio = new PidWriter(AUDIO_PID);
  const fill = Buffer.alloc(60_000, content);
  const timeFor = (count: number) => {
    const demuxer = new TsDemuxer({
      limits: DEFAULT_LIMITS,
      onConfig: () => {},
      onSample: () => {},
      onConvertible: () => {},
    });
    demuxer.push(tables());
    return processorMs(() => {
      try {
        for (let index = 0; index < count; index++) {
          demuxer.push(video.write(pes(0xe0, index * 3600, fill, { isBounded: false })));
          demuxer.push(audio.write(pes(0xc0, index * 3600, fill)));
        }
      } catch (error) {
        if (!(error instanceof RejectedMedia)) throw error;
      }
    });
  };
  timeFor(20);
  const short = timeFor(20);
  const long = timeFor(200);
  expect(long).toBeLessThan(short * 40 + 200);
});
