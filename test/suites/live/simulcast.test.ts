import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { amfObject } from "#src/lib/rtmp/amf0.ts";
import { descendantsOf, until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { command, handshakeBytes } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { selfSigned } from "#test/support/live/self-signed.ts";
import { type LiveServer, liveServer, newChannel, publish, publishSrt, type TestChannel } from "#test/support/live.ts";
import { complaints, ffmpeg, ffprobe } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { lineOf } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";

/** Streams that are sent to other servers, with servers as an operator starts them. */

const LOCAL = { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" };
type Target = {
  id: number;
  status: string;
  error: string | null;
  sent_bytes: number;
  dropped_frames: number;
  status_changed_at: string | null;
};

async function newTarget({ as }: LiveServer, channel: TestChannel, body: object): Promise<Target> {
  const created = await as(channel.key).unchecked.createSimulcastTarget(channel.id, body);
  expect(created.status).toBe(201);
  return created.body;
}

const targetsOf = async ({ as }: LiveServer, channel: TestChannel): Promise<Target[]> =>
  (await as(channel.key).listSimulcastTargets(channel.id)).body;

/** The first target, once it is as expected. */
const targetThat = (server: LiveServer, channel: TestChannel, isExpected: (target: Target) => boolean) =>
  until(
    "the target is as expected",
    async () => {
      const [target] = await targetsOf(server, channel);
      return target && isExpected(target) ? target : null;
    },
    60_000,
  );

/** A second server, with a channel, and the fields of a target that publishes to it. */
async function receivingServer(env: Record<string, string> = {}) {
  const server = await liveServer({ env });
  const channel = await newChannel(server);
  return { server, channel, target: { url: server.rtmp, stream_key: `${channel.channel}?key=${channel.stream_key}` } };
}

async function recordingUrl({ as }: LiveServer, { key }: TestChannel): Promise<string> {
  const assets = async () => (await as(key).listAssets()).body as { id: number }[];
  await until("the recording is an asset", async () => (await assets()).length === 1);
  const [asset] = await assets();
  return (await as(key).getPlayback(asset?.id)).body.hls_url;
}

/** Composition times and hashes of all frames or packets of a track, in order. */
const samplesOf = async (url: string, track: "v" | "a"): Promise<string[]> =>
  (await ffmpeg("-i", url, "-map", `0:${track}:0`, "-c", "copy", "-f", "framehash", "-"))
    .toString()
    .split("\n")
    .filter((line) => /^0,/.test(line))
    .map((line) => line.split(",").map((field) => field.trim()))
    .map(([, dts, pts, , , hash]) => `${Number(pts) - Number(dts)} ${hash}`);

async function expectSameRecordings(source: [LiveServer, TestChannel], copy: [LiveServer, TestChannel]) {
  const own = await recordingUrl(...source);
  const theirs = await recordingUrl(...copy);
  const video = await samplesOf(own, "v");
  expect(video.length).toBeGreaterThan(100);
  expect(await samplesOf(theirs, "v")).toEqual(video);
  const audio = await samplesOf(own, "a");
  const copied = await samplesOf(theirs, "a");
  // A target begins with the first frame of video.
  expect(copied.length).toBeGreaterThan(audio.length - 15);
  expect(copied).toEqual(audio.slice(-copied.length));
  expect(await complaints("-i", theirs, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
}

/** A server that reads nothing but the beginning: with `accepts`, up to the publish, which it accepts. */
async function silentServer({ accepts = false } = {}) {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on("error", () => {});
    atEnd(() => socket.destroy());
    if (!accepts) return;
    socket.write(
      Buffer.concat([
        handshakeBytes(),
        command("_result", 1, null, amfObject({ level: "status", code: "NetConnection.Connect.Success" })),
        command("_result", 4, null, 1),
        command("onStatus", 0, null, amfObject({ level: "status", code: "NetStream.Publish.Start" })),
      ]),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(() => void server.close());
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/** The most memory that a process has used, in MiB. */
function peakMemory(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

test("every frame of an RTMP publisher arrives at another server, and is counted as egress", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const copy = await receivingServer();
  await newTarget(source, channel, copy.target);
  expect((await targetsOf(source, channel))[0]?.status).toBe("idle");
  const publisher = publish(source, channel, 8);
  const live = await targetThat(source, channel, ({ status, sent_bytes }) => status === "live" && sent_bytes > 0);
  expect(live).toMatchObject({ error: null, dropped_frames: 0, status_changed_at: expect.any(String) });
  expect((await publisher.exit)[0]).toBe(0);
  await targetThat(source, channel, ({ status, sent_bytes }) => status === "idle" && sent_bytes === 0);
  await expectSameRecordings([source, channel], [copy.server, copy.channel]);
  const egress = async () => (await source.as(channel.key).listTenants()).body[0].egress_bytes;
  await until("what was sent is counted", async () => (await egress()) > live.sent_bytes);
});

nightly("a publisher over SRT is sent on as well, with B-frames", async () => {
  const source = await liveServer({ env: { ...LOCAL, VODBOX_SRT_PORT: "0" } });
  const srt = (await lineOf(source, /^live streams to (srt:\S+)$/m))[1] as string;
  const channel = await newChannel(source);
  const copy = await receivingServer();
  await newTarget(source, channel, copy.target);
  expect((await publishSrt({ srt }, channel, 8).exit)[0]).toBe(0);
  await expectSameRecordings([source, channel], [copy.server, copy.channel]);
});

nightly("ffmpeg as target receives a stream that it can decode", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const port = await freePort();
  const file = join(emptyFolder(), "received.mkv");
  const url = `rtmp://127.0.0.1:${port}/app`;
  const listener = spawn("ffmpeg", ["-v", "error", "-listen", "1", "-i", `${url}/key`, "-c", "copy", file], {
    stdio: "ignore",
  });
  atEnd(() => listener.kill("SIGKILL"));
  const received = once(listener, "exit");
  await newTarget(source, channel, { url: `${url}/key` });
  expect((await publish(source, channel, 6).exit)[0]).toBe(0);
  expect((await received)[0]).toBe(0);
  expect(await complaints("-i", file, "-f", "null", "-")).toBe("");
  const counted = await ffprobe(
    "-count_packets",
    "-show_entries",
    "stream=codec_name,nb_read_packets",
    "-of",
    "csv=p=0",
    file,
  );
  const [video, audio] = counted.trim().split("\n");
  expect(video).toMatch(/^h264,1[78]\d$/);
  expect(audio).toMatch(/^aac,2\d\d$/);
});

nightly("a target that is down is tried again, and begins with a keyframe", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const port = await freePort();
  const first = await receivingServer({ VODBOX_RTMP_PORT: String(port) });
  const { dataDir } = first.server;
  first.server.child.kill("SIGTERM");
  await first.server.ended;
  await newTarget(source, channel, first.target);
  const publisher = publish(source, channel, 60);
  const down = await targetThat(source, channel, ({ status }) => status === "failed");
  expect(down.error).toContain("ECONNREFUSED");
  const again = await liveServer({ dataDir, env: { VODBOX_RTMP_PORT: String(port) } });
  await targetThat(source, channel, ({ status, error }) => status === "live" && error === null);
  await until("it is live there", async () => {
    const { body } = await again.as(first.channel.key).getChannel(first.channel.id);
    return body.status === "live" && Date.now() - Date.parse(body.started_at) > 3000;
  });
  publisher.child.kill("SIGINT");
  const url = await recordingUrl(again, first.channel);
  expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
});

test("a failure and the recovery are one event each, however often the target is tried, and metrics count", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const { admin, as, call } = source;
  const named = await receiver();
  const others = await receiver();
  const [tenant] = (await as({ admin }).listTenants()).body;
  const event_types = ["live.target.failed", "live.target.recovered"];
  for (const fields of [{ url: named.url, event_types }, { url: others.url }])
    await as({ admin }).createWebhook({ tenant_id: tenant.id, ...fields });
  const metric = async (sample: string) => {
    const line = (await call("GET", "/metrics", { admin })).text
      .split("\n")
      .find((each) => each.startsWith(`${sample} `));
    return Number(line?.slice(sample.length + 1));
  };
  expect(await metric('vodbox_simulcast_targets{state="live"}')).toBe(0);
  const port = await freePort();
  const secret = "live_secret-of-the-target";
  const created = await newTarget(source, channel, {
    url: `rtmp://127.0.0.1:${port}/app`,
    stream_key: secret,
    name: "Other service",
  });
  publish(source, channel, 60);
  await until("it was tried again", async () => (await metric("vodbox_simulcast_failures_total")) >= 3, 60_000);
  expect(await metric('vodbox_simulcast_targets{state="failed"}')).toBe(1);
  await until("the failure is reported", () => named.received.length > 0);
  await startRtmp({ port });
  await until("the recovery is reported", () => named.received.length > 1, 60_000);
  await until("it is live", async () => (await metric('vodbox_simulcast_targets{state="live"}')) === 1);
  await until("what is sent is counted", async () => (await metric("vodbox_simulcast_sent_bytes_total")) > 10_000);
  expect(await metric('vodbox_simulcast_targets{state="failed"}')).toBe(0);
  const sent = named.received.map(({ json }) => json).toSorted((a, b) => a.created_at.localeCompare(b.created_at));
  const data = { channel_id: channel.id, channel: "stage", target_id: created.id, target: "Other service" };
  const time = expect.stringMatching(/^\d{4}-.*Z$/);
  expect(sent.map(({ type, data: own }) => [type, own])).toEqual([
    ["live.target.failed", { ...data, failed_at: time, error: expect.stringContaining("ECONNREFUSED") }],
    ["live.target.recovered", { ...data, recovered_at: time }],
  ]);
  expect(JSON.stringify(sent)).not.toContain(secret);
  expect(others.received).toEqual([]);
});

nightly("a wrong stream key is reported with the server's reason, and is in no list and no log", async () => {
  const source = await liveServer({ env: { ...LOCAL, VODBOX_LOG_LEVEL: "debug" } });
  const channel = await newChannel(source);
  const copy = await receivingServer();
  const secret = "live_not-the-right-key";
  await newTarget(source, channel, { ...copy.target, stream_key: `${copy.channel.channel}?key=${secret}` });
  const publisher = publish(source, channel, 60);
  const failed = await targetThat(source, channel, ({ status }) => status === "failed");
  expect(failed.error).toContain("The channel or its stream key is wrong");
  expect(publisher.child.exitCode).toBe(null);
  expect(JSON.stringify(await targetsOf(source, channel))).not.toContain(secret);
  expect(source.stdout() + source.stderr()).toContain("a simulcast target failed");
  expect(source.stdout() + source.stderr()).not.toContain(secret);
  // A new key is tried at once.
  const { stream_key } = copy.target;
  await source.as(channel.key).updateSimulcastTarget(channel.id, failed.id, { stream_key });
  await targetThat(source, channel, ({ status, error }) => status === "live" && error === null);
  // A disabled one is disconnected, which ends its stream.
  await source.as(channel.key).updateSimulcastTarget(channel.id, failed.id, { enabled: false });
  await targetThat(source, channel, ({ status }) => status === "idle");
  expect(publisher.child.exitCode).toBe(null);
});

test("a name that resolves to a private address is refused at the connection", async () => {
  const source = await liveServer();
  const channel = await newChannel(source);
  const { port, connections } = await silentServer();
  await newTarget(source, channel, { url: `rtmp://localhost:${port}/app`, stream_key: "key" });
  publish(source, channel, 60);
  const failed = await targetThat(source, channel, ({ status }) => status === "failed");
  expect(failed.error).toBe("localhost does not resolve to a public IP address; use a public host.");
  expect(connections()).toBe(0);
});

nightly("the deletion of a target and the end of the stream close its connection", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const copy = await receivingServer();
  const { id } = await newTarget(source, channel, copy.target);
  const publisher = publish(source, channel, 60);
  await targetThat(source, channel, ({ status }) => status === "live");
  const shown = async () => {
    return (await copy.server.as(copy.channel.key).getChannel(copy.channel.id)).body;
  };
  await until("it is live there", async () => (await shown()).health);
  await source.as(channel.key).deleteSimulcastTarget(channel.id, id);
  // A publisher that has disconnected has no health.
  await until("it has no publisher any more", async () => (await shown()).health === null);
  expect(publisher.child.exitCode).toBe(null);
});

nightly("a target that stops reading loses frames; the stream and its memory do not notice", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const { port } = await silentServer({ accepts: true });
  await newTarget(source, channel, { url: `rtmp://127.0.0.1:${port}/app`, stream_key: "key" });
  // 20 Mbit/s: 10 s of it are more than the buffers of the sockets.
  const noise = ["-vf", "noise=alls=100:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-g", "30"];
  const rate = ["-b:v", "20M", "-minrate", "20M", "-maxrate", "20M", "-bufsize", "4M", "-pix_fmt", "yuv420p"];
  const publisher = publish(source, channel, 40, { video: [...noise, ...rate], size: "640x360" });
  await targetThat(source, channel, ({ status }) => status === "live");
  const ingest = descendantsOf(source.child.pid as number).find(({ command }) => command.includes("live-ingest"));
  expect(ingest).toBeDefined();
  const slow = await targetThat(source, channel, ({ dropped_frames }) => dropped_frames > 0);
  expect(slow.status).toBe("live");
  const failed = await targetThat(source, channel, ({ status }) => status === "failed");
  expect(failed.error).toBe("The server does not read what it is sent.");
  expect(peakMemory(ingest?.pid as number)).toBeLessThan(350);
  expect((await publisher.exit)[0]).toBe(0);
  expect((await samplesOf(await recordingUrl(source, channel), "v")).length).toBe(40 * 30);
});

nightly("RTMPS needs a valid certificate", async () => {
  const pair = await selfSigned();
  const { port, recorders } = await startRtmp({ tls: pair });
  const ca = join(emptyFolder(), "ca.pem");
  writeFileSync(ca, pair.cert);
  for (const isTrusted of [false, true]) {
    const source = await liveServer({ env: { ...LOCAL, ...(isTrusted && { NODE_EXTRA_CA_CERTS: ca }) } });
    const channel = await newChannel(source);
    await newTarget(source, channel, { url: `rtmps://localhost:${port}/app`, stream_key: "key" });
    publish(source, channel, 60);
    const target = await targetThat(source, channel, ({ status }) => status === (isTrusted ? "live" : "failed"));
    if (!isTrusted) expect(target.error).toMatch(/^The TLS connection failed \(\w+\)\.$/);
    expect(recorders).toHaveLength(isTrusted ? 1 : 0);
  }
});

nightly("a publisher that comes back continues the stream at the target", async () => {
  const source = await liveServer({ env: LOCAL });
  const channel = await newChannel(source);
  const copy = await receivingServer();
  await newTarget(source, channel, copy.target);
  const first = publish(source, channel, 60);
  await targetThat(source, channel, ({ status, sent_bytes }) => status === "live" && sent_bytes > 100_000);
  first.child.kill("SIGKILL");
  await first.exit;
  expect((await publish(source, channel, 4).exit)[0]).toBe(0);
  const url = await recordingUrl(copy.server, copy.channel);
  expect(await complaints("-i", url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-")).toBe("");
});

nightly("with several processes, each shows the status, and changes reach the one that receives", async () => {
  const source = await liveServer({ env: { ...LOCAL, VODBOX_PROCESSES: "2" } });
  const channel = await newChannel(source);
  const { port, recorders } = await startRtmp();
  const publishing = () => publish(source, channel, 60);
  let publisher = publishing();
  // The process that receives streams knows a channel that another one has created within a second.
  const state = async () => (await source.as(channel.key).getChannel(channel.id)).body;
  await until("it is live", async () => {
    if (publisher.child.exitCode !== null) publisher = publishing();
    return (await state()).status === "live";
  });
  const { id } = await newTarget(source, channel, { url: `rtmp://127.0.0.1:${port}/app`, stream_key: "key" });
  await targetThat(source, channel, ({ status }) => status === "live");
  await until("both processes show it", async () => {
    const shown = await Promise.all(Array.from({ length: 10 }, () => targetsOf(source, channel)));
    return shown.every(([target]) => target?.status === "live");
  });
  await source.as(channel.key).deleteSimulcastTarget(channel.id, id);
  expect(await recorders[0]?.ended).toBe("disconnected");
});
