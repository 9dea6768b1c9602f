import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { startPublisher } from "#test/support/live/ffmpeg-publisher.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import { type SrtTestServer, startSrt } from "#test/support/live/srt-recorder.ts";
import { ffmpeg, ffprobe } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lossyRelay } from "./srt-relay.ts";

const SECONDS = 4;
/** In real time: the sender of SRT drops what it cannot send at the rate of the stream. */
const source = (seconds = SECONDS) => [
  ...["-re", "-f", "lavfi", "-i", `testsrc=s=320x180:r=25:d=${seconds}`],
  ...["-re", "-f", "lavfi", "-i", `sine=d=${seconds}:r=48000`],
];
const AAC = ["-c:a", "aac"];
const H264 = "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 25 -pix_fmt yuv420p".split(" ");
const HEVC = "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=25:bframes=2 -pix_fmt yuv420p".split(
  " ",
);

/** ffmpeg waits at the end until everything has been acknowledged. */
const urlOf = ({ port }: Pick<SrtTestServer, "port">, options = "") =>
  `srt://127.0.0.1:${port}?streamid=publish:live/name:key=x&linger=5${options}`;

const md5 = (data: Buffer) => createHash("md5").update(data).digest("hex");

type Packet = { codec_type: string; pts: number; dts: number; flags: string; data_hash: string };

/** What ffprobe reads from a transport stream, converted to MP4 as a receiver does: in ticks of 90 kHz. */
async function probed(path: string) {
  const converted = `${path}.mp4`;
  const both = ["-map", "0", "-c", "copy", "-bsf:a", "aac_adtstoasc", "-copyts"];
  await ffmpeg("-i", path, ...both, "-video_track_timescale", "90000", converted);
  const shown = ["-show_packets", "-show_data_hash", "md5", "-of", "json"];
  const { packets } = JSON.parse(await ffprobe(...shown, converted)) as { packets: Packet[] };
  const of = (kind: string) => packets.filter(({ codec_type }) => codec_type === kind);
  return {
    video: of("video").map(({ pts, dts, flags }) => ({
      offset: Math.round((pts - dts) / 90),
      isKeyframe: flags.includes("K"),
    })),
    audio: of("audio").map(({ data_hash }) => data_hash.replace("MD5:", "")),
  };
}

const videoOf = ({ samples }: Recorder) => samples.filter(({ kind }) => kind === "video");
const audioOf = ({ samples }: Recorder) => samples.filter(({ kind }) => kind === "audio");

/** Every frame arrived once, in the order of the stream. */
function expectComplete(recorder: Recorder, frames = SECONDS * 25): void {
  const times = videoOf(recorder).map(({ timestamp }) => timestamp);
  expect(times).toHaveLength(frames);
  for (const [index, time] of times.slice(1).entries()) expect((time - (times[index] as number)) >>> 0).toBe(40);
}

/** Starts a publisher that sends for longer than a test takes. */
const publishInRealTime = (url: string, codecs = [...H264, ...AAC]) =>
  startPublisher([...source(60), ...codecs, "-f", "mpegts", url]);

test.each(
  rows(
    [
      ["h264", H264],
      ["hevc", HEVC],
    ] as const,
    1,
  ),
)("ffmpeg publishes %s and AAC: the samples are those of its file", async (codec, video) => {
  const srt = await startSrt();
  const file = join(emptyFolder(), "same.ts");
  const outputs = `[f=mpegts]${file}|[f=mpegts]${urlOf(srt)}`;
  await ffmpeg(...source(), "-map", "0", "-map", "1", ...video, ...AAC, "-f", "tee", outputs);
  const [recorder] = srt.recorders as [Recorder];
  expect(await recorder.ended).toBe("unpublished");
  const expected = await probed(file);
  expectComplete(recorder);
  expect(videoOf(recorder).map(({ compositionOffset }) => compositionOffset)).toEqual(
    expected.video.map(({ offset }) => offset),
  );
  expect(videoOf(recorder).map(({ isKeyframe }) => isKeyframe)).toEqual(
    expected.video.map(({ isKeyframe }) => isKeyframe),
  );
  expect(expected.video.some(({ offset }) => offset > 40)).toBe(true);
  expect(audioOf(recorder).map(({ data }) => md5(data))).toEqual(expected.audio);
  expect(recorder.configs.map(({ codec: name }) => name).toSorted()).toEqual(["aac", codec]);
  const [request] = srt.requests;
  expect(request).toMatchObject({ app: "live", name: "name", address: "127.0.0.1" });
  expect(request?.query.get("key")).toBe("x");
  expect(recorder.ends).toEqual(["unpublished"]);
});

test("with 5 % of the packets lost, repeated and reordered each, all frames arrive", async () => {
  const srt = await startSrt();
  const relay = await lossyRelay(srt.port);
  await ffmpeg(...source(8), ...H264, "-b:v", "2M", ...AAC, "-f", "mpegts", urlOf(relay, "&latency=1000000"));
  const [recorder] = srt.recorders as [Recorder];
  expect(await recorder.ended).toBe("unpublished");
  expect(relay.counts.passed).toBeGreaterThan(820);
  expect(Math.min(relay.counts.dropped, relay.counts.delayed, relay.counts.repeated)).toBeGreaterThan(20);
  expectComplete(recorder, 8 * 25);
  const times = audioOf(recorder).map(({ timestamp }) => timestamp);
  for (const [index, time] of times.slice(1).entries()) expect(time - (times[index] as number)).toBeCloseTo(21, -1);
  const ended = srt.log.find(({ message }) => message === "a publish has ended");
  expect(ended?.fields).toMatchObject({ lost: 0 });
  expect(ended?.fields.retransmitted).toBeGreaterThan(20);
});

nightly("audio alone", async () => {
  const srt = await startSrt();
  await ffmpeg("-re", "-f", "lavfi", "-i", "sine=d=2:r=48000", ...AAC, "-f", "mpegts", urlOf(srt));
  const [recorder] = srt.recorders as [Recorder];
  expect(await recorder.ended).toBe("unpublished");
  expect(recorder.configs).toEqual([{ kind: "audio", codec: "aac", configuration: Buffer.from([0x11, 0x88]) }]);
  expect(recorder.samples.length).toBeGreaterThanOrEqual((2 * 48_000) / 1024);
});

nightly("timestamps continue when their 33 bits wrap", async () => {
  const srt = await startSrt();
  // 2^33 / 90,000 = 95,443.7 s.
  const offset = ["-output_ts_offset", "95442"];
  await ffmpeg(...source(), ...H264, ...AAC, ...offset, "-f", "mpegts", urlOf(srt));
  const [recorder] = srt.recorders as [Recorder];
  await recorder.ended;
  expectComplete(recorder);
  const times = recorder.samples.map(({ timestamp }) => timestamp);
  expect(Math.max(...times)).toBeGreaterThan(95_444_000);
  const offsets = videoOf(recorder).map(({ compositionOffset }) => compositionOffset);
  expect(Math.max(...offsets)).toBeLessThanOrEqual(200);
  expect(Math.min(...offsets)).toBeGreaterThanOrEqual(0);
});

test.each([
  ["refused", "#!::r=live/name,m=publish,key=x"],
  ["taken", "publish:live/name:key=x"],
] as const)("ffmpeg fails when a publish is %s", async (reason, id) => {
  const srt = await startSrt({ authorize: async () => ({ accepted: false, reason }) });
  const publisher = publishInRealTime(`srt://127.0.0.1:${srt.port}`, [...H264, ...AAC, "-srt_streamid", id]);
  expect((await publisher.exit)[0]).not.toBe(0);
  expect(publisher.stderr()).toContain("Application-defined rejection reason");
  expect(srt.requests).toHaveLength(1);
  expect(srt.requests[0]).toMatchObject({ app: "live", name: "name" });
  expect(srt.requests[0]?.query.get("key")).toBe("x");
});

test.each(
  rows(
    [
      // The sender changes its key every 100 packets, and announces it 30 packets before.
      ["32", "&kmrefreshrate=100&kmpreannounce=30"],
      ["16", ""],
      ["24", ""],
    ],
    1,
  ),
)("with a passphrase and a key of %s bytes, all frames arrive", async (bytes, options) => {
  const passphrase = "correct horse battery";
  const srt = await startSrt({ passphrase });
  const relay = await lossyRelay(srt.port, { share: 0.02, packets: 400 });
  const encrypted = ["-passphrase", passphrase, "-pbkeylen", bytes];
  const url = urlOf(relay, `&latency=1000000${options}`);
  await ffmpeg(...source(), ...H264, "-b:v", "2M", ...AAC, "-f", "mpegts", ...encrypted, url);
  const [recorder] = srt.recorders as [Recorder];
  expect(await recorder.ended).toBe("unpublished");
  expectComplete(recorder);
  expect(relay.counts.passed).toBeGreaterThan(420);
  expect(relay.counts.dropped).toBeGreaterThan(5);
});

test.each([
  ["none where one is needed", "correct horse battery", "", "Password required or unexpected"],
  ["one where none is expected", undefined, "&passphrase=correct-horse", "Password required or unexpected"],
  ["a wrong one", "correct horse battery", "&passphrase=wrong-horse", "Incorrect passphrase"],
])("a passphrase is rejected: %s", async (_, passphrase, options, text) => {
  const srt = await startSrt(passphrase === undefined ? {} : { passphrase });
  const publisher = publishInRealTime(urlOf(srt, options));
  expect((await publisher.exit)[0]).not.toBe(0);
  expect(publisher.stderr()).toContain(text);
  expect(srt.requests).toEqual([]);
});

test("a codec that is not supported ends the publish, and the log has what to use", async () => {
  const srt = await startSrt();
  const publisher = publishInRealTime(urlOf(srt), ["-c:v", "mpeg2video", ...AAC]);
  const [code] = await publisher.exit;
  expect(code).not.toBe(0);
  const [recorder] = srt.recorders as [Recorder];
  expect(recorder.ends).toEqual(["stopped"]);
  const rejected = srt.log.find(({ message }) => message === "a stream was rejected");
  expect(rejected?.fields.reason).toBe("The video codec MPEG-2 is not supported over SRT. Use H.264 or HEVC.");
});

test("stop() ends a stream at once and the publisher fails", async () => {
  const srt = await startSrt();
  const publisher = publishInRealTime(urlOf(srt));
  await expect.poll(() => srt.recorders.length, { timeout: 30_000 }).toBe(1);
  const [recorder] = srt.recorders as [Recorder];
  await recorder.until(() => recorder.samples.length > 5);
  recorder.stream?.stop("Another publisher has taken over.");
  expect(recorder.ends).toEqual(["stopped"]);
  const { length } = recorder.samples;
  expect((await publisher.exit)[0]).not.toBe(0);
  expect(recorder.samples).toHaveLength(length);
  expect(srt.server.connections).toBe(0);
});

test("a publisher that is killed has disconnected", async () => {
  const srt = await startSrt({ limits: { peerTimeoutMs: 500 } });
  const publisher = publishInRealTime(urlOf(srt));
  await expect.poll(() => srt.recorders.length, { timeout: 30_000 }).toBe(1);
  const [recorder] = srt.recorders as [Recorder];
  await recorder.until(() => recorder.samples.length > 0);
  publisher.child.kill("SIGKILL");
  expect(await recorder.ended).toBe("disconnected");
  expect(srt.server.connections).toBe(0);
});
