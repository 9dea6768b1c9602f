import { once } from "node:events";
import { connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { amfObject, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import { atEnd } from "#test/support/folder.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import {
  AUDIO,
  chunk,
  command,
  handshakeBytes,
  media,
  message,
  publishBytes,
  RtmpClient,
  setChunkSize,
} from "#test/support/live/rtmp-client.ts";
import { startRtmp, type TestServer } from "#test/support/live/rtmp-recorder.ts";
import { selfSigned } from "#test/support/live/self-signed.ts";

const AAC_CONFIG = Buffer.from([0xaf, 0, 0x12, 0x10]);
const packet = (bytes: number) => Buffer.concat([Buffer.from([0xaf, 1]), Buffer.alloc(bytes, 1)]);

const reasonsOf = ({ log }: TestServer) =>
  log.map(({ message, fields }) => `${message}: ${fields.reason ?? ""}`).join("\n");

/** Sends bytes to a new server: the connection has to be closed, and nothing may be published. */
async function closesAfter(bytes: Buffer[], limits: Parameters<typeof startRtmp>[0] = {}): Promise<string> {
  const rtmp = await startRtmp(limits);
  const client = await RtmpClient.open(rtmp.port);
  client.write(...bytes);
  await client.closed;
  await expect.poll(() => rtmp.server.connections).toBe(0);
  expect(rtmp.recorders).toEqual([]);
  expect(rtmp.log.filter(({ level }) => level === "error")).toEqual([]);
  return reasonsOf(rtmp);
}

const connected = [handshakeBytes(), command("connect", 1, amfObject({ app: "live" }))];

test("a connection without a handshake is closed in time", async () => {
  expect(await closesAfter([], { limits: { publishTimeoutMs: 100 } })).toContain("does not publish in time");
});

test("a connection that does not publish is closed in time", async () => {
  expect(await closesAfter(connected, { limits: { publishTimeoutMs: 100 } })).toContain("does not publish in time");
});

test("a TLS handshake that does not begin is closed in time", async () => {
  await closesAfter([], { tls: await selfSigned(), limits: { publishTimeoutMs: 100 } });
});

test("a publish without media ends in time, and media restart the time", async () => {
  const rtmp = await startRtmp({ limits: { idleTimeoutMs: 1000 } });
  const client = await RtmpClient.publish(rtmp.port);
  const [recorder] = rtmp.recorders as [Recorder];
  const begin = performance.now();
  client.media(AUDIO, 0, AAC_CONFIG);
  const timer = setInterval(() => client.media(AUDIO, 0, packet(1)), 100);
  atEnd(() => clearInterval(timer));
  await recorder.until(() => recorder.samples.length === 15);
  clearInterval(timer);
  expect(recorder.ends).toEqual([]);
  expect(await recorder.ended).toBe("disconnected");
  expect(performance.now() - begin).toBeGreaterThan(2400);
  await client.closed;
});

test.each<[string, Buffer[], string]>([
  ["HTTP", [Buffer.from("GET / HTTP/1.1\r\n\r\n")], "does not speak RTMP"],
  ["a command before connect", [handshakeBytes(), command("createStream", 1, null)], "does not begin with connect"],
  ["a second connect", [...connected, command("connect", 2, amfObject({}))], "connect twice"],
  ["media before publish", [...connected, media(AUDIO, 0, AAC_CONFIG)], "before it publishes"],
  ["a command that is no string", [handshakeBytes(), message({ type: 20 }, encodeAmf0(1))], "no name"],
  ["an oversize message", [handshakeBytes(), chunk(0, 3, { type: 20, length: 4097 }, Buffer.alloc(128))], "4097 bytes"],
  ["a chunk size of 0", [handshakeBytes(), setChunkSize(0)], "chunk size 0"],
  ["a chunk size with the high bit", [handshakeBytes(), setChunkSize(0x80000001)], "chunk size 2147483649"],
  ["a continuation of nothing", [handshakeBytes(), chunk(3, 3, {}, Buffer.alloc(8))], "does not begin with a message"],
  [
    "a message inside another on one chunk stream",
    [handshakeBytes(), chunk(0, 3, { length: 200 }, Buffer.alloc(128)), chunk(0, 3, {}, Buffer.alloc(8))],
    "inside another",
  ],
  [
    "17 chunk streams",
    [handshakeBytes(), ...Array.from({ length: 17 }, (_, id) => chunk(0, 3 + id, { length: 200 }, Buffer.alloc(128)))],
    "more than 16 chunk streams",
  ],
  ["65 messages", [...connected, ...Array.from({ length: 64 }, () => command("x", 0, null))], "more than 64 messages"],
  [
    "endless control messages",
    [handshakeBytes(), ...Array.from({ length: 20_000 }, () => setChunkSize(128))],
    "262144 bytes",
  ],
  [
    "deep AMF",
    [
      handshakeBytes(),
      message(
        { type: 20 },
        Buffer.concat([encodeAmf0("connect", 1), ...Array(50).fill(Buffer.from([10, 0, 0, 0, 1]))]),
      ),
    ],
    "levels deep",
  ],
  [
    "257 AMF values",
    [handshakeBytes(), message({ type: 20 }, encodeAmf0("connect", 1, ...Array.from({ length: 255 }, () => null)))],
    "more than 256 values",
  ],
])("%s closes the connection", async (_, bytes, reason) => {
  expect(await closesAfter(bytes)).toContain(reason);
});

test("a publish without a name is refused", async () => {
  const rtmp = await startRtmp();
  const client = await RtmpClient.open(rtmp.port);
  client.write(handshakeBytes(), publishBytes({ name: "?key=x" }));
  expect((await client.status()).code).toBe("NetStream.Publish.Denied");
  expect(rtmp.requests).toEqual([]);
});

test("messages after publish are limited by type and in total", async () => {
  const limits = { mediaBytes: 100_000, dataBytes: 10_000, bufferedBytes: 250_000 };
  const rtmp = await startRtmp({ limits });
  const begin = (chunkStream: number, type: number, length: number) =>
    chunk(0, chunkStream, { type, length }, Buffer.alloc(128));
  const endings: [Buffer[], string][] = [
    [[begin(10, AUDIO, 100_001)], "100001 bytes"],
    [[begin(10, 18, 10_001)], "10001 bytes"],
    [[10, 11, 12, 13].map((id) => begin(id, AUDIO, 65_000)), "exceed 250000 bytes"],
  ];
  for (const [bytes, reason] of endings) {
    const client = await RtmpClient.publish(rtmp.port);
    client.write(...bytes);
    await client.closed;
    const recorder = rtmp.recorders.at(-1) as Recorder;
    expect(await recorder.ended).toBe("disconnected");
    expect(reasonsOf(rtmp)).toContain(reason);
  }
});

test("messages that are complete do not count as buffered", async () => {
  const rtmp = await startRtmp({ limits: { bufferedBytes: 250_000 } });
  const client = await RtmpClient.publish(rtmp.port);
  const [recorder] = rtmp.recorders as [Recorder];
  client.media(AUDIO, 0, AAC_CONFIG);
  for (let time = 0; time < 20; time++) client.media(AUDIO, time, packet(100_000));
  await recorder.until(() => recorder.samples.length === 20);
});

test("a bitrate above the limit ends the stream; an accepted publish may have its own", async () => {
  const rtmp = await startRtmp({ limits: { maxBitrate: 1_000_000, windowSeconds: 2 } });
  const client = await RtmpClient.publish(rtmp.port);
  client.media(AUDIO, 0, AAC_CONFIG);
  client.media(AUDIO, 0, packet(200_000));
  const [recorder] = rtmp.recorders as [Recorder];
  await recorder.until(() => recorder.samples.length === 1);
  client.media(AUDIO, 0, packet(60_000));
  const { code, description } = await client.status();
  expect(code).toBe("NetStream.Publish.Rejected");
  expect(description).toContain("1 Mbit/s");
  expect(await recorder.ended).toBe("stopped");
});

test("the bitrate of an accepted publish", async () => {
  const end = Promise.withResolvers<string>();
  const sink = { onConfig() {}, onSample() {}, onMetadata() {}, onEnd: end.resolve };
  const rtmp = await startRtmp({ authorize: async () => ({ accepted: true, sink, limits: { maxBitrate: 50_000 } }) });
  const client = await RtmpClient.publish(rtmp.port);
  client.media(AUDIO, 0, packet(70_000));
  expect((await client.status()).description).toContain("0.05 Mbit/s");
  expect(await end.promise).toBe("stopped");
});

test("a flood of small messages ends the stream", async () => {
  const rtmp = await startRtmp({ limits: { maxMessageRate: 100, windowSeconds: 2 } });
  const client = await RtmpClient.publish(rtmp.port);
  for (let count = 0; count < 300; count++) client.media(AUDIO, 0, packet(1));
  expect((await client.status()).description).toContain("100 messages per second");
});

test("publishers per address and in all are limited, and freed", async () => {
  const rtmp = await startRtmp({ limits: { connectionsPerAddress: 2 } });
  const clients = [await RtmpClient.publish(rtmp.port), await RtmpClient.publish(rtmp.port)];
  const third = await RtmpClient.open(rtmp.port);
  third.write(handshakeBytes(), publishBytes({ name: "third" }));
  expect((await third.status()).description).toContain("Too many publishers");
  await third.closed;
  expect(rtmp.recorders.length).toBe(2);
  clients[0]?.destroy();
  await expect.poll(() => rtmp.server.connections).toBe(1);
  await RtmpClient.publish(rtmp.port);

  const one = await startRtmp({ limits: { connections: 1 } });
  await RtmpClient.publish(one.port);
  const second = await RtmpClient.open(one.port);
  second.write(handshakeBytes(), publishBytes({ name: "second" }));
  expect((await second.status()).code).toBe("NetStream.Publish.Rejected");
  await second.closed;
  expect(one.log).toContainEqual(expect.objectContaining({ message: "a connection exceeds a limit" }));
});

test("a peer that does not read responses is disconnected", async () => {
  const rtmp = await startRtmp({ limits: { maxMessageRate: 1e9, maxBitrate: 1e12 } });
  const client = await RtmpClient.publish(rtmp.port);
  const [recorder] = rtmp.recorders as [Recorder];
  client.pause();
  const pings = Buffer.concat(
    Array.from({ length: 5000 }, () => message({ type: 4, streamId: 0 }, Buffer.from([0, 6, 0, 0, 0, 0]))),
  );
  const timer = setInterval(() => client.write(pings), 5);
  atEnd(() => clearInterval(timer));
  expect(await recorder.ended).toBe("disconnected");
});

test("listen() rejects for a port that is in use", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  atEnd(() => other.close());
  await once(other, "listening");
  const rtmp = await startRtmp();
  await rtmp.server.close();
  const { port } = other.address() as { port: number };
  await expect(rtmp.server.listen(port, "127.0.0.1")).rejects.toThrow("EADDRINUSE");
});

test("a connection that is reset during the handshake is forgotten", async () => {
  const rtmp = await startRtmp();
  const socket = connect(rtmp.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(handshakeBytes().subarray(0, 700));
  await expect.poll(() => rtmp.server.connections).toBe(1);
  socket.resetAndDestroy();
  await expect.poll(() => rtmp.server.connections).toBe(0);
});
