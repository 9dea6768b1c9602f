import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { startPublisher } from "#test/support/live/ffmpeg-publisher.ts";
import type { Recorder } from "#test/support/live/recorder.ts";
import { startRtmp, type TestServer } from "#test/support/live/rtmp-recorder.ts";
import { selfSigned } from "#test/support/live/self-signed.ts";
import { ffmpeg, ffprobe } from "#test/support/media/sources.ts";

const SECONDS = 4;
const SOURCE = ["-f", "lavfi", "-i", `testsrc=s=320x180:r=25:d=${SECONDS}`, "-f", "lavfi", "-i", `sine=d=${SECONDS}`];
const CODECS = "-map 0 -map 1 -c:v libx264 -preset ultrafast -bf 2 -g 50 -pix_fmt yuv420p -c:a aac".split(" ");

const md5 = (data: Buffer) => `MD5:${createHash("md5").update(data).digest("hex")}`;
const urlOf = ({ port }: TestServer, scheme = "rtmp") => `${scheme}://127.0.0.1:${port}/live/name?key=x`;

type Packet = { codec_type: string; pts: number; dts: number; flags: string; data_hash: string };

/** What ffprobe reads from an FLV file: packets with their hashes, and the hashes of the configurations. */
async function probed(path: string) {
  const shown = ["-show_packets", "-show_streams", "-show_data_hash", "md5", "-of", "json"];
  const { packets, streams } = JSON.parse(await ffprobe(...shown, path)) as {
    packets: Packet[];
    streams: { codec_type: string; extradata_hash: string }[];
  };
  const of = (kind: string) =>
    packets
      .filter(({ codec_type }) => codec_type === kind)
      .map(({ dts, pts, flags, data_hash }) => ({
        timestamp: dts,
        compositionOffset: pts - dts,
        isKeyframe: flags.includes("K"),
        hash: data_hash,
      }));
  const configs = streams.map(({ codec_type, extradata_hash }) => [codec_type, extradata_hash]);
  return { video: of("video"), audio: of("audio"), configs: Object.fromEntries(configs) };
}

const received = ({ samples, configs }: Recorder) => {
  const of = (kind: string) =>
    samples
      .filter((sample) => sample.kind === kind)
      .map(({ data, kind: _, ...fields }) => ({ ...fields, hash: md5(data) }));
  const hashes = configs.map(({ kind, configuration }) => [kind, md5(configuration)]);
  return { video: of("video"), audio: of("audio"), configs: Object.fromEntries(hashes) };
};

const LIVE_VIDEO = "testsrc=s=160x90:r=25:d=60 -c:v libx264 -preset ultrafast -tune zerolatency".split(" ");

/** Starts a publisher that sends in real time, for longer than a test takes. */
const publishInRealTime = (url: string, stream = LIVE_VIDEO) =>
  startPublisher(["-re", "-f", "lavfi", "-i", ...stream, "-f", "flv", url]);

test.each(["rtmp", "rtmps"])(
  "ffmpeg publishes H.264 and AAC over %s: the samples are those of its FLV file",
  async (scheme) => {
    const rtmp = await startRtmp(scheme === "rtmps" ? { tls: await selfSigned() } : {});
    const file = join(emptyFolder(), "same.flv");
    const outputs = `[f=flv:flvflags=no_duration_filesize]${file}|[f=flv]${urlOf(rtmp, scheme)}`;
    await ffmpeg(...SOURCE, ...CODECS, "-flags", "+global_header", "-f", "tee", outputs);
    const [recorder] = rtmp.recorders as [Recorder];
    expect(await recorder.ended).toBe("unpublished");
    const expected = await probed(file);
    expect(expected.video).toHaveLength(SECONDS * 25);
    expect(expected.video.some(({ compositionOffset }) => compositionOffset > 40)).toBe(true);
    expect(received(recorder)).toEqual(expected);
    expect(recorder.metadata[0]).toMatchObject({ width: 320, height: 180, encoder: expect.stringMatching(/^Lavf/) });
    const [request] = rtmp.requests;
    expect(request).toMatchObject({ app: "live", name: "name", address: "127.0.0.1", encoder: expect.any(String) });
    expect(request?.query.get("key")).toBe("x");
    expect(recorder.ends).toEqual(["unpublished"]);
  },
);

test("the key may be in the query of the app", async () => {
  const rtmp = await startRtmp();
  const url = `rtmp://127.0.0.1:${rtmp.port}/live`;
  await ffmpeg(...SOURCE, ...CODECS, "-rtmp_app", "live?key=x", "-rtmp_playpath", "name", "-f", "flv", url);
  expect(rtmp.requests).toMatchObject([{ app: "live", name: "name" }]);
  expect(String(rtmp.requests[0]?.query)).toBe("key=x");
});

test.each([
  ["refused", "stream key is wrong"],
  ["taken", "Another publisher"],
  ["limit", "limit of concurrent live streams"],
  ["throttled", "Too many wrong stream keys"],
  ["unavailable", "Try again in a minute"],
] as const)("ffmpeg shows why a publish is %s", async (reason, text) => {
  const rtmp = await startRtmp({ authorize: async () => ({ accepted: false, reason }) });
  const publisher = publishInRealTime(urlOf(rtmp));
  const [code] = await publisher.exit;
  expect(code).not.toBe(0);
  expect(publisher.stderr()).toContain(text);
  expect(rtmp.recorders).toEqual([]);
});

test("a codec that is not supported ends the publish with what to use", async () => {
  const rtmp = await startRtmp();
  const publisher = publishInRealTime(urlOf(rtmp), ["sine=d=60", "-c:a", "libmp3lame"]);
  const [code] = await publisher.exit;
  expect(code).not.toBe(0);
  expect(publisher.stderr()).toContain("The audio codec MP3 is not supported. Use AAC.");
  const [recorder] = rtmp.recorders as [Recorder];
  expect(recorder.ends).toEqual(["stopped"]);
  expect(recorder.samples).toEqual([]);
});

test("stop() ends a stream at once and the publisher fails", async () => {
  const rtmp = await startRtmp();
  const publisher = publishInRealTime(urlOf(rtmp));
  await expect.poll(() => rtmp.recorders.length).toBe(1);
  const [recorder] = rtmp.recorders as [Recorder];
  await recorder.until(() => recorder.samples.length > 5);
  recorder.stream?.stop("Another publisher has taken over.");
  expect(recorder.ends).toEqual(["stopped"]);
  const { length } = recorder.samples;
  const [code] = await publisher.exit;
  expect(code).not.toBe(0);
  expect(publisher.stderr()).toContain("Another publisher has taken over.");
  expect(recorder.samples).toHaveLength(length);
  expect(recorder.ends).toEqual(["stopped"]);
});

test("a publisher that is killed has disconnected", async () => {
  const rtmp = await startRtmp();
  const publisher = publishInRealTime(urlOf(rtmp));
  await expect.poll(() => rtmp.recorders.length).toBe(1);
  const [recorder] = rtmp.recorders as [Recorder];
  await recorder.until(() => recorder.samples.length > 0);
  publisher.child.kill("SIGKILL");
  expect(await recorder.ended).toBe("disconnected");
  await expect.poll(() => rtmp.server.connections).toBe(0);
});
