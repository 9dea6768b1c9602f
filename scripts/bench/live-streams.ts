import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type CpuShare, cpuShare } from "./cpu-share.ts";
import { watchTogether } from "./live-audience.ts";
import { publishClock } from "./live-clock.ts";
import { watchLive } from "./live-viewer.ts";
import { ADMIN, call, EXECUTABLE, tenantWithKey, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";

/** That of the system: the bundled one reads no raw frames. */
const FFMPEG = "ffmpeg";
/** Seconds that each latency is measured. */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 300);
const WARM_UP_SECONDS = 10;
const SHARE_SECONDS = 60;
const VIEWERS = Number(process.env.VODBOX_BENCH_VIEWERS ?? 500);
const AUDIENCE_SECONDS = 30;

type Server = { base: string; rtmp: string; share: CpuShare; key: string; stop(): Promise<void> };

async function startLive(data: string): Promise<Server> {
  const share = cpuShare("live", 2);
  const args = ["serve", "--data", data, "--port", "0", "--workers", "0", "--log-level", "warn"];
  const child = spawn("sh", ["-c", `${share.join} && exec "$0" "$@"`, EXECUTABLE, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, VODBOX_ADMIN_TOKEN: ADMIN, VODBOX_RTMP_PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const found = new Map<string, string>();
  await new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, kind, url] = /(ready on|streams to) (\S+)/.exec(line) ?? [];
      if (kind && url) found.set(kind, url);
      if (found.size === 2) resolve();
    });
  });
  const base = found.get("ready on") as string;
  return {
    base,
    rtmp: found.get("streams to") as string,
    share,
    key: (await tenantWithKey(base)).key,
    async stop() {
      child.kill("SIGTERM");
      await closed;
      share.remove();
    },
  };
}

type Channel = { id: number; hls_url: string; stream_key: string };
const newChannel = ({ base, key }: Server, channel: string, fields: object = {}) =>
  call<Channel>(
    base,
    "POST",
    "/api/v1/live/channels",
    { channel, playback_policy: "public", ...fields },
    { "x-api-key": key },
  );

async function untilLive({ base, key }: Server, { id }: Channel): Promise<void> {
  for (;;) {
    const path = `/api/v1/live/channels/${id}`;
    const { status } = await call<{ status: string }>(base, "GET", path, undefined, { "x-api-key": key });
    if (status === "live") return sleep(3000);
    await sleep(100);
  }
}

const p95 = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)] as number;

const PLAYERS = [
  { name: "LL-HLS, hls.js", isLow: true, options: { lowLatencyMode: true, maxLiveSyncPlaybackRate: 1.5 }, limit: 3 },
  { name: "LL-HLS, hls.js with its defaults", isLow: true, options: {}, limit: 3 },
  { name: "plain HLS, hls.js", isLow: false, options: { lowLatencyMode: false }, limit: 8 },
];

/**
 * Live streams from the encoder to the screen: latency from a clock in the image to Chromium on the same machine, and the
 * processor time of a stream without viewers.
 */
export async function benchLiveStreams(): Promise<Result[]> {
  const work = workFolder();
  const server = await startLive(join(work.path, "data"));
  const results: Result[] = [];
  const fixed = (name: string, ours: number, limit: number, unit: string, note?: string) =>
    results.push(
      compare(
        name,
        { ours: [ours], theirs: [limit] },
        { reference: "fixed limit", unit, bar: { atMost: 1 }, ...(note && { note }) },
      ),
    );
  try {
    for (const [index, { name, isLow, options, limit }] of PLAYERS.entries()) {
      const channel = `clock-${index}`;
      const created = await newChannel(server, channel, { low_latency: isLow });
      const publisher = publishClock(FFMPEG, `${server.rtmp}/${channel}?key=${created.stream_key}`);
      await untilLive(server, created);
      const limits = { seconds: SECONDS, warmUpSeconds: WARM_UP_SECONDS };
      const { samples, stalledMs, firstFrameMs } = await watchLive(created.hls_url, options, limits);
      const median = samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] as number;
      fixed(`${name}: latency, p95 over ${SECONDS} s`, p95(samples) / 1000, limit, "s", `median ${median / 1000} s`);
      fixed(`${name}: without progress`, stalledMs / 1000, 0.5, "s", `first frame ${Math.round(firstFrameMs)} ms`);
      await publisher.stop();
    }
    const created = await newChannel(server, "passthrough");
    const source = [
      "-re",
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=1920x1080:r=30",
      "-re",
      "-f",
      "lavfi",
      "-i",
      "sine=r=48000",
    ];
    const video = [
      "-c:v",
      "libx264",
      "-preset",
      "ultrafast",
      "-b:v",
      "4500k",
      "-minrate",
      "4500k",
      "-maxrate",
      "4500k",
    ];
    const coding = [...video, "-bufsize", "4500k", "-nal-hrd", "cbr", "-g", "60", "-c:a", "aac", "-b:a", "160k"];
    const target = `${server.rtmp}/passthrough?key=${created.stream_key}`;
    const child = spawn(FFMPEG, ["-nostdin", "-v", "error", ...source, ...coding, "-f", "flv", target]);
    await untilLive(server, created);
    const before = server.share.usedSeconds();
    const from = performance.now();
    await sleep(SHARE_SECONDS * 1000);
    const share = (server.share.usedSeconds() - before) / ((performance.now() - from) / 1000);
    fixed("1080p30 of 4.7 Mbit/s without viewers: processor share", share * 100, 3, "% of a core");
    child.kill("SIGTERM");
    const watched = await newChannel(server, "audience");
    const publisher = publishClock(FFMPEG, `${server.rtmp}/audience?key=${watched.stream_key}`);
    await untilLive(server, watched);
    const used = server.share.usedSeconds();
    const audience = await watchTogether(watched.hls_url, VIEWERS, AUDIENCE_SECONDS);
    const cores = (server.share.usedSeconds() - used) / AUDIENCE_SECONDS;
    const rate = Math.round(audience.requests / AUDIENCE_SECONDS);
    const load = `${rate} requests/s, ${Math.round((audience.bytes * 8) / AUDIENCE_SECONDS / 1e6)} Mbit/s, ${cores.toFixed(2)} cores`;
    fixed(`${VIEWERS} viewers of LL-HLS: media late by at most`, audience.latest, 1.5, "s", load);
    fixed(`${VIEWERS} viewers of LL-HLS: that would stall`, audience.stalled, 0.5, "viewers");
    await publisher.stop();
    return results;
  } finally {
    await server.stop();
    work.remove();
  }
}
