import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { connector } from "#live/simulcast/connect.ts";
import type { SimulcastReport, TargetReport } from "#live/simulcast/messages.ts";
import { Simulcast } from "#live/simulcast/simulcast.ts";
import type { LiveSample } from "#src/lib/codecs/samples.ts";
import { type AmfValue, amfObject } from "#src/lib/rtmp/amf0.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd } from "#test/support/folder.ts";
import { aac, messagesOf, picture, sound, x264 } from "#test/support/live/cmaf-publisher.ts";
import type { Message } from "#test/support/live/flv-reader.ts";
import { messagesOfMp4 } from "#test/support/live/mp4-messages.ts";
import type { LogLine } from "#test/support/live/recorder.ts";
import { command, handshakeBytes, message } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { fc } from "#test/support/property.ts";

/** What a stream sends to RTMP servers, and what it accepts from them. */

const KEY = "stage?key=secret-of-the-target";

let messages: Message[];
beforeAll(async () => {
  messages = await messagesOf(...picture(2), ...sound(2), ...x264(30), ...aac);
});

type Sent = { simulcast: Simulcast; reports: SimulcastReport[]; log: LogLine[]; target: () => TargetReport };

function streamTo(...urls: string[]): Sent {
  const [reports, log]: [SimulcastReport[], LogLine[]] = [[], []];
  const simulcast = new Simulcast({
    channel: { channelId: 1, tenantId: 1, channel: "stage" },
    connect: connector(["127.0.0.0/8"]),
    log: (level, text, fields) => void log.push({ level, message: text, fields }),
    report: (report) => void reports.push(report),
  });
  simulcast.setTargets(urls.map((url, index) => ({ id: index + 1, url, streamKey: KEY })));
  atEnd(() => simulcast.finish());
  const target = () => {
    simulcast.report();
    return reports.findLast(({ targets }) => targets)?.targets?.[0] as TargetReport;
  };
  return { simulcast, reports, log, target };
}

function feed(
  { simulcast }: Sent,
  what: readonly Message[],
  change: (sample: LiveSample) => Partial<LiveSample>,
): void {
  for (const { config, sample } of what)
    if (config) simulcast.config(config);
    else simulcast.sample({ ...sample, ...change(sample) });
}

const samplesIn = (what: readonly Message[]) => what.flatMap(({ sample }) => (sample ? [sample] : []));
const asIs = () => ({});

test("a target receives the publish, metadata, configurations and all samples, at their distances", async () => {
  const { port, recorders, requests } = await startRtmp();
  const sent = streamTo(`rtmp://127.0.0.1:${port}/live`);
  // The source's timestamps wrap in the middle.
  feed(sent, messages, ({ timestamp }) => ({ timestamp: (timestamp + 2 ** 32 - 1000) >>> 0 }));
  await until("it has started", () => sent.target().status === "live");
  await sent.simulcast.finish();
  const [recorder] = recorders as [(typeof recorders)[0]];
  expect(await recorder.ended).toBe("unpublished");
  expect(requests).toMatchObject([{ app: "live", name: "stage" }]);
  expect(requests[0]?.query.get("key")).toBe("secret-of-the-target");
  expect(recorder.metadata).toEqual([
    expect.objectContaining({ width: 320, height: 180, videocodecid: 7, audiocodecid: 10, audiosamplerate: 48_000 }),
  ]);
  expect(recorder.configs).toEqual(messages.flatMap(({ config }) => (config ? [config] : [])));
  const first = samplesIn(messages).find(({ kind }) => kind === "video")?.timestamp as number;
  const expected = samplesIn(messages).slice(samplesIn(messages).findIndex(({ kind }) => kind === "video"));
  expect(recorder.samples).toEqual(expected.map((each) => ({ ...each, timestamp: each.timestamp - first })));
  expect(sent.reports.at(-1)).toMatchObject({ sentBytes: expect.any(Number) });
  const total = sent.reports.reduce((sum, { sentBytes }) => sum + sentBytes, 0);
  expect(total).toBeGreaterThan(expected.reduce((sum, { data }) => sum + data.length, 0));
});

test.each([
  ["hevc", ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:bframes=2:pools=1"]],
  ["av1", ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime"]],
] as const)("%s is sent with Enhanced RTMP", async (codec, encoder) => {
  const { port, recorders } = await startRtmp();
  const sent = streamTo(`rtmp://127.0.0.1:${port}/live`);
  const source = await messagesOfMp4(codec, ...picture(1), ...encoder);
  feed(sent, source, asIs);
  await until("it has started", () => sent.target().status === "live");
  await sent.simulcast.finish();
  expect(await recorders[0]?.ended).toBe("unpublished");
  expect(recorders[0]?.configs).toEqual(source.flatMap(({ config }) => (config ? [config] : [])));
  const [first] = samplesIn(source);
  const expected = samplesIn(source).map((each) => ({ ...each, timestamp: each.timestamp - (first?.timestamp ?? 0) }));
  expect(recorders[0]?.samples).toEqual(expected);
});

test("a stream of days has timestamps beyond 24 bits, and jumps of the source do not reach the target", async () => {
  const { port, recorders } = await startRtmp({ limits: { maxMessageRate: 1e6 } });
  const sent = streamTo(`rtmp://127.0.0.1:${port}/live`);
  feed(sent, messages, asIs);
  await until("it has started", () => recorders.length === 1);
  const frames = samplesIn(messages).filter(({ kind }) => kind === "video");
  // Five seconds from frame to frame: ten hours.
  for (let index = 0; index < 7200; index++)
    sent.simulcast.sample({ ...(frames[index % frames.length] as LiveSample), timestamp: 5000 * index });
  // A publisher that comes back begins at 0.
  sent.simulcast.resume();
  feed(sent, messages, asIs);
  await sent.simulcast.finish();
  const [recorder] = recorders as [(typeof recorders)[0]];
  await recorder.ended;
  const times = recorder.samples.filter(({ kind }) => kind === "video").map(({ timestamp }) => timestamp);
  expect(times).toHaveLength(2 * frames.length + 7200);
  expect(times.every((time, index) => index === 0 || time >= (times[index - 1] as number))).toBe(true);
  expect(times.at(-1)).toBeGreaterThan(2 ** 24);
  expect(Math.max(...times.map((time, index) => time - (times[index - 1] ?? time)))).toBe(5000);
});

describe("a server that", () => {
  const accepted = amfObject({ level: "status", code: "NetConnection.Connect.Success" });
  const failure = (description: string) => amfObject({ level: "error", code: "NetStream.Publish.Denied", description });
  const connected = command("_result", 1, null, accepted);
  const answers: [string, (socket: Socket) => void, string | RegExp][] = [
    ["speaks HTTP", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), "The server does not speak RTMP."],
    ["closes the connection", (socket) => socket.end(), /^The server closed the connection before it accepted/],
    ["resets it", (socket) => socket.resetAndDestroy(), /^The connection failed \(E\w+\)\.$|before it accepted/],
    ["sends noise", (socket) => socket.write(Buffer.concat([handshakeBytes(), Buffer.alloc(4000, 0xc1)])), /./],
    [
      "never stops",
      (socket) => {
        socket.write(handshakeBytes());
        const pings = Buffer.concat(
          Array.from({ length: 5000 }, () => message({ type: 4, streamId: 0 }, Buffer.alloc(6, 6))),
        );
        const more = () => socket.write(pings, () => socket.writable && more());
        more();
      },
      "The server sends too much.",
    ],
    [
      "announces a large message",
      (socket) =>
        socket.write(Buffer.concat([handshakeBytes(), Buffer.from([3, 0, 0, 0, 255, 255, 255, 20, 0, 0, 0, 0])])),
      /has 16777215 bytes; the limit is/,
    ],
    [
      "refuses the connection",
      (socket) => socket.write(Buffer.concat([handshakeBytes(), command("_error", 1, null, failure("No."))])),
      "The server says: No.",
    ],
    [
      "repeats the stream key",
      (socket) =>
        socket.write(
          Buffer.concat([
            handshakeBytes(),
            connected,
            command("_result", 4, null, 1),
            command("onStatus", 0, null, failure(`Bad\u0000\n\u001b[31m key ${KEY}${"x".repeat(5000)}`)),
          ]),
        ),
      /^The server says: Bad +\[31m key …x{100,200}$/,
    ],
    [
      "repeats the stream key until its message is cut",
      (socket) =>
        socket.write(
          Buffer.concat([
            handshakeBytes(),
            connected,
            command("_result", 4, null, 1),
            command("onStatus", 0, null, failure(KEY.repeat(150))),
          ]),
        ),
      /^The server says: …+$/,
    ],
    ...[Number.NaN, -1, 2 ** 40, "1", null].map((id): [string, (socket: Socket) => void, string] => [
      `creates the stream ${id}`,
      (socket) =>
        socket.write(Buffer.concat([handshakeBytes(), connected, command("_result", 4, null, id as AmfValue)])),
      "The server creates no stream.",
    ]),
  ];

  test.each(answers)("%s is reported, and affects nothing else", async (_, answer, reason) => {
    const hostile = createServer((socket) => {
      socket.on("error", () => {}).on("data", () => {});
      atEnd(() => socket.destroy());
      answer(socket);
    }).listen(0, "127.0.0.1");
    await once(hostile, "listening");
    atEnd(() => void hostile.close());
    const good = await startRtmp();
    const { port } = hostile.address() as AddressInfo;
    const sent = streamTo(`rtmp://127.0.0.1:${port}/live`, `rtmp://127.0.0.1:${good.port}/live`);
    feed(sent, messages, asIs);
    await until("it has failed", () => sent.target().status === "failed");
    const { error } = sent.target();
    if (typeof reason === "string") expect(error).toBe(reason);
    else expect(error).toMatch(reason);
    expect(JSON.stringify([sent.reports, sent.log])).not.toContain(KEY);
    const other = () => sent.reports.at(-1)?.targets?.[1]?.status;
    await until("the other one has started", () => sent.target() && other() === "live");
    await sent.simulcast.finish();
    const videos = (all: LiveSample[]) => all.filter(({ kind }) => kind === "video").length;
    expect(await good.recorders[0]?.ended).toBe("unpublished");
    expect(videos(good.recorders[0]?.samples ?? [])).toBe(videos(samplesIn(messages)));
  });

  test("sends random bytes after the handshake is disconnected at the latest when it sends too much", async () => {
    for (const bytes of fc.sample(fc.uint8Array({ minLength: 1, maxLength: 3000 }), 50)) {
      const hostile = createServer((socket) => {
        socket.on("error", () => {}).on("data", () => {});
        atEnd(() => socket.destroy());
        socket.end(Buffer.concat([handshakeBytes(), bytes]));
      }).listen(0, "127.0.0.1");
      await once(hostile, "listening");
      const sent = streamTo(`rtmp://127.0.0.1:${(hostile.address() as AddressInfo).port}/live`);
      feed(sent, messages, asIs);
      await until("it has failed", () => sent.target().status === "failed");
      hostile.close();
      await sent.simulcast.finish();
    }
  });
});
