import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { find } from "#src/lib/isobmff/boxes.ts";
import { emptyFolder } from "#test/support/folder.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import { AUDIO, RtmpClient, VIDEO } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { ffmpeg, ffprobe } from "#test/support/media/sources.ts";

const PACKET = { sequenceStart: 0, codedFrames: 1, sequenceEnd: 2, codedFramesX: 3, metadata: 4, modEx: 7 };
const KEYFRAME = 1;
const INTER_FRAME = 2;

/** ExVideoTagHeader of Enhanced RTMP 2. `modEx`: bytes between the first byte and the FourCC. */
function videoTag(fourCc: string, type: number, rest: Buffer, { isKeyframe = true, modEx = Buffer.alloc(0) } = {}) {
  const firstType = modEx.length > 0 ? PACKET.modEx : type;
  const first = 0x80 | ((isKeyframe ? KEYFRAME : INTER_FRAME) << 4) | firstType;
  return Buffer.concat([Buffer.from([first]), modEx, Buffer.from(fourCc), rest]);
}

const int24 = (value: number) => {
  const bytes = Buffer.alloc(3);
  bytes.writeIntBE(value, 0, 3);
  return bytes;
};

type Frame = { timestamp: number; compositionOffset: number; isKeyframe: boolean; data: Buffer };

/** Encodes a second of video, and returns the content of its configuration box and its samples. */
async function encoded(name: string, fourCc: string, box: string, ...codec: string[]) {
  const file = join(emptyFolder(), `${name}.mp4`);
  const source = [
    "-f",
    "lavfi",
    "-i",
    "testsrc=s=128x96:r=25:d=1",
    "-pix_fmt",
    "yuv420p",
    "-video_track_timescale",
    "1000",
  ];
  await ffmpeg(...source, ...codec, "-tag:v", fourCc, "-use_editlist", "0", file);
  const data = readFileSync(file);
  const stsd = find(data, ["moov", "trak", "mdia", "minf", "stbl", "stsd"]);
  const entry = stsd && find(data, [fourCc], { ...stsd, start: stsd.start + 8 });
  const configuration = entry && find(data, [box], { ...entry, start: entry.start + 78 });
  if (!configuration) throw new Error(`ffmpeg wrote no ${box}.`);
  const { packets } = JSON.parse(await ffprobe("-show_packets", "-of", "json", file)) as {
    packets: { pts: number; dts: number; size: string; pos: string; flags: string }[];
  };
  const base = packets[0]?.dts ?? 0;
  const frames = packets.map(
    ({ pts, dts, size, pos, flags }): Frame => ({
      timestamp: dts - base,
      compositionOffset: pts - dts,
      isKeyframe: flags.includes("K"),
      data: data.subarray(Number(pos), Number(pos) + Number(size)),
    }),
  );
  return { configuration: data.subarray(configuration.start, configuration.end), frames };
}

async function published() {
  const rtmp = await startRtmp();
  const client = await RtmpClient.publish(rtmp.port);
  return { rtmp, client, recorder: rtmp.recorders[0] as Recorder };
}

const X265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:bframes=2:pools=1"];
const AOM = ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime"];
const X264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2"];

test.each([
  ["hevc", "hvc1", "hvcC", X265],
  ["h264", "avc1", "avcC", X264],
  ["av1", "av01", "av1C", AOM],
] as const)("%s as %s: configuration and frames arrive unchanged", async (codec, fourCc, box, encoder) => {
  const { configuration, frames } = await encoded(codec, fourCc, box, ...encoder);
  const { client, recorder } = await published();
  client.media(VIDEO, 0, videoTag(fourCc, PACKET.metadata, Buffer.from("ignored")));
  client.media(VIDEO, 0, videoTag(fourCc, PACKET.sequenceStart, configuration));
  for (const { timestamp, compositionOffset, isKeyframe, data } of frames) {
    // Without a composition time, frames have the shorter form. AV1 never has one.
    const isShort = codec !== "av1" && compositionOffset === 0;
    const rest = codec === "av1" || isShort ? data : Buffer.concat([int24(compositionOffset), data]);
    const type = isShort ? PACKET.codedFramesX : PACKET.codedFrames;
    client.media(VIDEO, timestamp, videoTag(fourCc, type, rest, { isKeyframe }));
  }
  client.media(VIDEO, 1000, videoTag(fourCc, PACKET.sequenceEnd, Buffer.alloc(0)));
  await recorder.until(() => recorder.samples.length === frames.length);
  expect(recorder.configs).toEqual([{ kind: "video", codec, configuration }]);
  expect(recorder.samples).toEqual(frames.map((frame) => ({ kind: "video", ...frame })));
  expect(frames).toHaveLength(25);
  if (codec !== "av1") expect(frames.some(({ compositionOffset }) => compositionOffset > 0)).toBe(true);
});

test("AAC as mp4a", async () => {
  const { client, recorder } = await published();
  const tag = (type: number, ...bytes: number[]) =>
    Buffer.concat([Buffer.from([0x90 | type]), Buffer.from("mp4a"), Buffer.from(bytes)]);
  client.media(AUDIO, 0, tag(0, 0x12, 0x10));
  client.media(AUDIO, 23, tag(1, 1, 2, 3));
  await recorder.until(() => recorder.samples.length === 1);
  expect(recorder.configs).toEqual([{ kind: "audio", codec: "aac", configuration: Buffer.from([0x12, 0x10]) }]);
  const expected = {
    kind: "audio",
    timestamp: 23,
    compositionOffset: 0,
    isKeyframe: true,
    data: Buffer.from([1, 2, 3]),
  };
  expect(recorder.samples).toEqual([expected]);
});

const fourCc = (name: string, type: number) => Buffer.concat([Buffer.of(0x90 | type), Buffer.from(name)]);
test.each([
  ["Opus", fourCc("Opus", 1), "opus"],
  ["MP3 by its FourCC", fourCc(".mp3", 1), "mpeg"],
  ["AC-3", fourCc("ac-3", 1), "ac3"],
  ["Enhanced AC-3", fourCc("ec-3", 1), "ac3"],
  ["MP3 of FLV", Buffer.of(0x2f), "mpeg"],
  ["MP3 at 8 kHz of FLV", Buffer.of(0xee), "mpeg"],
])("%s is passed on to be converted", async (_, header, codec) => {
  const { client, recorder } = await published();
  const taken = recorder.takeConvertible();
  // What begins a sequence, and an empty message.
  if (header.length > 1) client.media(AUDIO, 0, Buffer.concat([fourCc("Opus", 0), Buffer.from("OpusHead")]));
  client.media(AUDIO, 10, header);
  client.media(AUDIO, 23, Buffer.concat([header, Buffer.of(1, 2, 3)]));
  await recorder.until(() => taken.length > 0);
  expect(taken).toEqual([{ codec, timestamp: 23, data: Buffer.of(1, 2, 3) }]);
  expect(recorder.samples).toEqual([]);
});

test("ModEx prefixes of both lengths are skipped, and composition times may be negative", async () => {
  const { client, recorder } = await published();
  const av1C = Buffer.from([0x81, 0, 0x0c, 0]);
  // A nanosecond offset of 3 bytes, then one of 300 bytes whose length has 16 bits; then the real packet type.
  const modEx = (type: number) =>
    Buffer.concat([
      Buffer.from([2, 0, 0, 9, PACKET.modEx]),
      Buffer.from([255, 1, 43]),
      Buffer.alloc(300),
      Buffer.from([type]),
    ]);
  client.media(VIDEO, 0, videoTag("av01", PACKET.sequenceStart, av1C, { modEx: modEx(PACKET.sequenceStart) }));
  client.media(VIDEO, 5, videoTag("av01", PACKET.codedFrames, Buffer.from([9]), { modEx: modEx(PACKET.codedFrames) }));
  client.media(VIDEO, 9, videoTag("hvc1", PACKET.codedFrames, Buffer.concat([int24(-40), Buffer.from([1])])));
  await recorder.until(() => recorder.samples.length === 2);
  expect(recorder.samples.map(({ compositionOffset, timestamp }) => [timestamp, compositionOffset])).toEqual([
    [5, 0],
    [9, -40],
  ]);
});

test.each([
  ["FLAC", AUDIO, Buffer.concat([Buffer.from([0x90]), Buffer.from("fLaC")]), "fLaC"],
  [
    "audio that nothing converts",
    AUDIO,
    Buffer.concat([Buffer.from([0x91]), Buffer.from("Opus"), Buffer.of(1)]),
    "Opus",
  ],
  ["Speex", AUDIO, Buffer.of(0xb0, 1), "Speex"],
  ["an unprintable FourCC", VIDEO, Buffer.from([0x90, 0, 10, 255, 65]), "???A"],
] as const)("%s is rejected", async (_, type, payload, text) => {
  const { client, recorder } = await published();
  client.media(type, 0, payload);
  expect((await client.status()).description).toContain(text);
  expect(await recorder.ended).toBe("stopped");
});
