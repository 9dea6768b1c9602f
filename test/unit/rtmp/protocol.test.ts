import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { amfObject, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import { atEnd } from "#test/support/folder.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import {
  AGGREGATE,
  AUDIO,
  chunk,
  command,
  handshakeBytes,
  media,
  message,
  pingRequest,
  publishBytes,
  RtmpClient,
  setChunkSize,
  VIDEO,
} from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";

/** An AudioSpecificConfig (AAC LC, 44.1 kHz, stereo) and packets that only their bytes distinguish. */
const AAC_CONFIG = Buffer.from([0xaf, 0, 0x12, 0x10]);
const packet = (...bytes: number[]) => Buffer.from([0xaf, 1, ...bytes]);

/** Publishes, and returns what the sink receives. */
async function published(target: Parameters<typeof RtmpClient.publish>[1] = {}) {
  const rtmp = await startRtmp();
  const client = await RtmpClient.publish(rtmp.port, target);
  const [recorder] = rtmp.recorders as [Recorder];
  return { rtmp, client, recorder };
}

const timesOf = ({ samples }: Recorder) => samples.map(({ timestamp }) => timestamp);

test("S2 repeats C1, and S1 selects the simple handshake", async () => {
  const rtmp = await startRtmp();
  const socket = connect(rtmp.port, "127.0.0.1");
  atEnd(() => socket.destroy());
  const c1 = randomBytes(1536);
  socket.write(Buffer.concat([Buffer.from([3]), c1]));
  let answer = Buffer.alloc(0);
  for await (const data of socket) {
    answer = Buffer.concat([answer, data as Buffer]);
    if (answer.length >= 1 + 2 * 1536) break;
  }
  expect(answer.length).toBe(1 + 2 * 1536);
  expect(answer.subarray(0, 9).toString("hex")).toBe("030000000000000000");
  const s2 = answer.subarray(1 + 1536);
  expect(s2.subarray(0, 4)).toEqual(c1.subarray(0, 4));
  expect(s2.subarray(8)).toEqual(c1.subarray(8));
});

test("responds to connect with its window, its bandwidth and the codecs of Enhanced RTMP", async () => {
  const rtmp = await startRtmp();
  const client = await RtmpClient.open(rtmp.port);
  client.write(handshakeBytes(), command("connect", 1, amfObject({ app: "live", fourCcList: ["hvc1", "av01"] })));
  const [, transaction, server, info] = await client.response("_result");
  expect(transaction).toBe(1);
  const codecs = ["avc1", "hvc1", "av01", "mp4a", "Opus", ".mp3", "ac-3", "ec-3"];
  expect((server as Map<string, unknown>).get("fourCcList")).toEqual(codecs);
  expect((info as Map<string, unknown>).get("code")).toBe("NetConnection.Connect.Success");
  expect((await client.next(5)).readUInt32BE()).toBe(2_500_000);
  expect((await client.next(6)).readUInt32BE()).toBe(2_500_000);
});

test("the query of the stream name has priority over those of app and tcUrl", async () => {
  const { rtmp } = await published({
    app: "/live/?key=app&a=1",
    tcUrl: "rtmp://h/live?key=url&b=2",
    name: "channel?key=name&key=second",
  });
  expect(rtmp.requests[0]).toMatchObject({ app: "live", name: "channel", encoder: "test/1.0" });
  expect(String(rtmp.requests[0]?.query)).toBe("key=name&key=second&a=1&b=2");
});

test("Publish.Start is sent only after the publish is authorized", async () => {
  const { promise: isAllowed, resolve: allow } = Promise.withResolvers<null>();
  const rtmp = await startRtmp({ authorize: () => isAllowed });
  const client = await RtmpClient.open(rtmp.port);
  // More than may arrive before a publish: it waits in the buffers of the operating system.
  const pending = Array.from({ length: 100 }, (_, time) =>
    media(AUDIO, time, Buffer.concat([packet(1), Buffer.alloc(10_000)])),
  );
  client.write(handshakeBytes(), publishBytes(), media(AUDIO, 0, AAC_CONFIG), ...pending);
  // The response to createStream precedes the publish.
  for (const _ of ["connect", "releaseStream", "FCPublish", "createStream"]) await client.response("_result");
  await expect.poll(() => rtmp.requests.length).toBe(1);
  const status = client.status();
  const first = await Promise.race([status, new Promise((resolve) => setImmediate(resolve, "nothing"))]);
  expect(first).toBe("nothing");
  allow(null);
  expect((await status).code).toBe("NetStream.Publish.Start");
  const [recorder] = rtmp.recorders as [Recorder];
  // What the publisher sent meanwhile is not lost.
  await recorder.until(() => recorder.samples.length === pending.length);
});

test("a publisher that sends media before it is refused receives the reason", async () => {
  const authorize = async () => ({ accepted: false, reason: "refused" }) as const;
  // The connection has to close without this timeout.
  const rtmp = await startRtmp({ authorize, limits: { closeTimeoutMs: 100_000 } });
  const client = await RtmpClient.open(rtmp.port);
  const many = Array.from({ length: 100 }, (_, time) => media(AUDIO, time, packet(...Buffer.alloc(10_000))));
  client.write(handshakeBytes(), publishBytes(), ...many);
  expect((await client.status()).code).toBe("NetStream.Publish.Denied");
  await client.closed;
  await expect.poll(() => rtmp.server.connections).toBe(0);
});

test("a publisher that disconnects during the authorization only receives its end", async () => {
  const { promise: isAllowed, resolve: allow } = Promise.withResolvers<null>();
  const rtmp = await startRtmp({ authorize: () => isAllowed, limits: { publishTimeoutMs: 1000 } });
  const client = await RtmpClient.open(rtmp.port);
  client.write(handshakeBytes(), publishBytes());
  await expect.poll(() => rtmp.requests.length).toBe(1);
  client.destroy();
  await expect.poll(() => rtmp.server.connections).toBe(0);
  allow(null);
  await expect.poll(() => rtmp.recorders[0]?.ends).toEqual(["disconnected"]);
  expect(rtmp.recorders[0]?.stream).toBeNull();
});

test("an authorization that fails refuses the publish", async () => {
  const rtmp = await startRtmp({ authorize: () => Promise.reject(new Error("no database")) });
  const client = await RtmpClient.open(rtmp.port);
  client.write(handshakeBytes(), publishBytes());
  expect((await client.status()).code).toBe("NetStream.Publish.Denied");
  expect(rtmp.log).toContainEqual(expect.objectContaining({ level: "error" }));
});

test("all header types, chunk stream ids and extended timestamps", async () => {
  const { client, recorder } = await published();
  client.media(AUDIO, 0, AAC_CONFIG);
  const type = AUDIO;
  const one = packet(1);
  const high = 0xffffff + 10;
  client.write(
    // Ids of one, two and three bytes.
    chunk(0, 10, { time: 1000, type }, one),
    chunk(1, 10, { time: 20, type }, one),
    chunk(2, 10, { time: 30 }, one),
    // A message of type 3 repeats the delta.
    chunk(3, 10, {}, one),
    chunk(0, 200, { time: 2000, type }, one),
    // After type 0 the delta is the timestamp.
    chunk(3, 200, {}, one),
    chunk(0, 5000, { time: high, type }, one),
    // Its low byte is that of 5000.
    chunk(0, 136, { time: 3, type }, one),
    chunk(1, 5000, { time: 0x1000000, type }, one),
    chunk(3, 5000, { time: 0x1000000 }, one),
    chunk(0, 5000, { time: 0xffffffff, type }, one),
    // 32 bits wrap.
    chunk(2, 5000, { time: 2 }, one),
  );
  await recorder.until(() => recorder.samples.length === 12);
  expect(timesOf(recorder)).toEqual([
    ...[1000, 1020, 1050, 1080],
    ...[2000, 4000],
    ...[high, 3, high + 0x1000000, high + 0x2000000, 0xffffffff, 1],
  ]);
});

test("messages in interleaved chunks, with repeated and omitted extended timestamps", async () => {
  const { client, recorder } = await published();
  client.media(AUDIO, 0, AAC_CONFIG);
  const long = packet(...Array.from({ length: 300 }, (_, index) => index % 251));
  const time = 0x2000000;
  const parts = [long.subarray(0, 128), long.subarray(128, 256), long.subarray(256)] as const;
  const first = (id: number) => chunk(0, id, { time, type: AUDIO, length: long.length }, parts[0]);
  client.write(
    ...[first(10), first(11)],
    ...[chunk(3, 11, {}, parts[1]), chunk(3, 10, { time }, parts[1])],
    ...[chunk(3, 10, { time }, parts[2]), chunk(3, 11, {}, parts[2])],
  );
  await recorder.until(() => recorder.samples.length === 2);
  for (const { data } of recorder.samples) expect(data).toEqual(long.subarray(2));
  expect(timesOf(recorder)).toEqual([time, time]);
});

test("every byte may arrive alone, and the chunk size may change at any time", async () => {
  const { client, recorder } = await published();
  const long = packet(...Array.from({ length: 70_000 }, (_, index) => index % 253));
  const bytes = Buffer.concat([
    media(AUDIO, 0, AAC_CONFIG),
    setChunkSize(1),
    media(AUDIO, 1, packet(1, 2, 3), 1),
    setChunkSize(0x7fffffff, 1),
    media(AUDIO, 2, long, long.length),
    setChunkSize(4096),
    media(AUDIO, 3, long, 4096),
  ]);
  for (const byte of bytes.subarray(0, 200)) client.write(Buffer.from([byte]));
  client.write(bytes.subarray(200));
  await recorder.until(() => recorder.samples.length === 3);
  expect(recorder.samples.map(({ data }) => data.length)).toEqual([3, 70_000, 70_000]);
  expect(recorder.samples[2]?.data).toEqual(long.subarray(2));
});

test("an aborted message is dropped", async () => {
  const { client, recorder } = await published();
  client.media(AUDIO, 0, AAC_CONFIG);
  client.write(
    chunk(0, 10, { type: AUDIO, length: 200 }, Buffer.alloc(128)),
    message({ type: 2, streamId: 0 }, Buffer.from([0, 0, 0, 10]), { chunkStream: 2 }),
    chunk(0, 10, { type: AUDIO, time: 7 }, packet(1)),
  );
  await recorder.until(() => recorder.samples.length > 0);
  expect(timesOf(recorder)).toEqual([7]);
});

test("an aggregate message is split; its times are relative to the first", async () => {
  const { client, recorder } = await published();
  const tag = (type: number, time: number, data: Buffer) => {
    const head = Buffer.alloc(11);
    head[0] = type;
    head.writeUIntBE(data.length, 1, 3);
    head.writeUIntBE(time & 0xffffff, 4, 3);
    head[7] = time >>> 24;
    return Buffer.concat([head, data, Buffer.alloc(4)]);
  };
  const start = 0x01fffff0;
  const parts = [tag(AUDIO, start, AAC_CONFIG), tag(AUDIO, start, packet(1)), tag(AUDIO, start + 40, packet(2))];
  client.media(AGGREGATE, 500, Buffer.concat(parts));
  await recorder.until(() => recorder.samples.length === 2);
  expect(timesOf(recorder)).toEqual([500, 540]);
});

test("commands and metadata as AMF 3 messages", async () => {
  const rtmp = await startRtmp();
  const client = await RtmpClient.open(rtmp.port);
  const amf3 = (type: number, values: Buffer) =>
    message({ type, streamId: 0 }, Buffer.concat([Buffer.from([0]), values]));
  client.write(
    handshakeBytes(),
    amf3(17, encodeAmf0("connect", 1, amfObject({ app: "live", objectEncoding: 3 }))),
    amf3(17, encodeAmf0("createStream", 2, null)),
    amf3(17, encodeAmf0("publish", 3, null, "name")),
    amf3(15, encodeAmf0("@setDataFrame", "onMetaData", amfObject({ width: 320, encoder: "x", nested: amfObject({}) }))),
    // Undecodable metadata is ignored.
    message({ type: 18 }, Buffer.from([2, 0, 99, 1])),
    media(AUDIO, 0, AAC_CONFIG),
  );
  await client.status();
  const [recorder] = rtmp.recorders as [Recorder];
  await recorder.until(() => recorder.configs.length === 1);
  expect(recorder.metadata).toEqual([{ width: 320, encoder: "x" }]);
});

test("answers pings and acknowledges each window", async () => {
  const { client } = await published();
  client.write(pingRequest(77));
  await client.next(4);
  expect((await client.next(4)).toString("hex")).toBe("00070000004d");
  const window = Buffer.from([0, 0, 0x80, 0]);
  client.write(message({ type: 5, streamId: 0 }, window, { chunkStream: 2 }));
  client.media(AUDIO, 0, packet(...Buffer.alloc(60_000)));
  expect((await client.next(3)).readUInt32BE()).toBeGreaterThan(0x8000);
});

test("a configuration is passed on when it changes, and samples after it", async () => {
  const { client, recorder } = await published();
  const other = Buffer.from([0xaf, 0, 0x11, 0x90]);
  for (const each of [packet(1), AAC_CONFIG, packet(2), AAC_CONFIG, packet(3), other, packet(4)])
    client.media(AUDIO, 0, each);
  await recorder.until(() => recorder.samples.length === 4);
  expect(recorder.samples.map(({ data }) => data[0])).toEqual([1, 2, 3, 4]);
  expect(recorder.configs.map(({ configuration }) => configuration.toString("hex"))).toEqual(["1210", "1190"]);
});

test.each(["FCUnpublish", "deleteStream", "closeStream"])("%s ends the stream as unpublished", async (name) => {
  const { client, recorder, rtmp } = await published();
  client.write(command(name, 0, null, 1));
  expect((await client.status()).code).toBe("NetStream.Unpublish.Success");
  expect(await recorder.ended).toBe("unpublished");
  await client.closed;
  await expect.poll(() => rtmp.server.connections).toBe(0);
  expect(recorder.ends).toEqual(["unpublished"]);
});

test("play is refused", async () => {
  const rtmp = await startRtmp();
  const client = await RtmpClient.open(rtmp.port);
  client.write(handshakeBytes(), command("connect", 1, amfObject({ app: "live" })), command("play", 0, null, "name"));
  expect(await client.status()).toMatchObject({ level: "error", code: "NetStream.Play.Failed" });
  await client.closed;
  expect(rtmp.requests).toEqual([]);
});

test("an exception of the sink ends its stream only", async () => {
  const { client, recorder, rtmp } = await published();
  const other = await RtmpClient.publish(rtmp.port);
  recorder.sink.onSample = () => {
    throw new Error("disk full");
  };
  for (const each of [client, other]) {
    each.media(AUDIO, 0, AAC_CONFIG);
    each.media(AUDIO, 0, packet(1));
  }
  expect(await recorder.ended).toBe("stopped");
  const [, second] = rtmp.recorders as [Recorder, Recorder];
  await second.until(() => second.samples.length === 1);
  expect(second.ends).toEqual([]);
  expect(rtmp.log).toContainEqual(expect.objectContaining({ level: "error" }));
});

test("close() stops all streams", async () => {
  const { client, recorder, rtmp } = await published();
  const isClosed = rtmp.server.close();
  expect(await recorder.ended).toBe("stopped");
  expect((await client.status()).description).toContain("shutting down");
  await isClosed;
  expect(rtmp.server.connections).toBe(0);
});

const VIDEO_CASES: [string, Buffer, string][] = [
  ["VP6", Buffer.from([0x14, 0, 0]), "VP6"],
  ["Enhanced RTMP with VP9", Buffer.concat([Buffer.from([0x90]), Buffer.from("vp09")]), "vp09"],
  ["NAL units with lengths of 2 bytes", Buffer.from("170000000001640028fde1000167", "hex"), "lengths of 4 bytes"],
];
test.each(VIDEO_CASES)("%s is rejected with a reason", async (_, payload, text) => {
  const { client, recorder } = await published();
  client.media(VIDEO, 0, payload);
  const { level, code, description } = await client.status();
  expect([level, code]).toEqual(["error", "NetStream.Publish.Rejected"]);
  expect(description).toContain(text);
  expect(await recorder.ended).toBe("stopped");
});
