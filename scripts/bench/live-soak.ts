import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { descendantsOf } from "#test/support/descendants.ts";
import { type LiveFault, LiveValidator } from "#test/support/hls-live-validator.ts";
import { ADMIN, call, EXECUTABLE, memoryOf, tenantWithKey, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";
import { slopeOf } from "./soak.ts";

const run = promisify(execFile);
/** Publishers are independent of vodbox: the ffmpeg of the system. */
const FFMPEG = "ffmpeg";
const SECONDS = Number(process.env.VODBOX_SOAK_SECONDS ?? 3600);
const POLL_MS = 2000;
const REPORT_EVERY_MS = 60_000;
const BREAK_EVERY_MS = 240_000;
const BREAK_MS = 5000;
/** From the newest segment to the present, at most: the longest GOP here and a segment that a break has ended. */
const LATE_SECONDS = 25;
const TRACKS_DIFFER_SECONDS = 0.5;
const MEBIBYTE = 2 ** 20;

type Kind = {
  name: string;
  protocol?: "srt";
  /** The connection breaks and comes back. */
  breaks?: true;
  video: readonly string[] | null;
  /** Options of the output. */
  output?: readonly string[];
};

const x264 = (seconds: number, bFrames = 0) => [
  ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "300k", "-sc_threshold", "0"],
  ...["-force_key_frames", `expr:gte(t,n_forced*${seconds})`, "-g", "1000", "-bf", String(bFrames)],
];
/** Timestamps, which are milliseconds in FLV, jump ahead by 7 s every two minutes. */
const JUMP = "setts=ts=TS+trunc(TS/120000)*7000";

const KINDS: readonly Kind[] = [
  { name: "reconnects", breaks: true, video: x264(2, 2), output: ["-b_strategy", "0"] },
  { name: "srt-reconnects", protocol: "srt", breaks: true, video: x264(2) },
  { name: "keyframes-1-s", video: x264(1) },
  { name: "keyframes-10-s", video: x264(10, 2) },
  {
    name: "variable-rate",
    video: [...x264(2), "-vf", "select=not(mod(n\\,3))+lt(mod(n\\,300)\\,150)", "-fps_mode", "vfr"],
  },
  { name: "audio-only", video: null },
  // 2^32 ms are 4,294,967 s: they wrap after ten minutes.
  {
    name: "rtmp-wraps",
    video: x264(2, 2),
    output: ["-output_ts_offset", String(4_294_967 - Math.min(600, SECONDS / 2))],
  },
  // 2^33 / 90,000 are 95,443 s.
  {
    name: "srt-wraps",
    protocol: "srt",
    video: x264(2),
    output: ["-output_ts_offset", String(95_443 - Math.min(600, SECONDS / 2))],
  },
  { name: "jumps", video: x264(2), output: ["-bsf:v", JUMP, "-bsf:a", JUMP] },
];

type Server = { child: ChildProcess; base: string; rtmp: string; srt: string; key: string };
type Channel = { id: number; channel: string; hls_url: string; stream_key: string };

async function startLive(data: string): Promise<Server> {
  const args = ["serve", "--data", data, "--port", "0", "--workers", "0", "--log-level", "warn"];
  const ports = { VODBOX_RTMP_PORT: "0", VODBOX_SRT_PORT: "0" };
  const child = spawn(EXECUTABLE, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, VODBOX_ADMIN_TOKEN: ADMIN, ...ports },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const found: Record<string, string> = {};
  await new Promise<void>((resolve, reject) => {
    child.once("exit", () => reject(new Error("The server ended.")));
    createInterface({ input: child.stdout }).on("line", (line) => {
      for (const [url, scheme = ""] of line.matchAll(/(http|rtmp|srt):\/\/[^\s,]+/g)) found[scheme] ??= url;
      if (found.http && found.rtmp && found.srt) resolve();
    });
  });
  const { http: base = "", rtmp = "", srt = "" } = found;
  return { child, base, rtmp, srt, key: (await tenantWithKey(base)).key };
}

/** One channel with its publisher, and what its viewer has seen. */
class Soaked {
  readonly faults: string[] = [];
  readonly kind: Kind;
  readonly #server: Server;
  readonly #channel: Channel;
  readonly #validators = new Map<string, LiveValidator>();
  #publisher: ChildProcess | null = null;
  #isBroken = false;
  #publishedMs = 0;
  #since = 0;
  polls = 0;

  private constructor(kind: Kind, server: Server, channel: Channel) {
    this.kind = kind;
    this.#server = server;
    this.#channel = channel;
  }

  static async create(kind: Kind, server: Server): Promise<Soaked> {
    const fields = { channel: kind.name, playback_policy: "public", dvr_seconds: 300 };
    const headers = { "x-api-key": server.key };
    return new Soaked(kind, server, await call<Channel>(server.base, "POST", "/api/v1/live/channels", fields, headers));
  }

  get #target(): string[] {
    const { channel, stream_key } = this.#channel;
    if (this.kind.protocol === "srt") {
      const { host } = new URL(this.#server.srt);
      return ["-f", "mpegts", `srt://${host}?streamid=publish:live/${channel}:key=${stream_key}&latency=1000000`];
    }
    return ["-f", "flv", `${this.#server.rtmp}/${channel}?key=${stream_key}`];
  }

  publish(): void {
    const { video, output = [] } = this.kind;
    const testVideo = ["-re", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=30"];
    const tone = ["-re", "-f", "lavfi", "-i", "sine=r=48000"];
    const args = [...(video ? testVideo : []), ...tone, ...(video ?? []), "-c:a", "aac", "-b:a", "64k", ...output];
    this.#publisher = spawn(FFMPEG, ["-nostdin", "-v", "error", ...args, ...this.#target], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    this.#since = performance.now();
  }

  async #stop(signal: "SIGINT" | "SIGKILL"): Promise<void> {
    const publisher = this.#publisher as ChildProcess;
    if (publisher.exitCode !== null) this.faults.push(`The publisher has ended with ${publisher.exitCode}.`);
    else {
      publisher.kill(signal);
      await once(publisher, "close");
    }
    this.#publishedMs += performance.now() - this.#since;
  }

  /** The connection breaks, and the publisher comes back. */
  async break(): Promise<void> {
    if (!this.kind.breaks) return;
    this.#isBroken = true;
    await this.#stop("SIGKILL");
    await sleep(BREAK_MS);
    this.publish();
    await sleep(BREAK_MS);
    this.#isBroken = false;
  }

  /** Reads all playlists as a viewer does, and checks them. */
  async poll(): Promise<void> {
    try {
      const master = await this.#read(this.#channel.hls_url);
      const uris = [...master.matchAll(/^[^#\s].*$|URI="([^"]+)"/gm)].map(([line, uri]) => uri ?? line);
      for (const uri of new Set(uris)) {
        const url = new URL(uri, this.#channel.hls_url).href;
        this.#check(uri, await this.#read(url));
      }
      this.polls++;
    } catch (error) {
      this.faults.push(String(error));
    }
  }

  #check(uri: string, text: string): void {
    const validator = this.#validators.get(uri) ?? new LiveValidator();
    this.#validators.set(uri, validator);
    const named = ({ rule, message }: LiveFault) => `${uri}: ${rule}: ${message}`;
    this.faults.push(...validator.see(text).map(named));
    const dates = [...text.matchAll(/^#EXT-X-PROGRAM-DATE-TIME:(.*)$/gm)].map(([, date]) => Date.parse(date as string));
    const late = (Date.now() - (dates.at(-1) ?? 0)) / 1000;
    if (!this.#isBroken && late > LATE_SECONDS) this.faults.push(`${uri}: the newest segment is ${late} s old.`);
  }

  async #read(url: string): Promise<string> {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${response.status} for ${new URL(url).pathname}`);
    return response.text();
  }

  /** Ends the stream, and checks its recording. */
  async finish(): Promise<{ readySeconds: number; tracksDiffer: number }> {
    await this.#stop("SIGINT");
    const { base, key } = this.#server;
    const from = performance.now();
    const list = () =>
      call<{ id: number; title: string; playback_status: string; duration_seconds: number }[]>(
        base,
        "GET",
        "/api/v1/assets?limit=100",
        undefined,
        { "x-api-key": key },
      );
    let assets = await list();
    const ours = () => assets.filter(({ title }) => title.startsWith(`${this.kind.name}, `));
    for (; ours().every(({ playback_status }) => playback_status !== "ready"); assets = await list()) {
      if (performance.now() - from > 60_000) throw new Error(`${this.kind.name} has no recording.`);
      await sleep(50);
    }
    const readySeconds = (performance.now() - from) / 1000;
    const [asset, ...others] = ours();
    if (others.length > 0 || !asset) this.faults.push(`It has ${others.length + 1} recordings.`);
    const id = asset?.id as number;
    const published = this.#publishedMs / 1000;
    const { duration_seconds } = asset as { duration_seconds: number };
    // A publisher starts within a second or two, and what was in flight is lost with a connection.
    const slack = 3 + 3 * Math.floor((SECONDS * 1000) / BREAK_EVERY_MS);
    if (Math.abs(duration_seconds - published) > slack)
      this.faults.push(`The recording lasts ${duration_seconds} s, of ${published.toFixed(1)} s published.`);
    const { hls_url } = await call<{ hls_url: string }>(base, "GET", `/api/v1/playback/${id}`, undefined, {
      "x-api-key": key,
    });
    const { stderr } = await run(FFMPEG, ["-nostdin", "-v", "error", "-i", hls_url, "-map", "0", "-f", "null", "-"]);
    if (stderr !== "") this.faults.push(`The recording: ${stderr.slice(0, 300)}`);
    return { readySeconds, tracksDiffer: await this.#tracksDiffer(hls_url) };
  }

  /** Seconds between the lengths of the tracks, by their playlists. */
  async #tracksDiffer(master: string): Promise<number> {
    const text = await this.#read(master);
    const uris = [...text.matchAll(/^[^#\s].*$|URI="([^"]+m3u8[^"]*)"/gm)].map(([line, uri]) => uri ?? line);
    const lengths = await Promise.all(
      [...new Set(uris)].map(async (uri) => {
        const list = await this.#read(new URL(uri, master).href);
        return [...list.matchAll(/^#EXTINF:([\d.]+)/gm)].reduce((sum, [, seconds]) => sum + Number(seconds), 0);
      }),
    );
    const differ = Math.max(...lengths) - Math.min(...lengths);
    if (differ > TRACKS_DIFFER_SECONDS) this.faults.push(`The lengths of its tracks differ by ${differ} s.`);
    return differ;
  }
}

/**
 * Streams of all kinds at once, for an hour: connections that break, timestamps that wrap and jump, keyframes every 1 to
 * 10 s, a variable frame rate, no video. Playlists are validated every two seconds, recordings decoded at the end.
 */
export async function benchLiveSoak(): Promise<Result[]> {
  const work = workFolder();
  const server = await startLive(join(work.path, "data"));
  const streams = await Promise.all(KINDS.map((kind) => Soaked.create(kind, server)));
  const memory = { server: [] as { at: number; bytes: number }[], ingest: [] as { at: number; bytes: number }[] };
  const from = performance.now();
  try {
    for (const stream of streams) stream.publish();
    await sleep(10_000);
    const pid = server.child.pid as number;
    const ingest = descendantsOf(pid).find(({ command }) => command.includes("ingest"))?.pid ?? pid;
    let breakAt = from + BREAK_EVERY_MS;
    let reportAt = from;
    const breaks: Promise<void>[] = [];
    while (performance.now() < from + SECONDS * 1000) {
      const next = performance.now() + POLL_MS;
      await Promise.all(streams.map((stream) => stream.poll()));
      const at = (performance.now() - from) / 60_000;
      memory.server.push({ at, bytes: memoryOf(pid, "VmRSS") });
      memory.ingest.push({ at, bytes: memoryOf(ingest, "VmRSS") });
      // Not in the last half minute, so that each stream is continued before its end.
      if (performance.now() >= breakAt && performance.now() < from + SECONDS * 1000 - 30_000) {
        breakAt += BREAK_EVERY_MS;
        breaks.push(...streams.map((stream) => stream.break()));
      }
      if (performance.now() >= reportAt) {
        reportAt += REPORT_EVERY_MS;
        const sizes = [memory.server, memory.ingest].map((one) => Math.round((one.at(-1)?.bytes ?? 0) / MEBIBYTE));
        const faults = streams.map(({ kind, faults }) => `${kind.name} ${faults.length}`).join(", ");
        process.stderr.write(`live-soak, ${Math.round(at)} min: ${sizes.join(" and ")} MiB; faults: ${faults}\n`);
      }
      await sleep(Math.max(0, next - performance.now()));
    }
    await Promise.all(breaks);
    const ends = [];
    for (const stream of streams) ends.push(await stream.finish());
    return results(streams, ends, memory);
  } finally {
    for (const { kind, faults } of streams)
      for (const fault of faults.slice(0, 20)) process.stderr.write(`${kind.name}: ${fault}\n`);
    server.child.kill("SIGTERM");
    await once(server.child, "close");
    work.remove();
  }
}

function results(
  streams: readonly Soaked[],
  ends: readonly { readySeconds: number; tracksDiffer: number }[],
  memory: Record<"server" | "ingest", { at: number; bytes: number }[]>,
): Result[] {
  const fixed = (name: string, ours: number, limit: number, unit: string, note?: string) =>
    compare(
      `${KINDS.length} streams for ${SECONDS} s: ${name}`,
      { ours: [ours], theirs: [limit] },
      { reference: "fixed limit", unit, bar: { atMost: 1 }, ...(note && { note }) },
    );
  const faults = streams.reduce((sum, one) => sum + one.faults.length, 0);
  const polls = streams.reduce((sum, { polls }) => sum + polls, 0);
  const peak = (of: { bytes: number }[]) =>
    `at most ${Math.round(Math.max(...of.map(({ bytes }) => bytes)) / MEBIBYTE)} MiB`;
  return [
    fixed("faults in playlists and recordings", faults, 0.5, "", `${polls} validations`),
    fixed("end to recording", Math.max(...ends.map(({ readySeconds }) => readySeconds)), 2, "s"),
    fixed("difference of the tracks' lengths", Math.max(...ends.map((one) => one.tracksDiffer)), 0.5, "s"),
    fixed("growth of the server's memory", slopeOf(memory.server), 1, "MiB/min", peak(memory.server)),
    fixed("growth of the ingest process's memory", slopeOf(memory.ingest), 1, "MiB/min", peak(memory.ingest)),
  ];
}
