import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";
import { complaints, ffprobe } from "#test/support/media/sources.ts";

/** From a publisher to viewers, with a server as an operator starts it. */

const bytesOf = async (url: string, headers: Record<string, string> = {}) => {
  const response = await fetch(url, { headers });
  expect([url, response.ok]).toEqual([url, true]);
  return Buffer.from(await response.arrayBuffer());
};

test("a signed channel is watched while it is live, in parts and in segments, until it ends", async () => {
  const server = await liveServer();
  const channel = await newChannel(server, { playback_policy: "signed", record: false });
  const api = server.as(channel.key);
  const publishing = publish(server, channel, 12);
  await until("the channel is live", async () => (await api.getChannel(channel.id)).body.status === "live", 30_000);
  const { hls_url: url, dash_url, token } = (await api.getChannelPlayback(channel.id)).body;

  const master = (await bytesOf(url)).toString();
  expect((await fetch(url.replace(/\?.*/, ""))).status).toBe(403);
  const video = new URL(/^.*\dp\/.*$/m.exec(master)?.[0] as string, url).href;
  expect(video).toContain(`/live/stage/~${token}/`);
  const { hint } = parseLivePlaylist((await bytesOf(video)).toString());
  // The request waits for the part, which is on its way from the publisher.
  const part = await bytesOf(new URL(hint as string, video).href);
  const number = Number.parseInt(hint as string, 10);
  const { segments } = parseLivePlaylist((await bytesOf(`${video}?_HLS_msn=${number}`)).toString());
  const uri = segments.find((segment) => segment.number === number)?.complete?.uri as string;
  const segment = await bytesOf(new URL(uri, video).href);
  const offset = segment.indexOf(part);
  expect(offset).toBeGreaterThan(0);
  const range = { range: `bytes=${offset}-${offset + part.length - 1}` };
  expect((await bytesOf(new URL(uri, video).href, range)).equals(part)).toBe(true);
  expect((await api.getChannel(channel.id)).body.viewers).toBe(1);

  // A player that knows nothing of parts, until the end of the stream.
  const entries = ["-count_packets", "-show_entries", "stream=codec_type,nb_read_packets", "-of", "csv=p=0"];
  const [frames, faults, dashFaults] = await Promise.all([
    ffprobe("-live_start_index", "0", ...entries, url),
    complaints("-live_start_index", "0", "-i", url, "-f", "null", "-"),
    // Not to the end: ffmpeg 5.1 requests the segment after the last one for ever.
    complaints("-i", dash_url, "-t", "3", "-f", "null", "-"),
  ]);
  expect(dashFaults).toBe("");
  expect((await publishing.exit)[0]).toBe(0);
  // ffmpeg 5.1 reads the init segment again with each playlist, and says so, or that it has repeated itself. What it repeats is
  // listed before.
  expect(faults.split("\n").filter((line) => !/duplicated MOOV|Last message repeated|^$/.test(line))).toEqual([]);
  expect(frames).toMatch(/^video,360$/m);
  await until("the channel is idle", async () => (await api.getChannel(channel.id)).body.status === "idle");
  expect((await fetch(url)).status).toBe(404);
});
