import { globSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { complaints } from "../media/sources.ts";
import { until } from "../support/descendants.ts";
import { type LiveServer, liveServer, newChannel, publish, type TestChannel } from "../support/live.ts";
import { stopCleanly } from "../support/process.ts";

/** The embedded gateway, from the first frame to the recording, with a server as an operator starts it. */

const assetsOf = async ({ call }: LiveServer, { key }: TestChannel) =>
  (await call("GET", "/api/v1/assets", { key })).body as { id: number; duration_seconds: number }[];

const segmentsIn = ({ dataDir }: LiveServer) => globSync("live/*/180p/?????.m4s", { cwd: dataDir });

async function recordingOf(server: LiveServer, channel: TestChannel) {
  await until("the recording is an asset", async () => (await assetsOf(server, channel)).length === 1);
  const [asset] = await assetsOf(server, channel);
  return asset as { id: number; duration_seconds: number };
}

async function expectPlayable({ call }: LiveServer, { key }: TestChannel, id: number): Promise<void> {
  const playback = await call("GET", `/api/v1/playback/${id}`, { key });
  expect(playback.status).toBe(200);
  for (const url of [playback.body.hls_url, playback.body.dash_url])
    expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
}

test("a stream becomes an asset as soon as its publisher ends it", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  expect((await publish(server, channel, 7).exit)[0]).toBe(0);
  const endedAt = performance.now();
  const asset = await recordingOf(server, channel);
  expect(performance.now() - endedAt).toBeLessThan(2000);
  expect(asset).toMatchObject({ playback_status: "ready", title: expect.stringMatching(/^stage, \d{4}-/) });
  expect(asset.duration_seconds).toBeCloseTo(7, 0);
  await expectPlayable(server, channel, asset.id);
  expect(globSync("live/*.recording", { cwd: server.dataDir })).toEqual([]);
  await stopCleanly(server);
});

test("a wrong key is refused, and a second publisher too", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  expect((await publish(server, { ...channel, stream_key: "live_wrong" }, 5).exit)[0]).not.toBe(0);
  const first = publish(server, channel, 60);
  await until("the stream runs", async () => segmentsIn(server).length > 0, 30_000);
  expect((await publish(server, channel, 5).exit)[0]).not.toBe(0);
  expect(first.child.exitCode).toBeNull();
  expect(readdirSync(join(server.dataDir, "live"))).toHaveLength(1);
});

test("a publisher that comes back continues the stream", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const first = publish(server, channel, 60);
  await until("a segment is complete", async () => segmentsIn(server).length > 0, 30_000);
  first.child.kill("SIGKILL");
  await first.exit;
  expect((await publish(server, channel, 4).exit)[0]).toBe(0);
  const asset = await recordingOf(server, channel);
  expect(asset.duration_seconds).toBeGreaterThan(5.5);
  await expectPlayable(server, channel, asset.id);
});

test("a server that stops completes the recordings of running streams", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  publish(server, channel, 60);
  await until("a segment is complete", async () => segmentsIn(server).length > 0, 30_000);
  await stopCleanly(server);
  const again = await liveServer({ dataDir: server.dataDir });
  const [asset] = await assetsOf(again, channel);
  expect(asset?.duration_seconds).toBeGreaterThan(1.9);
  expect(segmentsIn(again)).toEqual([]);
});

test("a server that is killed loses at most the last second, and its next start makes the stream an asset", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  publish(server, channel, 60);
  await until("two segments are complete", async () => segmentsIn(server).length > 1, 30_000);
  server.child.kill("SIGKILL");
  await server.ended;
  const again = await liveServer({ dataDir: server.dataDir });
  const asset = await recordingOf(again, channel);
  expect(asset.duration_seconds).toBeGreaterThan(4);
  await expectPlayable(again, channel, asset.id);
});
