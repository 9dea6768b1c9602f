import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import type { Endpoint } from "#test/support/live/whip-client.ts";
import { type LiveServer, newChannel, type TestChannel } from "#test/support/live.ts";
import { startServer } from "#test/support/process.ts";

export type WhipServer = Omit<LiveServer, "rtmp">;

export const whipServer = (env: Record<string, string> = {}): Promise<WhipServer> =>
  startServer(newFolder(), {
    env: { VODBOX_WHIP_PORT: "0", VODBOX_LOG_LEVEL: "info", ...env },
    args: ["--workers", "0"],
  });

export async function whipChannel(
  server: WhipServer,
  fields: Record<string, unknown> = {},
): Promise<TestChannel & { endpoint: Endpoint }> {
  const channel = await newChannel(server as LiveServer, fields);
  return { ...channel, endpoint: { base: server.base, channel: channel.channel, key: channel.stream_key } };
}

export const shown = async ({ as }: WhipServer, { id, key }: TestChannel) => (await as(key).getChannel(id)).body;

export const untilStatus = (server: WhipServer, channel: TestChannel, status: "live" | "idle") =>
  until(`the channel is ${status}`, async () => {
    const found = await shown(server, channel);
    return found.status === status ? found : null;
  });

type Asset = { id: number; duration_seconds: number; playback_status: string; height: number };

/** The recordings of a channel's tenant, once there are so many. */
export const recordingsOf = ({ as }: WhipServer, { key }: TestChannel, count = 1): Promise<Asset[]> =>
  until("the recording is an asset", async () => {
    const assets = (await as(key).listAssets()).body as Asset[];
    return assets.length >= count && assets.every(({ playback_status }) => playback_status === "ready") ? assets : null;
  });

export async function hlsOf({ as }: WhipServer, { key }: TestChannel, { id }: Asset): Promise<string> {
  return (await as(key).getPlayback(id)).body.hls_url;
}

/** When the signals of `signalVideo` and `signalAudio` begin, in seconds of what plays. */
export async function signalsOf(url: string): Promise<{ video: number[]; audio: number[] }> {
  const filters = ["-vf", "blackdetect=d=0.3:pix_th=0.3", "-af", "silencedetect=n=-35dB:d=0.3"];
  const { stderr } = await promisify(execFile)(
    "ffmpeg",
    ["-nostdin", "-v", "info", "-i", url, ...filters, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-"],
    { maxBuffer: 64 * 2 ** 20 },
  );
  const times = (pattern: RegExp) => [...stderr.matchAll(pattern)].map(([, time]) => Number(time));
  return { video: times(/black_end:([\d.]+)/g), audio: times(/silence_end: ([\d.]+)/g) };
}
