import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { expect } from "vitest";
import { until } from "./descendants.ts";
import { atEnd, newFolder } from "./folder.ts";
import { parseLivePlaylist } from "./hls-live-parser.ts";
import { aac, picture, sound, x264 } from "./live/cmaf-publisher.ts";
import { lineOf, type RunningServer, startServer, tenantKey } from "./process.ts";

/** A server with live ingest. `rtmp` is the URL that publishers use, without the stream key. */
export type LiveServer = RunningServer & { rtmp: string };

/** Its data directory may have a tenant already. */
export async function liveServer({
  dataDir = newFolder(),
  env = {},
  workers = 0,
}: {
  dataDir?: string;
  env?: Record<string, string>;
  workers?: number;
} = {}): Promise<LiveServer> {
  const server = await startServer(dataDir, {
    env: { VODBOX_RTMP_PORT: "0", ...env },
    args: ["--workers", String(workers)],
  });
  return { ...server, rtmp: (await lineOf(server, /^live streams to (rtmp:\S+)$/m))[1] as string };
}

/** A channel of a tenant, with a key of the tenant. */
export type TestChannel = { id: number; channel: string; stream_key: string; key: string };

/** A public channel of a new tenant. */
export async function newChannel(server: LiveServer, fields: Record<string, unknown> = {}): Promise<TestChannel> {
  const key = await tenantKey(server);
  const body = { channel: "stage", playback_policy: "public", ...fields };
  const created = await server.as(key).createChannel(body);
  expect(created.status).toBe(201);
  return { ...created.body, key };
}

/** Waits for the first complete segment of a stream; fails at once when its publisher has exited. */
export async function firstSegment({ dataDir }: Pick<LiveServer, "dataDir">, { child, stderr }: Publishing) {
  await until(
    "a segment is complete",
    async () => {
      if (child.exitCode !== null) throw new Error(`The publisher exited with ${child.exitCode}: ${stderr()}`);
      return globSync("live/*/180p/?????.m4s", { cwd: dataDir }).length > 0;
    },
    60_000,
  );
}

export type Publishing = { child: ChildProcess; exit: Promise<unknown[]>; stderr: () => string };

type PublishOptions = { video?: string[]; audio?: string[]; size?: string; url?: string };

/** ffmpeg publishes `seconds` of H.264 and AAC, by default 320x180, in real time, with a keyframe every second. */
export function publish(
  { rtmp }: Pick<LiveServer, "rtmp">,
  { channel, stream_key }: Pick<TestChannel, "channel" | "stream_key">,
  seconds: number,
  options: PublishOptions = {},
): Publishing {
  return publishTo(["-f", "flv", `${rtmp}/${channel}?key=${stream_key}`], seconds, options);
}

/** The same over SRT. `srt` is the URL that publishers use, without the stream id; `url` of the options is appended to it. */
export function publishSrt(
  { srt }: { srt: string },
  { channel, stream_key }: Pick<TestChannel, "channel" | "stream_key">,
  seconds: number,
  options: PublishOptions = {},
): Publishing {
  // By default a caller waits 3 s for its connection, and drops what is late by 120 ms; a busy machine exceeds both.
  const timeouts = "linger=30&connect_timeout=30000&latency=10000000";
  const target = `${srt}?streamid=publish:live/${channel}:key=${stream_key}&${timeouts}${options.url ?? ""}`;
  return publishTo(["-f", "mpegts", target], seconds, options);
}

/** The master playlist of the channel that `newChannel` creates. */
export const MASTER = "/live/stage/master.m3u8";

/** Paths of the media playlists of the running stream, video first. */
export async function playlistsAt({ base, call }: LiveServer, path = MASTER): Promise<string[]> {
  const { status, text } = await call("GET", path);
  if (status !== 200) return [];
  const uris = [...text.matchAll(/^[^#\n].*$|(?<=URI=")[^"]+/gm)].map(([uri]) => uri);
  return uris.map((uri) => new URL(uri, `${base}${path}`).pathname).toSorted((one) => (one.includes("audio") ? 1 : -1));
}

/** The media playlist at a path, as a player reads it. */
export const listAt = async ({ call }: LiveServer, path: string) => parseLivePlaylist((await call("GET", path)).text);

/** Resolves with the playlist once it has so many complete segments. */
export const untilListed = (server: LiveServer, path: string, count: number) =>
  until(`${count} segments are listed`, async () => {
    const list = await listAt(server, path);
    return list.segments.filter(({ complete }) => complete).length >= count ? list : null;
  });

/** Resolves with the paths of the video and the audio playlist once the server delivers both. */
export const untilLive = (server: LiveServer) =>
  until("the stream is delivered", async () => {
    const found = await playlistsAt(server);
    return found.length === 2 ? (found as [string, string]) : null;
  });

function publishTo(output: string[], seconds: number, options: PublishOptions): Publishing {
  const { video = x264(30), audio = aac, size } = options;
  // Without options there is no such track.
  const inputs = [video.length > 0 ? picture(seconds, 30, size) : [], audio.length > 0 ? sound(seconds) : []];
  const sources = inputs.flatMap((input) => (input.length > 0 ? ["-re", ...input] : []));
  const args = ["-nostdin", "-v", "error", ...sources, ...video, ...audio, ...output];
  const child = spawn("ffmpeg", args, { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  atEnd(() => child.kill("SIGKILL"));
  return { child, exit: once(child, "exit"), stderr: () => stderr };
}
