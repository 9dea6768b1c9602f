import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DEFAULT_PRICES } from "#platform/config/prices.ts";
import { descendantsOf, until } from "#test/support/descendants.ts";
import { RENDITION_LIMIT_MS } from "#test/support/live/live-client.ts";
import { type LiveServer, liveServer, newChannel, publish, type TestChannel } from "#test/support/live.ts";
import { nightly } from "#test/support/nightly.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

/** What happens to a live stream when a process, the disk, the plan or the channel ends. */

/** Bytes that the server keeps free on its disk. */
const RESERVE = 24 * 2 ** 20;

type Asset = { id: number; duration_seconds: number; playback_status: string; height: number };
const assetsOf = async ({ as }: LiveServer, { key }: TestChannel): Promise<Asset[]> =>
  (await as(key).listAssets()).body;
const streamsIn = ({ dataDir }: LiveServer) => globSync("live/*/*p", { cwd: dataDir });
const segmentsIn = ({ dataDir }: LiveServer) => globSync("live/*/*p/?????.m4s", { cwd: dataDir });
const untilSegments = (server: LiveServer, count: number) =>
  until(`${count} segments are complete`, () => segmentsIn(server).length >= count);
const untilAssets = async (server: LiveServer, channel: TestChannel, count: number) => {
  await until(`${count} recordings are assets`, async () => (await assetsOf(server, channel)).length === count);
  return assetsOf(server, channel);
};

test("the ingest process is killed: the recording is kept, and the publisher can connect again", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const first = publish(server, channel, 60);
  await untilSegments(server, 2);
  const ingest = descendantsOf(server.child.pid as number).find(({ command }) => command.includes("live-ingest"));
  process.kill(ingest?.pid as number, "SIGKILL");
  await first.exit;
  const [asset] = await untilAssets(server, channel, 1);
  expect(asset?.duration_seconds).toBeGreaterThan(3.9);
  await until("a publisher is accepted again", async () => (await publish(server, channel, 3).exit)[0] === 0);
  await untilAssets(server, channel, 2);
});

nightly("a publisher with other codec parameters begins another recording", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const first = publish(server, channel, 60);
  await untilSegments(server, 1);
  first.child.kill("SIGKILL");
  await first.exit;
  expect((await publish(server, channel, 4, { size: "640x360" }).exit)[0]).toBe(0);
  const assets = await untilAssets(server, channel, 2);
  expect(assets.map(({ height }) => height).toSorted()).toEqual([180, 360]);
});

test("a publisher takes over where the channel allows it, and continues the stream", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  await server.as(channel.key).updateChannel(channel.id, { takeover: true });
  const first = publish(server, channel, 60);
  await untilSegments(server, 1);
  expect((await publish(server, channel, 4).exit)[0]).toBe(0);
  expect((await first.exit)[0]).not.toBe(0);
  const [asset] = await untilAssets(server, channel, 1);
  expect(asset?.duration_seconds).toBeGreaterThan(5.5);
});

nightly("a publisher with a rotated stream key replaces the one with the old key", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const first = publish(server, channel, 60);
  await untilSegments(server, 1);
  const rotated = await server.as(channel.key).rotateStreamKey(channel.id);
  expect(first.child.exitCode).toBeNull();
  const { stream_key } = rotated.body;
  expect((await publish(server, { ...channel, stream_key }, 4).exit)[0]).toBe(0);
  expect((await first.exit)[0]).not.toBe(0);
  expect(first.stderr()).toContain("Another publisher has taken over the channel.");
});

test("a revoked channel ends its stream", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const first = publish(server, channel, 60);
  await untilSegments(server, 1);
  const { key, id } = channel;
  expect((await server.as(key).revokeChannel(id)).status).toBe(204);
  expect((await first.exit)[0]).not.toBe(0);
  await untilAssets(server, channel, 1);
});

test("a full disk ends the recording with what there is, and the stream continues", async (context) => {
  const disk = smallDisk(context, 96);
  const server = await liveServer({
    dataDir: join(disk.path, "data"),
    env: { VODBOX_MIN_FREE_BYTES: String(RESERVE) },
  });
  const channel = await newChannel(server);
  const publishing = publish(server, channel, 60);
  await untilSegments(server, 2);
  disk.leave(RESERVE / 2);
  await until("another stream has begun", () => streamsIn(server).length === 2);
  const before = segmentsIn(server).length;
  await untilSegments(server, before + 2);
  expect(publishing.child.exitCode).toBeNull();
  rmSync(join(disk.path, "filler"));
  const [asset] = await untilAssets(server, channel, 1);
  expect(asset?.duration_seconds).toBeGreaterThan(3.9);
});

nightly("a full disk ends the renditions of a stream too, and the publisher's video continues", async (context) => {
  const disk = smallDisk(context, 96);
  const server = await liveServer({
    dataDir: join(disk.path, "data"),
    env: { VODBOX_MIN_FREE_BYTES: String(RESERVE) },
    workers: 1,
  });
  const channel = await newChannel(server, { encoding_profile: "default" });
  const publishing = publish(server, channel, 300, { size: "640x360" });
  const master = async () => (await server.call("GET", "/live/stage/master.m3u8")).text;
  await until("a rendition is listed", async () => (await master()).includes("/240p/"), RENDITION_LIMIT_MS);
  await untilSegments(server, 2);
  disk.leave(RESERVE / 2);
  await until("another stream has begun", () => streamsIn(server).length === 2);
  await until(
    "its renditions have ended",
    () => /has no renditions any more/.test(server.stderr()),
    RENDITION_LIMIT_MS,
  );
  const before = segmentsIn(server).length;
  await untilSegments(server, before + 3);
  const text = await master();
  expect(text).toContain("/360p/");
  expect(text).not.toContain("/240p/");
  expect(publishing.child.exitCode).toBeNull();
  rmSync(join(disk.path, "filler"));
  const [asset] = await untilAssets(server, channel, 1);
  expect(asset?.duration_seconds).toBeGreaterThan(3.9);
});

const withQuota = (storage_bytes: number) => {
  const small = Object.entries(DEFAULT_PRICES.plans).map(([name, plan]) => [
    name,
    { ...plan, quotas: { ...plan.quotas, storage_bytes } },
  ]);
  return { VODBOX_PRICES: JSON.stringify({ ...DEFAULT_PRICES, plans: Object.fromEntries(small) }) };
};

nightly("the end of the tenant's storage ends the recording, and the stream continues", async () => {
  const server = await liveServer({ env: withQuota(500_000) });
  const channel = await newChannel(server);
  publish(server, channel, 60);
  await until("another stream has begun", () => streamsIn(server).length === 2);
  const [asset] = await untilAssets(server, channel, 1);
  expect(asset?.duration_seconds).toBeGreaterThan(1);
});

nightly("all recordings of a publisher that changes its codec parameters share the tenant's storage", async () => {
  const quota = 1_200_000;
  const server = await liveServer({ env: withQuota(quota) });
  const channel = await newChannel(server);
  const first = publish(server, channel, 60);
  await untilSegments(server, 2);
  first.child.kill("SIGKILL");
  await first.exit;
  publish(server, channel, 60, { size: "300x180" });
  await until("a stream without a recording has begun", () => streamsIn(server).length === 3);
  await untilAssets(server, channel, 2);
  const [tenant] = (await server.as({ admin: server.admin }).listTenants()).body;
  expect(tenant.storage_bytes).toBeLessThan(quota * 1.1);
});
