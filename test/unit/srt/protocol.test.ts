import { createSocket } from "node:dgram";
import { once } from "node:events";
import { expect, test } from "vitest";
import { atEnd } from "#test/support/folder.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import {
  control,
  cookieOf,
  data,
  extension,
  type HandshakeFields,
  handshake,
  handshakeTypeOf,
  request,
  SrtClient,
  socketIdOf,
  streamId,
  text,
  typeOf,
} from "#test/support/live/srt-client.ts";
import { startSrt } from "#test/support/live/srt-recorder.ts";
import {
  AUDIO_PID,
  AUDIO_STREAM,
  adts,
  PidWriter,
  pes,
  type StreamEntry,
  tables,
} from "#test/support/live/ts-packets.ts";

const ACK = 2;
const NAK = 3;
const KEEP_ALIVE = 1;
const SHUTDOWN = 5;
const ACKACK = 6;
const DROP = 7;
const FIRST = 1000;
const AUDIO_ONLY: StreamEntry[] = [[0x0f, AUDIO_PID]];

/** Payloads with one audio frame each: the first has the tables too. */
function payloads(count: number): Buffer[] {
  const audio = new PidWriter(AUDIO_PID);
  return Array.from({ length: count }, (_, index) => {
    const frame = audio.write(pes(AUDIO_STREAM, index * 1920, adts(Buffer.alloc(20, index + 1))));
    return index === 0 ? Buffer.concat([tables(AUDIO_ONLY), frame]) : frame;
  });
}

const framesOf = ({ samples }: Recorder) => samples.map((sample) => sample.data[0]);

test("handshake: the answers, and that none is larger than its request", async () => {
  const srt = await startSrt();
  const client = await SrtClient.open(srt.port);
  const induction = handshake({ version: 4, extensionField: 2, type: 1, sequence: 4711, mtu: 1400 });
  client.send(induction);
  const first = await client.next();
  expect(first.length).toBe(induction.length);
  // Version 5, the magic number, the sequence number and MTU of the caller, and its type.
  expect(first.subarray(16, 32).toString("hex")).toBe("00000005" + "00004a17" + "00001267" + "00000578");
  expect(handshakeTypeOf(first)).toBe(1);
  expect(first.readUInt32BE(12)).toBe(77);
  // The address of the caller, in the byte order of words.
  expect(first.subarray(48, 52).toString("hex")).toBe("0100007f");
  const cookie = cookieOf(first);
  expect(cookie).not.toBe(0);

  const conclusion = handshake({ cookie, sequence: 4711 }, request(800), streamId());
  client.send(conclusion);
  const second = await client.next();
  expect(second.length).toBeLessThanOrEqual(conclusion.length);
  expect(handshakeTypeOf(second)).toBe(0xffffffff);
  expect(socketIdOf(second)).not.toBe(0);
  // HSRSP of three words: version, flags, and both latencies, the larger of both sides.
  expect(second.subarray(64).toString("hex")).toBe("00020003" + "00010500" + "0000003f" + "03200320");
  // A repeated conclusion has the same answer and begins nothing.
  client.send(conclusion);
  expect((await client.next((packet) => typeOf(packet) === 0)).equals(second)).toBe(true);
  // A short one has none.
  client.send(control(0, socketIdOf(second)), handshake({ cookie }));
  await client.cookie();
  expect(client.received.filter((packet) => typeOf(packet) === 0)).toEqual([]);
  expect(srt.requests).toHaveLength(1);
  expect(srt.server.connections).toBe(1);
});

test("without a cookie of its own a caller gets no answer, and nothing is kept", async () => {
  const srt = await startSrt();
  const client = await SrtClient.open(srt.port);
  const other = await SrtClient.open(srt.port);
  const foreign = await other.cookie();
  for (const cookie of [0, 1, foreign, 0xffffffff]) client.send(handshake({ cookie }, request(), streamId()));
  client.send(Buffer.alloc(0), Buffer.alloc(15), control(0, 0), handshake({ type: 0 }), data(0, 5, Buffer.alloc(9)));
  client.send(control(SHUTDOWN, 0), control(ACK, 5), Buffer.alloc(1473, 0x80));
  // The answer that follows is the first.
  const cookie = await client.cookie();
  expect(client.received).toEqual([]);
  expect(srt.server.connections).toBe(0);
  expect(srt.requests).toEqual([]);
  expect(handshakeTypeOf(await client.conclude(cookie, request(), streamId()))).toBe(0xffffffff);
});

test.each<[string, HandshakeFields, Buffer[], number]>([
  ["handshake version 4", { version: 4 }, [request(), streamId()], 1008],
  ["no handshake extension", {}, [streamId()], 1008],
  ["encryption", { encryption: 2 }, [request(), streamId()], 1011],
  ["a key", {}, [request(), extension(3, Buffer.alloc(72)), streamId()], 1011],
  ["stream mode", {}, [request(120, 0xff), streamId()], 1012],
  ["congestion control of files", {}, [request(), streamId(), text(6, "file")], 1013],
  ["a packet filter", {}, [request(), streamId(), text(7, "fec,cols:10")], 1014],
  ["a group", {}, [request(), streamId(), extension(8, Buffer.alloc(8))], 1015],
  ["a small MTU", { mtu: 200 }, [request(), streamId()], 1004],
  ["a truncated extension", {}, [request(), Buffer.from([0, 5, 0, 9])], 1004],
  ["a short extension", {}, [extension(1, Buffer.alloc(8)), streamId()], 1004],
  ["a stream id of 516 bytes", {}, [request(), streamId(`publish:live/${"x".repeat(503)}`)], 1004],
  ["no stream id", {}, [request()], 2400],
  ["a reader", {}, [request(), streamId("read:live/name")], 2405],
])("rejects %s with its reason", async (_, fields, extensions, type) => {
  const srt = await startSrt();
  const client = await SrtClient.open(srt.port);
  const conclusion = handshake({ ...fields, cookie: await client.cookie() }, ...extensions);
  client.send(conclusion);
  const answer = await client.next();
  expect(handshakeTypeOf(answer)).toBe(type);
  expect(answer.length).toBeLessThanOrEqual(conclusion.length);
  expect(srt.requests).toEqual([]);
  expect(srt.server.connections).toBe(0);
});

test.each([
  ["refused", 2401],
  ["taken", 2409],
  ["limit", 2402],
  ["throttled", 2403],
  ["unavailable", 2503],
] as const)(
  "a publish that is %s has a reason of its own, also when the handshake is repeated",
  async (reason, type) => {
    const srt = await startSrt({
      authorize: async () => ({ accepted: false, reason }),
      limits: { closeTimeoutMs: 300 },
    });
    const client = await SrtClient.open(srt.port);
    const cookie = await client.cookie();
    for (let count = 0; count < 3; count++)
      expect(handshakeTypeOf(await client.conclude(cookie, request(), streamId()))).toBe(type);
    expect(srt.requests).toHaveLength(1);
    await expect.poll(() => srt.server.connections).toBe(0);
  },
);

test("packets are acknowledged, lost ones requested, and all frames arrive in order", async () => {
  const srt = await startSrt();
  const { client, destination } = await SrtClient.publish(srt.port);
  const [recorder] = srt.recorders as [Recorder];
  const all = payloads(10);
  const send = (index: number, flags?: number) =>
    client.send(data(destination, FIRST + index, all[index] as Buffer, { timestamp: index * 20_000, flags }));
  send(0);
  send(1);
  const ack = await client.next((packet) => typeOf(packet) === ACK && packet.readUInt32BE(16) === FIRST + 2);
  expect(ack.length).toBe(16 + 28);
  expect(ack.readUInt32BE(12)).toBe(77);
  client.send(control(ACKACK, destination, Buffer.alloc(0), ack.readUInt32BE(4)));
  // 2 and 4 to 6 are missing.
  for (const index of [3, 7, 9, 8]) send(index);
  const nak = await client.next(
    (packet) => typeOf(packet) === NAK && packet.length === 28 && packet.readUInt32BE(24) === FIRST + 6,
  );
  expect(nak.subarray(16).toString("hex")).toBe("000003ea" + "800003ec000003ee");
  expect(framesOf(recorder)).toEqual([1, 2]);
  // Periodic reports repeat what is still missing.
  send(2, 0xc4);
  await client.next((packet) => typeOf(packet) === NAK && packet.subarray(16).toString("hex") === "800003ec000003ee");
  expect(framesOf(recorder)).toEqual([1, 2, 3, 4]);
  for (const index of [6, 5, 4]) send(index, 0xc4);
  await recorder.until(() => recorder.samples.length === 10);
  expect(framesOf(recorder)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await client.next((packet) => typeOf(packet) === ACK && packet.readUInt32BE(16) === FIRST + 10);
  client.send(control(SHUTDOWN, destination));
  expect(await recorder.ended).toBe("unpublished");
  const ended = srt.log.find(({ message }) => message === "a publish has ended");
  expect(ended?.fields).toMatchObject({ end: "unpublished", lost: 0, retransmitted: 4 });
});

test("a packet that does not arrive is given up after the latency, and sooner when the sender says so", async () => {
  const srt = await startSrt({ limits: { minLatencyMs: 200 } });
  const { client, destination } = await SrtClient.publish(srt.port);
  const [recorder] = srt.recorders as [Recorder];
  const all = payloads(7);
  const send = (index: number) =>
    client.send(data(destination, FIRST + index, all[index] as Buffer, { timestamp: index * 20_000 }));
  send(0);
  await recorder.until(() => recorder.samples.length === 1);
  const since = performance.now();
  send(2);
  await recorder.until(() => recorder.samples.length === 2);
  expect(performance.now() - since).toBeGreaterThan(150);
  expect(framesOf(recorder)).toEqual([1, 3]);
  // It comes too late.
  send(1);
  send(4);
  const range = Buffer.alloc(8);
  range.writeUInt32BE(FIRST + 3);
  range.writeUInt32BE(FIRST + 3, 4);
  client.send(control(DROP, destination, range));
  send(5);
  await recorder.until(() => recorder.samples.length === 4);
  expect(framesOf(recorder)).toEqual([1, 3, 5, 6]);
  client.send(control(DROP, destination, Buffer.alloc(4)));
  client.send(control(SHUTDOWN, destination));
  await recorder.ended;
  expect(srt.log.find(({ message }) => message === "a publish has ended")?.fields).toMatchObject({ lost: 2 });
});

test("many packets at once have light acknowledgements between full ones", async () => {
  const srt = await startSrt();
  const { client, destination } = await SrtClient.publish(srt.port);
  const all = payloads(200);
  client.send(...all.map((payload, index) => data(destination, FIRST + index, payload)));
  const light = await client.next((packet) => typeOf(packet) === ACK && packet.length === 20);
  expect(light.readUInt32BE(4)).toBe(0);
  await client.next(
    (packet) => typeOf(packet) === ACK && packet.length === 44 && packet.readUInt32BE(16) === FIRST + 200,
  );
});

test("packets from another address with the number of a connection are ignored", async () => {
  const srt = await startSrt();
  const { client, destination } = await SrtClient.publish(srt.port);
  const [recorder] = srt.recorders as [Recorder];
  const thief = await SrtClient.open(srt.port);
  const [first, second] = payloads(2) as [Buffer, Buffer];
  thief.send(data(destination, FIRST, Buffer.alloc(188, 0x47)), control(SHUTDOWN, destination));
  thief.send(control(0, destination));
  // Its datagrams have been handled when it has an answer.
  await thief.cookie();
  expect(thief.received).toEqual([]);
  client.send(data(destination, FIRST, first), data(destination, FIRST + 1, second));
  await recorder.until(() => recorder.samples.length === 2);
  expect(recorder.ends).toEqual([]);
});

test("malformed key material is rejected as a wrong passphrase, and nothing is authorized", async () => {
  const srt = await startSrt({ passphrase: "correct horse battery" });
  const valid = Buffer.concat([Buffer.from("12202901000000000200020000000404", "hex"), Buffer.alloc(40, 7)]);
  const messages = [
    valid,
    Buffer.alloc(56),
    valid.subarray(0, 32),
    Buffer.concat([valid, Buffer.alloc(4)]),
    Buffer.alloc(4),
  ];
  for (const message of messages) {
    const client = await SrtClient.open(srt.port);
    const answer = await client.conclude(await client.cookie(), request(), extension(3, message), streamId());
    expect(handshakeTypeOf(answer)).toBe(1010);
  }
  expect(srt.requests).toEqual([]);
});

test("encrypted packets, a stream that is none, and an exceeded bitrate end the stream with a shutdown", async () => {
  const cases: [object, (destination: number) => Buffer[], string][] = [
    [{}, (to) => [data(to, FIRST, Buffer.alloc(188), { flags: 0xd0 })], "Either all packets are encrypted, or none"],
    [
      { garbageBytes: 5000 },
      (to) => Array.from({ length: 8 }, (_, index) => data(to, FIRST + index, Buffer.alloc(1316, 1))),
      "not MPEG-TS",
    ],
    [
      { maxBitrate: 100_000, windowSeconds: 1 },
      (to) => Array.from({ length: 30 }, () => data(to, FIRST, Buffer.alloc(1316, 0x47))),
      "exceeds 0.1 Mbit/s",
    ],
    [
      { maxMessageRate: 100, windowSeconds: 1 },
      (to) => Array.from({ length: 200 }, () => control(KEEP_ALIVE, to)),
      "more than 100 messages per second",
    ],
  ];
  for (const [limits, packets, reason] of cases) {
    const srt = await startSrt({ limits });
    const { client, destination } = await SrtClient.publish(srt.port);
    const [recorder] = srt.recorders as [Recorder];
    client.send(...packets(destination));
    expect(await recorder.ended).toBe("stopped");
    await client.next((packet) => typeOf(packet) === SHUTDOWN);
    expect(srt.server.connections).toBe(0);
    expect(srt.log.map(({ fields }) => fields.reason).join("\n")).toContain(reason);
    expect(srt.log.filter(({ level }) => level === "error")).toEqual([]);
  }
});

test("a silent publisher and one without media are disconnected, and kept alive until then", async () => {
  const srt = await startSrt({ limits: { peerTimeoutMs: 1500, idleTimeoutMs: 2500 } });
  const silent = await SrtClient.publish(srt.port);
  const begin = performance.now();
  await silent.client.next((packet) => typeOf(packet) === KEEP_ALIVE);
  const [recorder] = srt.recorders as [Recorder];
  expect(await recorder.ended).toBe("disconnected");
  expect(performance.now() - begin).toBeGreaterThan(1300);
  const idle = await SrtClient.publish(srt.port);
  const timer = setInterval(() => idle.client.send(control(KEEP_ALIVE, idle.destination)), 200);
  atEnd(() => clearInterval(timer));
  expect(await srt.recorders[1]?.ended).toBe("disconnected");
  expect(srt.log.map(({ message }) => message)).toContain("a publisher sends no audio or video");
});

test("a shutdown after silence is a broken connection, which may be continued", async () => {
  const srt = await startSrt({ limits: { silenceMs: 300 } });
  const { client, destination } = await SrtClient.publish(srt.port);
  const since = performance.now();
  client.send(data(destination, FIRST, payloads(1)[0] as Buffer));
  const isLater = (packet: Buffer) => typeOf(packet) === ACK && performance.now() - since > 400;
  await client.next(isLater);
  client.send(control(SHUTDOWN, destination));
  expect(await srt.recorders[0]?.ended).toBe("disconnected");
});

test("connections and handshakes of an address are limited, and connections freed", async () => {
  const srt = await startSrt({
    limits: { connectionsPerAddress: 2, handshakesPerAddress: 5, moreHandshakesPerSecond: 0 },
  });
  const first = await SrtClient.publish(srt.port);
  await SrtClient.publish(srt.port);
  const third = await SrtClient.open(srt.port);
  expect(handshakeTypeOf(await third.conclude(await third.cookie(), request(), streamId()))).toBe(1003);
  expect(srt.recorders.length).toBe(2);
  first.client.send(control(SHUTDOWN, first.destination));
  await expect.poll(() => srt.server.connections).toBe(1);
  expect(handshakeTypeOf((await SrtClient.publish(srt.port)).answer)).toBe(0xffffffff);
  const late = await SrtClient.open(srt.port);
  expect(handshakeTypeOf(await late.conclude(await late.cookie(), request(), streamId()))).toBe(1003);
  // The sixth handshake of this minute has no answer.
  late.send(handshake({ cookie: await late.cookie(), socketId: 78 }, request(), streamId()));
  await late.cookie();
  expect(late.received).toEqual([]);
});

test("first handshakes are limited in all", async () => {
  const srt = await startSrt({ limits: { inductionsPerSecond: 10 } });
  const client = await SrtClient.open(srt.port);
  const induction = handshake({ version: 4, extensionField: 2, type: 1 });
  client.send(...Array.from({ length: 100 }, () => induction));
  // A second later there are answers again.
  await expect.poll(() => client.received.length, { timeout: 30_000 }).toBe(10);
  await expect
    .poll(
      () => {
        client.send(induction);
        return client.received.length;
      },
      { timeout: 30_000, interval: 50 },
    )
    .toBeGreaterThan(10);
});

test("a conclusion whose authorization takes too long is forgotten", async () => {
  const decision = Promise.withResolvers<null>();
  const srt = await startSrt({ limits: { publishTimeoutMs: 100 }, authorize: () => decision.promise });
  const client = await SrtClient.open(srt.port);
  client.send(handshake({ cookie: await client.cookie() }, request(), streamId()));
  await expect.poll(() => srt.server.connections).toBe(1);
  await expect.poll(() => srt.server.connections).toBe(0);
  decision.resolve(null);
  await expect.poll(() => srt.recorders[0]?.ends).toEqual(["disconnected"]);
});

test("close() ends streams with a shutdown, and listen() rejects for a port in use", async () => {
  const other = createSocket("udp4").bind(0, "127.0.0.1");
  atEnd(() => other.close());
  await once(other, "listening");
  const srt = await startSrt();
  const { client } = await SrtClient.publish(srt.port);
  await srt.server.close();
  await client.next((packet) => typeOf(packet) === SHUTDOWN);
  expect(srt.recorders[0]?.ends).toEqual(["stopped"]);
  await expect(srt.server.listen(other.address().port, "127.0.0.1")).rejects.toThrow("EADDRINUSE");
});
