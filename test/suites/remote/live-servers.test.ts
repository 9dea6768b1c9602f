import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@libsql/client";
import { beforeAll, expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { RENDITION_LIMIT_MS } from "#test/support/live/live-client.ts";
import {
  type LiveServer,
  listAt,
  liveServer,
  MASTER,
  newChannel,
  playlistsAt,
  publish,
  type TestChannel,
  untilListed,
  untilLive,
} from "#test/support/live.ts";
import { parseLiveManifest } from "#test/support/live-manifest.ts";
import { complaints } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { stopCleanly } from "#test/support/process.ts";
import { newBucket, type S3Server, s3Server, s3Settings } from "#test/support/s3-server.ts";
import { startSqld } from "#test/support/sqld.ts";

/** Live streams on two servers that share a database and a bucket: one receives a stream, both deliver it. */

let s3: S3Server;
beforeAll(async () => {
  s3 = await s3Server();
});

async function platform() {
  const bucket = newBucket("live-servers");
  const [database] = await Promise.all([startSqld(emptyFolder()), s3.bucket(bucket)]);
  const env = {
    VODBOX_DATABASE_URL: database.url,
    VODBOX_SIGNING_SECRET: "signing-secret-of-both",
    ...s3Settings(s3, bucket),
    VODBOX_S3_DELIVERY: "proxy",
  };
  const start = ({ dataDir = emptyFolder(), workers = 0 } = {}) => liveServer({ dataDir, env, workers });
  const a = await start();
  const b = await start();
  const client = createClient({ url: database.url });
  const rows = async (sql: string) => (await client.execute(sql)).rows as unknown as Record<string, any>[];
  /** As if so much time had passed since its server wrote it. */
  const age = (seconds: number) =>
    rows(`UPDATE live_streams SET updated_at = updated_at - ${seconds * 1000} WHERE finished_at IS NULL`);
  return { a, b, start, rows, age };
}

const statusAt = async ({ as }: LiveServer, { id, key }: TestChannel) => (await as(key).getChannel(id)).body.status;
const stateAt = async ({ call }: LiveServer, token = "") => (await call("GET", `/live/stage/state.json${token}`)).body;
const assetsAt = async ({ as }: LiveServer, { key }: TestChannel) =>
  (await as(key).listAssets()).body as { id: number; duration_seconds: number }[];
const foldersOf = ({ dataDir }: LiveServer) => readdirSync(join(dataDir, "live"));

/** A stream that `a` receives and `b` delivers, with so many segments. */
async function streaming(a: LiveServer, b: LiveServer, segments: number) {
  const channel = await newChannel(a);
  publish(a, channel, 120);
  const [video] = await untilLive(b);
  await untilListed(b, video, segments);
  return { channel, video };
}

const untilIdle = (server: LiveServer, channel: TestChannel) =>
  until("the channel is idle", async () => (await statusAt(server, channel)) === "idle", 40_000);

/** Plays some seconds of a running stream. Resolves with the errors. */
const watch = (url: string, seconds: number) =>
  complaints("-v", "error", "-i", url, "-t", `${seconds}`, "-f", "null", "-");

async function expectPlayable(server: LiveServer, { key }: TestChannel, id: number): Promise<void> {
  const { hls_url } = (await server.as(key).getPlayback(id)).body;
  const url = hls_url.replace(/^https?:\/\/[^/]+/, server.base);
  expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
}

test("a server delivers a stream that another one receives, with the same segments and a few seconds later", async () => {
  const { a, b, start } = await platform();
  const channel = await newChannel(a);
  const publishing = publish(a, channel, 120);
  const [video, audio] = await untilLive(b);
  await untilListed(b, video, 2);
  expect(await statusAt(b, channel)).toBe("live");
  expect((await stateAt(b)).status).toBe("live");

  const list = await untilListed(b, video, 4);
  // Its segments are reported after those of the video.
  await untilListed(b, audio, 4);
  expect([list.partTarget, list.hint, list.isEnded]).toEqual([null, null, false]);
  const last = list.segments.at(-1);
  const behind = Date.now() - ((last?.date ?? 0) + (last?.complete?.durationSeconds ?? 0) * 1000);
  // A segment that has just begun, a second until it is read; the rest is for a busy machine.
  expect(behind).toBeLessThan(30_000);
  // The first requests came late, so this is the whole stream.
  const same = async (other = b) => {
    for (const path of [video, audio]) {
      const there = await listAt(other, path);
      const here = await listAt(a, path);
      const complete = there.segments.map(({ parts: _, ...segment }) => segment);
      const known = here.segments.map(({ parts: _, ...segment }) => segment).slice(0, complete.length);
      expect(complete).toEqual(known);
      expect([there.target, there.sequence, there.discontinuitySequence]).toEqual([
        here.target,
        here.sequence,
        here.discontinuitySequence,
      ]);
    }
  };
  await same();
  // The DASH manifest too, apart from the bitrates, which each measures.
  const manifestAt = async ({ base, call }: LiveServer) => {
    const { href, pathname } = new URL("../manifest.mpd", `${base}${video}`);
    return parseLiveManifest((await call("GET", pathname)).text, href);
  };
  const there = await manifestAt(b);
  const here = await manifestAt(a);
  expect(there.attributes.availabilityStartTime).toBe(here.attributes.availabilityStartTime);
  for (const [index, one] of there.periods[0]?.representations.entries() ?? []) {
    const times = ({ number, startSeconds }: { number: number; startSeconds: number }) => [number, startSeconds];
    const listed = one.segments.map(times);
    expect(listed.length).toBeGreaterThanOrEqual(4);
    expect(listed).toEqual(here.periods[0]?.representations[index]?.segments.slice(0, listed.length).map(times));
    expect((await b.call("GET", new URL(one.segments[0]?.url ?? "").pathname)).status).toBe(200);
  }
  const { as, call } = b;
  const at = (name: string) => call("GET", new URL(name, `${b.base}${video}`).pathname);
  const segment = await at("00001.m4s");
  const init = await at("init.mp4");
  expect([segment.status, init.status]).toEqual([200, 200]);
  expect(segment.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(segment.text).toBe((await a.call("GET", new URL("00001.m4s", `${a.base}${video}`).pathname)).text);
  for (const name of ["00900.m4s", "00001.0.m4s", "secret.txt", "live.m3u8.bak"])
    expect((await at(name)).status).toBe(404);
  expect((await call("GET", video.replace("/stage/", "/other/"))).status).toBe(404);
  expect((await stateAt(b)).viewers).toBe(1);
  const playback = (await as(channel.key).getChannelPlayback(channel.id)).body;
  expect(playback.renditions).toMatchObject([{ name: "180p", height: 180 }]);
  const cut = (body: unknown) => as(channel.key).unchecked.createLiveClip(channel.id, body);
  const clip = await cut({ start_seconds: 2.1, end_seconds: 5.9, title: "Goal" });
  expect([clip.status, clip.body.title, clip.body.playback_status]).toEqual([201, "Goal", "ready"]);
  expect(clip.body.duration_seconds).toBeCloseTo(4, 1);
  await expectPlayable(b, channel, clip.body.id);
  expect((await cut({ last_seconds: 2 })).body.duration_seconds).toBeCloseTo(2, 1);
  const future = await cut({ start_seconds: 900, end_seconds: 910 });
  expect([future.status, future.error.code]).toEqual([422, "clip_not_possible"]);
  expect(foldersOf(b)).toEqual([]);
  await Promise.all((await assetsAt(b, channel)).map(({ id }) => as(channel.key).deleteAsset(id)));
  expect(await watch(`${b.base}${MASTER}`, 4)).toBe("");

  // The publisher is disconnected, and continues the stream.
  publishing.child.kill("SIGKILL");
  await publishing.exit;
  await until("the interruption is announced", async () => (await listAt(b, video)).hasTrailingDiscontinuity);
  const before = (await listAt(b, video)).segments.length;
  const again = publish(a, channel, 120);
  await untilListed(b, video, before + 2);
  await same();
  expect((await listAt(b, video)).segments.filter(({ isDiscontinuous }) => isDiscontinuous)).toHaveLength(1);
  const late = await start();
  await untilListed(late, video, before + 2);
  await same(late);
  await stopCleanly(late);

  again.child.kill("SIGINT");
  await until("the playlist has ended", async () => (await listAt(b, video)).isEnded);
  await same();
  await until("the channel is idle", async () => (await call("GET", MASTER)).status === 404);
  expect(await statusAt(b, channel)).toBe("idle");
  const [asset] = await until("the recording is an asset", async () => {
    const found = await assetsAt(b, channel);
    return found.length > 0 ? found : null;
  });
  await expectPlayable(b, channel, asset?.id as number);
  for (const server of [a, b]) {
    await stopCleanly(server);
    expect(server.stderr()).not.toMatch(/"level":(50|60)/);
  }
});

nightly("every server delivers the renditions that a worker encodes, until the stream has ended", async () => {
  const { b, start, rows } = await platform();
  const a = await start({ workers: 1 });
  const channel = await newChannel(a, { encoding_profile: "default" });
  const publishing = publish(a, channel, 300, { size: "640x360" });
  const smallAt = async (server: LiveServer) => (await playlistsAt(server)).find((path) => path.includes("/240p/"));
  const small = await until("the rendition is delivered", () => smallAt(b), RENDITION_LIMIT_MS);
  const manifestAt = async (server: LiveServer) => {
    const path = "/live/stage/manifest.mpd";
    return parseLiveManifest((await server.call("GET", path)).text, `${server.base}${path}`);
  };
  const inManifest = async (server: LiveServer) => {
    const { periods } = await manifestAt(server);
    const found = periods.at(-1)?.representations.find(({ id }) => id === "240p");
    return found && found.segments.length >= 3 ? { period: periods.at(-1), found } : null;
  };
  await until("it is in the manifest", () => inManifest(b), RENDITION_LIMIT_MS);
  // A server that begins later continues with the state in the database.
  const c = await start();
  for (const server of [b, c]) {
    const { period, found } = await until("it is listed", () => inManifest(server), RENDITION_LIMIT_MS);
    const { periods } = await manifestAt(a);
    expect(period?.startSeconds).toBe(periods.find(({ id }) => id === period?.id)?.startSeconds);
    for (const { url } of [{ url: found.init }, ...found.segments]) {
      const bytes = async (base: string) => (await fetch(new URL(new URL(url).pathname, base))).arrayBuffer();
      expect(Buffer.from(await bytes(server.base)).equals(Buffer.from(await bytes(a.base)))).toBe(true);
    }
    const listed = await untilListed(server, small, 3);
    const here = new Map((await listAt(a, small)).segments.map(({ number, date }) => [number, date]));
    for (const { number, date } of listed.segments.slice(-2)) expect(date).toBe(here.get(number));
    expect(await watch(`${server.base}${small}`, 3)).toBe("");
  }
  const clip = await b.as(channel.key).createLiveClip(channel.id, { last_seconds: 4 });
  expect(clip.status).toBe(201);
  publishing.child.kill("SIGINT");
  await until("the recording is an asset", async () => (await assetsAt(a, channel)).length === 2);
  // The renditions are deleted when no viewer reads them any more, and those of the recording stay.
  const garbage = await rows("SELECT object_key, due_at FROM unwanted_objects WHERE object_key LIKE '%/renditions/'");
  expect(garbage.map(({ due_at }) => Math.round((due_at - Date.now()) / 60_000))).toEqual([10]);
  for (const { id } of await assetsAt(a, channel)) await expectPlayable(b, channel, id);
});

nightly(
  "a signed channel needs its token on every server, and a stream without a recording is delivered too",
  async () => {
    const { a, b, rows } = await platform();
    const channel = await newChannel(a, { playback_policy: "signed", record: false });
    const publishing = publish(a, channel, 120);
    const { key, id } = channel;
    const { token } = (await b.as(key).createChannelToken(id, {})).body;
    const signed = `${MASTER}?token=${token}`;
    const [video] = await until("the stream is delivered", async () => {
      const found = await playlistsAt(b, signed);
      return found.length === 2 ? found : null;
    });
    expect(await watch(`${b.base}${signed}`, 2)).toBe("");
    const bare = (video as string).replace(/\/~[^/]+/, "");
    for (const path of [MASTER, bare, new URL("00001.m4s", `${b.base}${bare}`).pathname])
      expect((await b.call("GET", path)).status).toBe(403);
    publishing.child.kill("SIGINT");
    await until("the stream has ended", async () => (await statusAt(b, channel)) === "idle");
    await until(
      "nothing is recorded",
      async () => (await rows("SELECT finished_at FROM live_streams"))[0]?.finished_at,
    );
    expect(await assetsAt(b, channel)).toEqual([]);
    // Its segments are deleted soon.
    const [garbage] = await rows("SELECT due_at FROM unwanted_objects WHERE object_key LIKE '%/delivered/%'");
    expect(garbage?.due_at).toBeLessThan(Date.now() + 11 * 60_000);
    expect(await rows("SELECT 1 FROM live_reports")).not.toEqual([]);
    await rows("UPDATE live_streams SET ended_at = ended_at - 660000");
    await until("its reports are deleted", async () => (await rows("SELECT 1 FROM live_reports")).length === 0);
  },
);

nightly(
  "one publisher at a time, whatever the server: refused, taken over, or continued after a broken connection",
  async () => {
    const { a, b, rows } = await platform();
    const channel = await newChannel(a);
    const first = publish(a, channel, 120);
    await untilLive(b);
    const second = publish(b, channel, 10);
    expect((await second.exit)[0]).not.toBe(0);
    expect(second.stderr()).toContain("Another publisher is sending to this channel");
    expect(first.child.exitCode).toBeNull();

    const { key, id } = channel;
    await b.as(key).updateChannel(id, { takeover: true });
    const third = publish(b, channel, 120);
    expect((await first.exit)[0]).not.toBe(0);
    expect(first.stderr()).toContain("Another publisher has taken over the channel");
    expect(third.child.exitCode).toBeNull();
    const running = () => rows("SELECT name FROM live_streams WHERE ended_at IS NULL");
    const [taken] = await running();
    await until("the other server delivers the new stream", async () =>
      (await playlistsAt(a)).some((path) => path.includes(taken?.name)),
    );
    const recordings = (count: number) =>
      until(`${count} recordings are assets`, async () => (await assetsAt(b, channel)).length === count);
    await recordings(1);

    // Takeover is off again, and the connection breaks: any server continues.
    await b.as(key).updateChannel(id, { takeover: false });
    third.child.kill("SIGKILL");
    await third.exit;
    await until(
      "the interruption is known",
      async () => (await rows("SELECT interrupted_at FROM live_streams WHERE ended_at IS NULL"))[0]?.interrupted_at,
    );
    const fourth = publish(a, channel, 120);
    await until("another stream has begun", async () => {
      const [now] = await running();
      return now && now.name !== taken?.name;
    });
    await recordings(2);
    expect(fourth.child.exitCode).toBeNull();
    const [video] = await untilLive(b);
    // A server that is stopped ends its streams, and the others know it.
    await stopCleanly(a);
    await recordings(3);
    await until("its playlist ends", async () => (await listAt(b, video)).isEnded);
    expect((await b.call("GET", "/metrics", { admin: b.admin })).text).toMatch(/^vodbox_live_streams 0$/m);
    const events = await rows("SELECT type FROM events WHERE type LIKE 'live.stream.%'");
    expect(events.map(({ type }) => type).toSorted()).toEqual([
      ...Array(3).fill("live.stream.ended"),
      ...Array(3).fill("live.stream.started"),
    ]);
  },
);

nightly(
  "a server that is killed and never returns: the channel is idle, and another server completes the recording",
  async () => {
    const { a, b, start, rows, age } = await platform();
    const { channel, video } = await streaming(a, b, 3);
    a.child.kill("SIGKILL");
    await a.ended;
    // Its segments are in storage; its heartbeat is not old enough yet.
    expect(await statusAt(b, channel)).toBe("live");
    await age(60);
    await untilIdle(b, channel);
    expect((await stateAt(b)).status).toBe("ended");
    const { id, key } = channel;
    const playback = await b.as(key).getChannelPlayback(id);
    expect([playback.status, playback.error.code]).toEqual([422, "channel_idle"]);
    await until("its playlist ends", async () => (await listAt(b, video)).isEnded, 40_000);
    const listed = (await listAt(b, video)).segments.map(({ complete }) => complete?.durationSeconds ?? 0);
    expect(await assetsAt(b, channel)).toEqual([]);

    await age(200);
    const [asset] = await until(
      "the recording is an asset",
      async () => {
        const found = await assetsAt(b, channel);
        return found.length > 0 ? found : null;
      },
      40_000,
    );
    expect(asset?.duration_seconds).toBeGreaterThan(listed.reduce((sum, seconds) => sum + seconds, 0) - 0.1);
    await expectPlayable(b, channel, asset?.id as number);
    await until("its copy is deleted", () => foldersOf(b).length === 0);
    const events = await rows("SELECT type FROM events WHERE type LIKE 'live.%' ORDER BY id");
    expect(events.map(({ type }) => type)).toEqual([
      "live.channel.created",
      "live.stream.started",
      "live.stream.ended",
      "live.recording.ready",
    ]);

    const back = await start({ dataDir: a.dataDir });
    await until("it deletes its files", () => foldersOf(back).length === 0);
    expect(await assetsAt(back, channel)).toHaveLength(1);
    expect((await publish(back, channel, 3).exit)[0]).toBe(0);
    await until("the next stream is recorded", async () => (await assetsAt(b, channel)).length === 2);
  },
);

nightly(
  "a server that returns in time completes its recording itself, and one that was suspended ends its stream",
  async () => {
    const { a, b, start, rows, age } = await platform();
    const { channel } = await streaming(a, b, 2);
    a.child.kill("SIGKILL");
    await a.ended;
    await age(60);
    await untilIdle(b, channel);
    const back = await start({ dataDir: a.dataDir });
    await until("the recording is an asset", async () => (await assetsAt(b, channel)).length === 1);
    await until("it deletes its files", () => foldersOf(back).length === 0);

    const second = publish(back, channel, 120);
    const [path] = await untilLive(b);
    await untilListed(b, path, 2);
    back.child.kill("SIGSTOP");
    await age(60);
    await untilIdle(b, channel);
    back.child.kill("SIGCONT");
    expect((await second.exit)[0]).not.toBe(0);
    expect(second.stderr()).toContain("Publish again");
    await until("it is one recording", async () => (await assetsAt(b, channel)).length === 2);
    expect(await rows("SELECT id FROM live_streams WHERE finished_at IS NULL")).toEqual([]);
    const ended = await rows("SELECT id FROM events WHERE type = 'live.stream.ended'");
    expect(ended).toHaveLength(2);
  },
);

nightly(
  "the publisher of a server that was killed connects to another one, which does not wait for the first to return",
  async () => {
    const { a, b, rows } = await platform();
    const { channel, video } = await streaming(a, b, 2);
    a.child.kill("SIGKILL");
    await a.ended;
    await until("it is accepted", async () => (await publish(b, channel, 3).exit)[0] === 0, 60_000);
    await until("its stream is recorded", async () => (await assetsAt(b, channel)).length === 1);
    const streams = await rows("SELECT ended_at, finished_at FROM live_streams ORDER BY id");
    expect(streams).toEqual([
      { ended_at: expect.any(Number), finished_at: null },
      { ended_at: expect.any(Number), finished_at: expect.any(Number) },
    ]);
    expect((await listAt(b, video)).isEnded).toBe(true);
  },
);
