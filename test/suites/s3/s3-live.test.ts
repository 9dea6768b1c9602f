import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";
import { complaints } from "#test/support/media/sources.ts";
import { stopCleanly } from "#test/support/process.ts";
import { newBucket, s3Server, s3Settings } from "#test/support/s3-server.ts";

test("a recording is in S3 when the stream ends, and gets a storyboard without encoding", async () => {
  const s3 = await s3Server();
  const bucket = newBucket("live");
  await s3.bucket(bucket);
  const server = await liveServer({
    env: { ...s3Settings(s3, bucket), VODBOX_S3_DELIVERY: "proxy", VODBOX_LOG_LEVEL: "info" },
    workers: 1,
  });
  const channel = await newChannel(server);
  const { as, call } = server;
  const { key } = channel;
  expect((await publish(server, channel, 9).exit)[0]).toBe(0);
  const assets = async () => (await as(key).listAssets()).body;
  await until("the recording is an asset", async () => (await assets()).length === 1);
  // A stream that is lost ends when its publisher could not reconnect for 30 s.
  expect(server.stderr()).toMatch(/"end":"unpublished".*"a publish has ended"/);
  const [{ id, playback_status }] = await assets();
  expect(playback_status).toBe("ready");
  const playback = async () => (await as(key).getPlayback(id)).body;
  const decode = async (url: string) => complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-");
  expect(await decode((await playback()).hls_url)).toBe("");
  const { storyboard_url } = await until("it has a storyboard", async () => {
    const found = await playback();
    return found.storyboard_url === null ? null : found;
  });
  expect((await call("GET", storyboard_url)).text).toContain("#xywh=");
  expect(await decode((await playback()).hls_url)).toBe("");
  expect((await as(key).getAsset(id)).body.duration_seconds).toBeCloseTo(9, 0);
  await stopCleanly(server);
});
