import { expect, test } from "vitest";
import { Source, VIDEO_TYPE, WhipClient } from "#test/support/live/whip-client.ts";
import { audioOf, signalAudio, signalVideo, type Timed, videoOf } from "#test/support/live/whip-media.ts";
import { complaints, ffprobe } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { hlsOf, recordingsOf, signalsOf, untilStatus, whipChannel, whipServer } from "./whip-server.ts";

test("audio and video of a publisher are in sync, although audio arrives later", async () => {
  const [server, video, audio] = await Promise.all([whipServer(), videoOf(signalVideo(14)), audioOf(signalAudio(14))]);
  const channel = await whipChannel(server);
  const client = await WhipClient.connect(channel.endpoint);
  const published = client.publish({ video, audio }, { audioDelayMs: 150 });
  const live = await untilStatus(server, channel, "live");
  expect(live.ingest.whip_url).toBe(`${server.base}/live/stage/whip`);
  await published;
  expect((await fetch(client.location, { method: "DELETE" })).status).toBe(200);
  await untilStatus(server, channel, "idle");
  const [recording] = await recordingsOf(server, channel);
  const url = await hlsOf(server, channel, recording as NonNullable<typeof recording>);
  expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
  const signals = await signalsOf(url);
  expect(signals.video.length).toBeGreaterThan(7);
  const distances = signals.video.map((time) => Math.min(...signals.audio.map((other) => Math.abs(other - time))));
  expect([Math.max(...distances) < 0.045, signals]).toEqual([true, signals]);
});

test("a publisher whose packets are lost plays without a stall, and keyframes are requested", async () => {
  const [server, video, audio] = await Promise.all([
    whipServer(),
    videoOf(["-f", "lavfi", "-i", "testsrc2=s=640x360:r=30:d=14"], 120),
    audioOf(signalAudio(14)),
  ]);
  const channel = await whipChannel(server);
  const client = await WhipClient.connect(channel.endpoint, { loss: 0.05 });
  await client.publish({ video, audio });
  expect(client.resent).toBeGreaterThan(20);
  expect(client.keyframeRequests).toBeGreaterThan(2);
  await fetch(client.location, { method: "DELETE" });
  const [recording] = await recordingsOf(server, channel);
  const url = await hlsOf(server, channel, recording as NonNullable<typeof recording>);
  expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
  const times = await frameTimes(url);
  // Every frame from the first keyframe on.
  expect(Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)))).toBeLessThan(0.05);
  expect(times.length).toBeGreaterThan(9 * 30);
});

const frameTimes = async (url: string) => {
  const shown = await ffprobe("-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0", url);
  const lines = shown.trim().split("\n");
  return lines.map((line) => Number.parseFloat(line)).sort((one, other) => one - other);
};

nightly("a size that changes stays one stream and one recording", async () => {
  const [server, small, large] = await Promise.all([
    whipServer(),
    videoOf(["-f", "lavfi", "-i", "testsrc2=s=640x360:r=30:d=6"]),
    videoOf(["-f", "lavfi", "-i", "testsrc2=s=1280x720:r=30:d=6"]),
  ]);
  const channel = await whipChannel(server);
  const client = await WhipClient.connect(channel.endpoint, { audio: false });
  const later = (timed: Timed[], ms: number) => timed.map((one) => ({ ...one, ms: one.ms + ms }));
  await client.publish({ video: [...small, ...later(large, 6000), ...later(small, 12_000)] });
  await fetch(client.location, { method: "DELETE" });
  const assets = await recordingsOf(server, channel);
  expect(assets).toHaveLength(1);
  const url = await hlsOf(server, channel, assets[0] as NonNullable<(typeof assets)[0]>);
  expect(await complaints("-i", url, "-map", "0:v:0", "-f", "null", "-")).toBe("");
  const sizes = await ffprobe("-select_streams", "v:0", "-show_entries", "frame=width,height", "-of", "csv=p=0", url);
  const runs = [...sizes.matchAll(/\d+,\d+/g)]
    .map(([size]) => size)
    .filter((size, index, all) => size !== all[index - 1]);
  expect(runs).toEqual(["640,360", "1280,720", "640,360"]);
});

nightly("of the layers of simulcast the largest plays", async () => {
  const sizes = ["320x180", "640x360"];
  const [server, small, large] = await Promise.all([
    whipServer(),
    ...sizes.map((size) => videoOf(["-f", "lavfi", "-i", `testsrc2=s=${size}:r=30:d=10`])),
  ]);
  const channel = await whipChannel(server);
  const client = await WhipClient.connect(channel.endpoint, { audio: false, rids: ["low", "high"] });
  expect(client.answer).toContain("a=simulcast:recv low;high");
  await client.publish({ video: small, layers: [{ source: new Source(VIDEO_TYPE), frames: large as Timed[] }] });
  await fetch(client.location, { method: "DELETE" });
  const assets = await recordingsOf(server, channel);
  expect(assets.map(({ height }) => height)).toEqual([360]);
  const url = await hlsOf(server, channel, assets[0] as NonNullable<(typeof assets)[0]>);
  expect(await complaints("-i", url, "-map", "0:v:0", "-f", "null", "-")).toBe("");
});
