import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import {
  carriageReturn,
  defineWindow,
  deleteWindows,
  displayWindows,
  packetOf,
  textCodes,
  withPackets,
} from "#test/support/live/closed-captions.ts";
import { messagesOf, picture } from "#test/support/live/cmaf-publisher.ts";
import { liveServer, newChannel } from "#test/support/live.ts";
import { publishVideo } from "./paced-publisher.ts";

/** The publisher repeats its video. */
const ROUND_SECONDS = 4;
const TEXT = "FISH & <CHIPS>\nat eight";

const text = async (url: string) => {
  const response = await fetch(url);
  expect([url, response.status]).toEqual([url, 200]);
  return response.text();
};

test("captions that a publisher sends as CEA-708 only are subtitles of the stream, and of its recording", async () => {
  const server = await liveServer({ workers: 1 });
  const channel = await newChannel(server, { encoding_profile: "default" });
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "30", "-sc_threshold", "0"];
  const [first = "", second = ""] = TEXT.split("\n");
  const lines = [...textCodes(first), carriageReturn, ...textCodes(second)];
  const messages = withPackets(await messagesOf(...picture(ROUND_SECONDS), ...encoder), {
    // The main service is announced by a packet without text.
    0: packetOf([[1, [0]]]),
    500: packetOf([[1, [...defineWindow(), ...lines]]]),
    1000: packetOf([[1, displayWindows(1)]]),
    3000: packetOf([[1, deleteWindows(1)]]),
  });
  await publishVideo(server, channel, { codec: "h264", messages, seconds: ROUND_SECONDS });
  const master = `${server.base}/live/${channel.channel}/master.m3u8`;
  await until("the stream has segments", async () => (await fetch(master)).status === 200, 60_000);
  const listed = await text(master);
  const uri = /^#EXT-X-MEDIA:TYPE=SUBTITLES,.*NAME="SERVICE1",.*URI="(.+\/service1\/live\.m3u8)"$/m.exec(listed)?.[1];
  expect(listed.match(/TYPE=SUBTITLES/g)).toHaveLength(1);
  const playlist = new URL(uri as string, master).href;
  const cues = await until(
    "captions are shown",
    async () => {
      const names = (await text(playlist)).match(/^\d+\.vtt$/gm) ?? [];
      const parts = await Promise.all(names.map((name) => text(new URL(name, playlist).href)));
      const found = parts.join("\n").match(/-->.*\n.+\n.+/g) ?? [];
      return found.length >= 4 ? found : null;
    },
    60_000,
  );
  const words = cues.map((cue) => cue.split("\n").slice(1).join("\n"));
  expect(new Set(words)).toEqual(new Set(["FISH &amp; &lt;CHIPS&gt;\nat eight"]));

  await server.as(channel.key).endLiveStream(channel.id);
  const get = async (path: string) => (await server.call("GET", path, { key: channel.key })).body;
  const { id } = await until("the recording", async () => (await get("/api/v1/assets"))[0] ?? null, 60_000);
  const [subtitle, ...others] = await get(`/api/v1/assets/${id}/subtitles?include=content`);
  expect(others).toEqual([]);
  expect(subtitle).toMatchObject({ language: "und", status: "ready" });
  const [start, end] = /00:00:(\d\d\.\d{3}) --> 00:00:(\d\d\.\d{3})/.exec(subtitle.content)?.slice(1).map(Number) ?? [];
  // The frame that shows the window, and the one that deletes it.
  expect(start).toBeCloseTo(1, 1);
  expect(end).toBeCloseTo(3, 1);

  // The encode of the recording finds the same captions in its video.
  const isEncoded = async () => (await get(`/api/v1/transcoding_jobs?asset_id=${id}`))[0]?.status === "completed";
  await until("the recording is encoded", isEncoded, 120_000);
  expect(await get(`/api/v1/assets/${id}/subtitles`)).toMatchObject([{ id: subtitle.id, language: "und" }]);
});
