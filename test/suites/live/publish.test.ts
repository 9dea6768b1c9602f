import { globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { client } from "#test/support/client.ts";
import { succeeded } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import { aac, messagesOf, picture, sound, x264 } from "#test/support/live/cmaf-publisher.ts";
import { messagesFrom, PUBLISHERS, type Publisher, rtmpBytes } from "#test/support/live/publishers.ts";
import { command, RtmpClient } from "#test/support/live/rtmp-client.ts";
import { selfSigned } from "#test/support/live/self-signed.ts";
import {
  firstSegment,
  type LiveServer,
  liveServer,
  newChannel,
  publish,
  type TestChannel,
} from "#test/support/live.ts";
import { complaints } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf, stopCleanly } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";
import { signIn, withSession } from "#test/support/sessions.ts";
import { typedClient } from "#test/support/typed-client.ts";

/** The embedded gateway, from the first frame to the recording, with a server as an operator starts it. */

const assetsOf = async ({ as }: LiveServer, { key }: TestChannel) =>
  (await as(key).listAssets()).body as { id: number; duration_seconds: number }[];

const segmentsIn = ({ dataDir }: LiveServer) => globSync("live/*/180p/?????.m4s", { cwd: dataDir });

async function recordingOf(server: LiveServer, channel: TestChannel) {
  await until("the recording is an asset", async () => (await assetsOf(server, channel)).length === 1);
  const [asset] = await assetsOf(server, channel);
  return asset as { id: number; duration_seconds: number };
}

async function expectPlayable({ as }: LiveServer, { key }: TestChannel, id: number): Promise<void> {
  const playback = await as(key).getPlayback(id);
  expect(playback.status).toBe(200);
  for (const url of [playback.body.hls_url, playback.body.dash_url])
    expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
}

test("a stream becomes an asset as soon as its publisher ends it", async () => {
  const server = await liveServer({ env: { VODBOX_LOG_LEVEL: "info" } });
  const channel = await newChannel(server);
  // The URL of Mux's publishers, with the key alone; the next test has ours.
  const byKey = { rtmp: server.rtmp.replace(/live$/, "app") };
  expect((await publish(byKey, { ...channel, channel: channel.stream_key }, 7).exit)[0]).toBe(0);
  const asset = await recordingOf(server, channel);
  // A stream that is lost ends when its publisher could not reconnect for 30 s.
  expect(server.stderr()).toMatch(/"end":"unpublished".*"a publish has ended"/);
  expect(asset).toMatchObject({ playback_status: "ready", title: expect.stringMatching(/^stage, \d{4}-/) });
  expect(asset.duration_seconds).toBeCloseTo(7, 0);
  await expectPlayable(server, channel, asset.id);
  expect(globSync("live/*.recording", { cwd: server.dataDir })).toEqual([]);
  await stopCleanly(server);
});

test("events report the start, the end and the recording, to endpoints that name them", async () => {
  const server = await liveServer({ env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" } });
  const channel = await newChannel(server);
  const { as, admin } = server;
  const named = await receiver();
  const others = await receiver();
  const [tenant] = (await as({ admin }).listTenants()).body;
  const event_types = ["live.stream.started", "live.stream.ended", "live.recording.ready"];
  for (const fields of [{ url: named.url, event_types }, { url: others.url }])
    await as({ admin }).createWebhook({ tenant_id: tenant.id, ...fields });
  const publishing = publish(server, channel, 60);
  await until("the start is reported", () => named.received.length === 1);
  publishing.child.kill("SIGINT");
  await until("the end and the recording are reported", () => named.received.length === 3);
  const sent = named.received.map(({ json }) => json).toSorted((a, b) => a.created_at.localeCompare(b.created_at));
  expect(sent.map(({ type }) => type)).toEqual(event_types);
  const data = { channel_id: channel.id, channel: "stage", started_at: expect.stringMatching(/^\d{4}-.*Z$/) };
  const ended_at = sent[1].data.ended_at;
  expect(Date.parse(ended_at)).toBeGreaterThan(Date.parse(sent[0].data.started_at));
  expect(sent.map(({ data: own }) => own)).toEqual([
    data,
    { ...data, ended_at },
    { ...data, ended_at, asset_id: String((await recordingOf(server, channel)).id) },
  ]);
  await until("the other one has the event of the asset", () => others.received.length > 0);
  expect(others.received.map(({ json }) => json.type).filter((type) => type.startsWith("live."))).toEqual([]);
});

test("a channel has the URLs for encoders, and warns about a second track", async () => {
  const server = await liveServer({ env: { VODBOX_SRT_PORT: "0" } });
  const { id, key, stream_key, channel } = await newChannel(server);
  const read = async () => (await server.as(key).getChannel(id)).body;
  const port = Number(new URL(server.rtmp).port);
  const srt = (await lineOf(server, /^live streams to srt:\S+:(\d+)$/m))[1];
  expect((await read()).ingest).toEqual({
    rtmp_url: `rtmp://127.0.0.1:${port}/live`,
    rtmps_url: null,
    srt_url: `srt://127.0.0.1:${srt}`,
    whip_url: null,
  });
  const client = await RtmpClient.publish(port, { name: `${channel}?key=${stream_key}` });
  const second = PUBLISHERS.find(({ expected }) => expected?.warnings?.includes("track_ignored")) as Publisher;
  for (const sent of (await messagesFrom(second)).flat()) client.write(rtmpBytes(sent));
  const health = await until("the health has a warning", async () => {
    const { health: current } = await read();
    return current?.warnings.length > 0 ? current : null;
  });
  expect(health.warnings).toEqual([{ code: "track_ignored", message: expect.stringContaining("audio track") }]);
  client.destroy();
});

test("a publisher whose audio has a gap twice a second is one line in the log", async () => {
  const server = await liveServer({ env: { VODBOX_LOG_LEVEL: "info" } });
  const { channel, stream_key } = await newChannel(server);
  const port = Number(new URL(server.rtmp).port);
  const client = await RtmpClient.publish(port, { name: `${channel}?key=${stream_key}` });
  const messages = await messagesOf(...picture(8), ...sound(8), ...x264(60), ...aac);
  for (const message of messages) {
    const { sample } = message;
    if (sample?.kind !== "audio" || sample.timestamp % 500 >= 200) client.write(rtmpBytes(message));
  }
  client.write(command("deleteStream", 6, null, 1));
  await client.closed;
  await until("the stream has ended", () => server.stderr().includes('"a publish has ended"'));
  await stopCleanly(server);
  expect(server.stderr().match(/"code":"audio_gap"/g)).toHaveLength(1);
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

test("a stream ends by request, without waiting for its publisher, and a disabled channel has none", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const path = `/api/v1/live/channels/${channel.id}`;
  const send = (method: string, to: string, body?: object) =>
    server.call(method, path + to, { key: channel.key, ...(body && { body }) });
  expect((await send("POST", "/end")).status).toBe(422);
  await send("PATCH", "", { reconnect_seconds: 1800 });
  const lost = publish(server, channel, 60);
  await firstSegment(server, lost);
  lost.child.kill("SIGKILL");
  const notified = await notificationsOf(server);
  const signalLost = { kind: "live_signal_lost", data: { channel_id: channel.id, channel: "stage" } };
  await until("the loss is notified", async () => (await notified()).length === 1);
  expect(await notified()).toMatchObject([signalLost]);
  expect((await send("POST", "/end")).body).toMatchObject({ status: "live", reconnect_seconds: 1800 });
  await until("it is idle", async () => (await send("GET", "")).body.status === "idle");
  const next = publish(server, channel, 60);
  await until("it is live", async () => (await send("GET", "")).body.status === "live");
  expect((await send("PATCH", "", { enabled: false })).body.enabled).toBe(false);
  expect((await next.exit)[0]).not.toBe(0);
  expect((await publish(server, channel, 1).exit)[0]).not.toBe(0);
  await until("both are recorded", async () => (await assetsOf(server, channel)).length === 2);
  // An end that somebody chose is none.
  expect(await notified()).toHaveLength(1);
});

/** Reads the notifications of a new user of the only tenant. */
async function notificationsOf({ as, call, admin }: LiveServer) {
  const [tenant] = (await as({ admin }).listTenants()).body;
  const person = { email: "ann@example.com", password: "correct horse" };
  await as({ admin }).createTenantUser({ tenant_id: tenant.id, role: "viewer", ...person });
  const session = withSession({ call }, await signIn({ call }, person));
  return async () => (await session("GET", "/api/v1/me/notifications")).body as unknown[];
}

nightly("a publisher that comes back continues the stream", async () => {
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

nightly("a pause of the publisher is a discontinuity, and no segment becomes longer", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  // The timestamps of both tracks continue 7 s later, in the middle of a segment.
  const pause = "setts=ts=TS+7000*gte(TS\\,5500)";
  const publisher = publish(server, channel, 12, {
    video: x264(30, 0),
    audio: [...aac, "-bsf:v", pause, "-bsf:a", pause],
  });
  await firstSegment(server, publisher);
  const { body } = await server.as(channel.key).getChannel(channel.id);
  const master = await (await fetch(body.hls_url)).text();
  const url = new URL(/^[^#\s].*$/m.exec(master)?.[0] as string, body.hls_url);
  let playlist = "";
  await until("two segments follow the pause", async () => {
    playlist = await (await fetch(url)).text();
    return (playlist.split("#EXT-X-DISCONTINUITY\n")[1]?.match(/^#EXTINF/gm) ?? []).length === 2;
  });
  const target = Number(/#EXT-X-TARGETDURATION:(\d+)/.exec(playlist)?.[1]);
  const lengths = [...playlist.matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => Number(seconds));
  expect(Math.round(Math.max(...lengths))).toBeLessThanOrEqual(target);
  expect((await publisher.exit)[0]).toBe(0);
  const asset = await recordingOf(server, channel);
  // Up to a second is dropped, until a keyframe follows.
  expect(asset.duration_seconds).toBeGreaterThan(10.8);
  expect(asset.duration_seconds).toBeLessThan(12.2);
  await expectPlayable(server, channel, asset.id);
});

nightly("a server that stops completes the recordings of running streams", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  publish(server, channel, 60);
  await until("a segment is complete", async () => segmentsIn(server).length > 0, 30_000);
  await stopCleanly(server);
  const again = await liveServer({ dataDir: server.dataDir });
  const [asset] = await assetsOf(again, channel);
  expect(asset?.duration_seconds).toBeGreaterThan(1.9);
  await until("its files are deleted", async () => segmentsIn(again).length === 0);
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
  expect(asset.duration_seconds).toBeGreaterThan(3.9);
  await expectPlayable(again, channel, asset.id);
});

test("a clip of a running stream is an asset of its own, which stays when the stream continues", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const { as, call } = server;
  const { key, id } = channel;
  const idle = await as(key).createLiveClip(id, { last_seconds: 5 });
  expect([idle.status, idle.error.code]).toEqual([422, "channel_idle"]);
  const { exit } = publish(server, channel, 11);
  await until("four segments are complete", async () => segmentsIn(server).length > 3, 30_000);

  const last = await as(key).createLiveClip(id, { last_seconds: 2.5, title: "Goal" });
  expect(last.status).toBe(201);
  expect(last.body).toMatchObject({ title: "Goal", playback_status: "ready" });
  expect(last.body.duration_seconds).toBeCloseTo(4, 1);
  const middle = await as(key).createLiveClip(id, { start_seconds: 2.1, end_seconds: 3.9 });
  expect(middle.body.duration_seconds).toBeCloseTo(2, 1);
  const future = await as(key).createLiveClip(id, { start_seconds: 100, end_seconds: 110 });
  expect([future.status, future.error.code]).toEqual([422, "clip_not_possible"]);
  for (const body of [
    {},
    { start_seconds: 3 },
    { start_seconds: 3, end_seconds: 3 },
    { last_seconds: 0 },
    { last_seconds: 1, start_seconds: 0 },
  ])
    expect((await as(key).createLiveClip(id, body)).status).toBe(422);

  expect((await exit)[0]).toBe(0);
  await until("the recording is an asset", async () => (await assetsOf(server, channel)).length === 3);
  for (const clip of [last.body, middle.body]) await expectPlayable(server, channel, clip.id);
  // DASH players begin where the presentation does, not where the stream began.
  const playback = await as(key).getPlayback(middle.body.id);
  const mpd = (await call("GET", playback.body.dash_url)).text;
  const timescale = Number(/<SegmentTemplate timescale="(\d+)"/.exec(mpd)?.[1]);
  expect(Number(/presentationTimeOffset="(\d+)"/.exec(mpd)?.[1]) / timescale).toBeCloseTo(2, 1);
  expect(mpd).toContain('startNumber="2"');
  expect(globSync("live/*.clip-*", { cwd: server.dataDir })).toEqual([]);
});

nightly("the health of a stream says what it measures, and what to change", async () => {
  const server = await liveServer();
  const channel = await newChannel(server);
  const { key, id } = channel;
  const show = async () => (await server.as(key).getChannel(id)).body;
  expect(await show()).toMatchObject({ status: "idle", health: null, started_at: null });
  publish(server, channel, 60, { video: x264(150, 0) });
  const live = await until("two keyframes are measured", async () => {
    const found = await show();
    return found.health?.keyframe_seconds ? found : null;
  });
  expect(live.status).toBe("live");
  expect(live.health.keyframe_seconds).toBeCloseTo(5, 1);
  expect(live.health.frame_rate).toBeCloseTo(30, 0);
  expect(live.health.bitrate).toBeGreaterThan(100_000);
  expect(live.health.advice.join()).toContain("Set the keyframe interval of the encoder to 2 s");
  const env = { VODBOX_ADMIN_TOKEN: server.admin };
  const shown = await succeeded(["admin", "live", "show", "stage", "--data", server.dataDir], { env });
  expect(shown.stdout).toMatch(/^health +\d\.\d\d Mbit\/s, (29|30)(\.\d+)? frames\/s, keyframes every 5 s/m);
  expect(shown.stdout).toMatch(/^Keyframes are 5\.0 s apart.* Set the keyframe interval of the encoder to 2 s/m);
  expect(shown.stdout).toMatch(/^captions +–$/m);
});

nightly("the health of a stream counts the frames that the encoder has dropped", async () => {
  const server = await liveServer();
  const whole = await newChannel(server);
  const { key } = whole;
  const dropping = (await server.as(key).createChannel({ channel: "dropping" })).body;
  const health = async ({ id }: { id: number }) => (await server.as(key).getChannel(id)).body.health;
  publish(server, whole, 60);
  // Three of each 60 frames are missing, in a row.
  const drop = ["-vf", "select='lt(mod(n,60),57)'", "-fps_mode", "passthrough"];
  publish(server, dropping, 60, { video: [...drop, ...x264(30, 0)] });
  const measured = await until(
    "ten seconds are measured",
    async () => {
      const found = await health(dropping);
      return found?.dropped_frames > 12 ? found : null;
    },
    30_000,
  );
  expect(measured.dropped_frames % 3).toBe(0);
  expect(measured.dropped_frames).toBeLessThanOrEqual(18);
  expect(measured.advice.join()).toContain(`${measured.dropped_frames} frames of the last 10 s are missing`);
  expect((await health(whole)).dropped_frames).toBe(0);
  const shown = await succeeded(["admin", "live", "show", "dropping", "--data", server.dataDir], {
    env: { VODBOX_ADMIN_TOKEN: server.admin },
  });
  expect(shown.stdout).toMatch(/^health +\d\.\d\d Mbit\/s, [\d.]+ frames\/s, \d+ frames missing, /m);
  expect(shown.stdout).toMatch(/^\d+ frames of the last 10 s are missing\. /m);
});

nightly("a publisher uses TLS with the certificate of the server", async () => {
  const folder = newFolder();
  const pair = await selfSigned();
  const cert = join(folder, "cert.pem");
  const key = join(folder, "key.pem");
  writeFileSync(cert, pair.cert);
  writeFileSync(key, pair.key);
  const server = await liveServer({ env: { VODBOX_RTMPS_PORT: "0", VODBOX_TLS_CERT: cert, VODBOX_TLS_KEY: key } });
  const rtmp = (await lineOf(server, /^live streams to (rtmps:\S+)$/m))[1] as string;
  // Without TLS, for commands on the same machine: no authority has signed the certificate.
  const { address } = JSON.parse(readFileSync(join(server.dataDir, "server.json"), "utf8"));
  const call = client(address);
  const local = { ...server, rtmp, call, as: typedClient(call) };
  const channel = await newChannel(local);
  expect((await publish(local, channel, 3).exit)[0]).toBe(0);
  expect((await recordingOf(local, channel)).duration_seconds).toBeCloseTo(3, 0);
});
