import { expect, test } from "vitest";
import { until } from "../support/descendants.ts";
import { parseLivePlaylist } from "../support/hls-live-parser.ts";
import { liveServer, newChannel, publish } from "../support/live.ts";

/** Renditions that a worker encodes while a stream runs. */

test("a worker encodes the renditions of a running stream", async () => {
  const server = await liveServer({ workers: 1 });
  const channel = await newChannel(server, { encoding_profile: "default" });
  publish(server, channel, 120, { size: "640x360" });
  const get = async (url: string) => {
    const response = await fetch(url);
    return { status: response.status, text: await response.text() };
  };
  const master = `${server.base}/live/stage/master.m3u8`;
  const text = await until(
    "the rendition is listed",
    async () => {
      const { text } = await get(master);
      return text.includes("/240p/") ? text : null;
    },
    30_000,
  );
  console.log(text);
  const uris = text.match(/^[^#\n]+$/gm) ?? [];
  for (let round = 0; round < 3; round++) {
    for (const uri of uris) {
      const playlist = await get(new URL(uri, master).href);
      console.log(uri, playlist.text);
      parseLivePlaylist(playlist.text);
    }
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
  expect(uris.length).toBe(2);
});
