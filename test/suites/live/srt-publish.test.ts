import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import {
  firstSegment,
  type LiveServer,
  liveServer,
  newChannel,
  publish,
  publishSrt,
  type TestChannel,
} from "#test/support/live.ts";
import { complaints, ffprobe } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, startServer, stopCleanly } from "#test/support/process.ts";

/** SRT, from the first frame to the recording, with a server as an operator starts it. */

type SrtServer = LiveServer & { srt: string };

async function srtServer(env: Record<string, string> = {}): Promise<SrtServer> {
  const server = await liveServer({ env: { VODBOX_SRT_PORT: "0", ...env } });
  return { ...server, srt: (await lineOf(server, /^live streams to (srt:\S+)$/m))[1] as string };
}

type Asset = { id: number; duration_seconds: number; playback_status: string };

async function recordingOf({ as }: LiveServer, { key }: TestChannel): Promise<Asset> {
  const assets = async () => (await as(key).listAssets()).body as Asset[];
  await until("the recording is an asset", async () => (await assets()).length === 1);
  return (await assets())[0] as Asset;
}

async function playbackOf({ as }: LiveServer, { key }: TestChannel, { id }: Asset) {
  const { status, body } = await as(key).getPlayback(id);
  expect(status).toBe(200);
  return body as { hls_url: string; dash_url: string };
}

test("viewers watch a stream with B-frames while it runs, and it becomes an asset", async () => {
  const server = await srtServer({ VODBOX_LOG_LEVEL: "info" });
  const channel = await newChannel(server);
  const publisher = publishSrt(server, channel, 9);
  const shown = async () => (await server.as(channel.key).getChannel(channel.id)).body;
  const live = await until("the channel is live", async () => {
    const found = await shown();
    return found.status === "live" && found.hls_url ? found : null;
  });
  await firstSegment(server, publisher);
  const faults = await complaints("-i", live.hls_url, "-t", "2", "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-");
  // ffmpeg reads the init segment once more for each segment that it joins.
  expect(faults.split("\n").filter((line) => !/duplicated MOOV|^$/.test(line))).toEqual([]);
  const measured = await until("the health is measured", async () => (await shown()).health);
  expect(measured.bitrate).toBeGreaterThan(50_000);
  expect((await publisher.exit)[0]).toBe(0);
  const asset = await recordingOf(server, channel);
  // A stream that is lost ends when its publisher could not reconnect for 30 s.
  expect(server.stderr()).toMatch(/"end":"unpublished".*"a publish has ended"/);
  expect(asset.playback_status).toBe("ready");
  expect(asset.duration_seconds).toBeCloseTo(9, 0);
  const { hls_url, dash_url } = await playbackOf(server, channel, asset);
  for (const url of [hls_url, dash_url])
    expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
  // All frames but those before the first keyframe, of which there are none.
  const counted = ["-select_streams", "v:0", "-count_packets", "-show_entries", "stream=nb_read_packets"];
  expect(Number((await ffprobe(...counted, "-of", "csv=p=0", hls_url)).trim().split("\n")[0])).toBe(9 * 30);
  await stopCleanly(server);
});

nightly("a publisher that is stopped ends its stream without a report of missing audio", async () => {
  const server = await srtServer({ VODBOX_LOG_LEVEL: "info" });
  const channel = await newChannel(server);
  const publisher = publishSrt(server, channel, 60);
  await firstSegment(server, publisher);
  // ffmpeg completes the file, of which the audio ends some tenths of a second before the video.
  publisher.child.kill("SIGINT");
  await publisher.exit;
  const asset = await recordingOf(server, channel);
  expect(server.stderr()).toMatch(/"end":"unpublished".*"a publish has ended"/);
  expect(server.stderr()).not.toMatch(/audio_gap|"level":"warn"/);
  const { hls_url } = await playbackOf(server, channel, asset);
  expect(await complaints("-i", hls_url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
});

test("a wrong key is refused, and a second publisher of either protocol too", async () => {
  const server = await srtServer();
  const channel = await newChannel(server);
  const wrong = publishSrt(server, { ...channel, stream_key: "live_wrong" }, 5);
  expect((await wrong.exit)[0]).not.toBe(0);
  expect(wrong.stderr()).toContain("rejection reason");
  const first = publishSrt(server, channel, 60);
  await firstSegment(server, first);
  expect((await publishSrt(server, channel, 5).exit)[0]).not.toBe(0);
  expect((await publish(server, channel, 5).exit)[0]).not.toBe(0);
  expect(first.child.exitCode).toBeNull();
  expect(globSync("live/*", { cwd: server.dataDir })).toHaveLength(1);
});

nightly("a publisher that is killed and comes back continues the stream", async () => {
  const server = await srtServer();
  const channel = await newChannel(server);
  const first = publishSrt(server, channel, 60);
  await firstSegment(server, first);
  first.child.kill("SIGKILL");
  await first.exit;
  // Its address sends nothing, which the server knows after 3 s: before that, it is taken for another publisher.
  await until("it may publish again", async () => (await publishSrt(server, channel, 4).exit)[0] === 0, 60_000);
  const asset = await recordingOf(server, channel);
  expect(asset.duration_seconds).toBeGreaterThan(5.5);
  const { hls_url } = await playbackOf(server, channel, asset);
  expect(await complaints("-i", hls_url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
});

const HEVC = "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=30:bframes=2 -pix_fmt yuv420p".split(
  " ",
);

test.each(
  rows(
    [
      ["HEVC", { video: HEVC }, "hevc"],
      ["audio alone", { video: [] }, "aac"],
    ],
    1,
  ),
)("%s becomes an asset", async (_, options, codec) => {
  const server = await srtServer();
  const channel = await newChannel(server);
  expect((await publishSrt(server, channel, 6, options).exit)[0]).toBe(0);
  const asset = await recordingOf(server, channel);
  expect(asset.duration_seconds).toBeCloseTo(6, 0);
  const { hls_url } = await playbackOf(server, channel, asset);
  expect(await complaints("-i", hls_url, "-map", "0", "-f", "null", "-")).toBe("");
  expect(await ffprobe("-show_entries", "stream=codec_name", "-of", "csv=p=0", hls_url)).toContain(codec);
});

test("a server that receives SRT only, with a passphrase that publishers need", async () => {
  const env = { VODBOX_SRT_PORT: "0", VODBOX_SRT_PASSPHRASE: "correct-horse-battery" };
  const server = await startServer(newFolder(), { env });
  const srt = (await lineOf(server, /^live streams to (srt:\S+)$/m))[1] as string;
  expect(server.stdout()).not.toContain("rtmp:");
  const live = { ...server, srt, rtmp: "" };
  const channel = await newChannel(live);
  const without = publishSrt(live, channel, 5);
  expect((await without.exit)[0]).not.toBe(0);
  expect(without.stderr()).toContain("Password required or unexpected");
  const { exit } = publishSrt(live, channel, 4, { url: "&passphrase=correct-horse-battery" });
  expect((await exit)[0]).toBe(0);
  expect((await recordingOf(live, channel)).duration_seconds).toBeCloseTo(4, 0);
});

test("a server that stops completes the recording of a running stream, and several processes share it", async () => {
  const server = await srtServer({ VODBOX_PROCESSES: "2" });
  const channel = await newChannel(server);
  const publisher = publishSrt(server, channel, 60);
  await firstSegment(server, publisher);
  await stopCleanly(server);
  expect((await publisher.exit)[0]).not.toBe(0);
  const again = await liveServer({ dataDir: server.dataDir });
  expect((await recordingOf(again, channel)).duration_seconds).toBeGreaterThan(1.9);
});
