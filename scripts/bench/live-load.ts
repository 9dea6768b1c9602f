import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { descendantsOf } from "#test/support/descendants.ts";
import { WhipClient } from "#test/support/live/whip-client.ts";
import { audioOf, signalAudio, videoOf } from "#test/support/live/whip-media.ts";
import { ffmpeg } from "#test/support/media/sources.ts";
import { call, memoryOf, type Running, secondsOf, startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";

/** Publishers are independent of vodbox: the ffmpeg of the system. */
const FFMPEG = "ffmpeg";
const COUNTS = (process.env.VODBOX_BENCH_STREAMS ?? "1,5,10,20,30").split(",").map(Number);
/** Seconds that each number of streams is measured. */
const SECONDS = Number(process.env.VODBOX_BENCH_SECONDS ?? 30);
const SETTLE_SECONDS = 8;
const MEBIBYTE = 2 ** 20;
/** Seconds of the source, which RTMP and SRT repeat; WHIP sends it once. */
const SOURCE_SECONDS = SECONDS + SETTLE_SECONDS + 10;

const PORTS = { VODBOX_RTMP_PORT: "0", VODBOX_SRT_PORT: "0", VODBOX_WHIP_PORT: "0" };
/** Percent of a core for each stream, without the encoder of its audio: the goals of RTMP, which SRT has too, and of WHIP. */
const GOALS = { rtmp: 3, srt: 3, whip: 6 };
type Protocol = keyof typeof GOALS;
type Channel = { id: number; stream_key: string; ingest: { rtmp_url: string; srt_url: string; whip_url: string } };
type Source = { file: string; video: Awaited<ReturnType<typeof videoOf>>; audio: Awaited<ReturnType<typeof audioOf>> };

const IMAGES = ["-f", "lavfi", "-i", `testsrc2=s=1920x1080:r=30:d=${SOURCE_SECONDS}`];

/** 1080p30 with 4.5 Mbit/s and AAC, in a file, and the same images as packets of WHIP. */
async function sourceIn(folder: string): Promise<Source> {
  const file = join(folder, "source.mkv");
  const rate = ["-b:v", "4500k", "-minrate", "4500k", "-maxrate", "4500k", "-bufsize", "4500k", "-nal-hrd", "cbr"];
  const video = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "60", "-sc_threshold", "0"];
  await ffmpeg(...IMAGES, ...signalAudio(SOURCE_SECONDS), ...video, ...rate, "-c:a", "aac", "-b:a", "160k", file);
  const packets = await videoOf([...IMAGES, ...rate], 60);
  const audio = await audioOf(signalAudio(SOURCE_SECONDS));
  return { file, video: packets, audio };
}

/** Publishes until it is stopped. */
function publish(protocol: Protocol, { stream_key, ingest }: Channel, channel: string, source: Source): () => void {
  if (protocol === "whip") {
    const base = new URL(ingest.whip_url).origin;
    const client = WhipClient.connect({ base, channel, key: stream_key });
    void client.then((connected) => connected.publish(source));
    return () => void client.then((connected) => connected.abandon());
  }
  const target =
    protocol === "rtmp"
      ? ["-f", "flv", `${ingest.rtmp_url}/${channel}?key=${stream_key}`]
      : ["-f", "mpegts", `${ingest.srt_url}?streamid=publish:live/${channel}:key=${stream_key}&latency=200000`];
  const input = ["-re", "-stream_loop", "-1", "-i", source.file, "-c", "copy"];
  const child = spawn(FFMPEG, ["-nostdin", "-v", "error", ...input, ...target], { stdio: "ignore" });
  return () => void child.kill("SIGKILL");
}

/** The processes of a server by what they do, without those that end soon. */
function processesOf({ child }: Running): { server: number[]; ingest: number[]; audio: number[] } {
  const pid = child.pid as number;
  const all = descendantsOf(pid);
  const ingest = all.filter(({ command }) => command.includes("ingest")).map((one) => one.pid);
  const audio = all.filter(({ command }) => command.includes("ffmpeg")).map((one) => one.pid);
  return { server: [pid], ingest, audio };
}

async function measure(protocol: Protocol, count: number, source: Source): Promise<Result> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"), {
    env: { ...PORTS, VODBOX_RTMP_CONNECTIONS_PER_ADDRESS: "100" },
  });
  const { key } = await tenantWithKey(server.base);
  const api = <T>(method: string, path: string, body?: object) =>
    call<T>(server.base, method, `/api/v1/live/channels${path}`, body, { "x-api-key": key });
  const stops: (() => void)[] = [];
  const channels: Channel[] = [];
  try {
    for (let index = 0; index < count; index++) {
      const channel = `load-${index}`;
      const created = await api<Channel>("POST", "", { channel });
      channels.push(created);
      stops.push(publish(protocol, created, channel, source));
      await sleep(100);
    }
    await sleep(SETTLE_SECONDS * 1000);
    for (const { id } of channels) {
      const { status } = await api<{ status: string }>("GET", `/${id}`);
      if (status !== "live") throw new Error(`A ${protocol} stream of ${count} is ${status}.`);
    }
    const pids = processesOf(server);
    const used = () => Object.values(pids).map((some) => some.reduce((sum, pid) => sum + secondsOf(pid), 0));
    const before = used();
    const from = performance.now();
    await sleep(SECONDS * 1000);
    const seconds = (performance.now() - from) / 1000;
    const shares = used().map((value, index) => ((value - (before[index] as number)) / seconds / count) * 100);
    const [own = 0, ingest = 0, audio = 0] = shares;
    const memory = [...pids.server, ...pids.ingest].map((pid) => Math.round(memoryOf(pid, "VmRSS") / MEBIBYTE));
    const parts = `server ${own.toFixed(2)}, ingest ${ingest.toFixed(2)}, audio ${audio.toFixed(2)}; ${memory.join(" and ")} MiB`;
    process.stderr.write(`live-load: ${protocol}, ${count}: ${parts}\n`);
    const about = { reference: "fixed limit", unit: "% of a core for each stream", bar: { atMost: 1 }, note: parts };
    return compare(`${count} streams over ${protocol}`, { ours: [own + ingest], theirs: [GOALS[protocol]] }, about);
  } finally {
    for (const stop of stops) stop();
    await server.stop();
    work.remove();
  }
}

/**
 * Processor time and memory of 1 to 30 recorded streams of 1080p30 without viewers (`VODBOX_BENCH_STREAMS`), each a fresh server.
 */
export async function benchLiveLoad(): Promise<Result[]> {
  const work = workFolder();
  const results: Result[] = [];
  try {
    const source = await sourceIn(work.path);
    for (const protocol of (process.env.VODBOX_BENCH_PROTOCOLS ?? "rtmp,srt,whip").split(",") as Protocol[])
      for (const count of COUNTS) results.push(await measure(protocol, count, source));
    return results;
  } finally {
    work.remove();
  }
}
