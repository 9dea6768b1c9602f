import { expect, test } from "vitest";
import { parseLivePlaylist } from "#test/support/hls-live-parser.ts";
import { LiveValidator } from "#test/support/hls-live-validator.ts";
import { textOf } from "#test/support/live/live-client.ts";
import { firstSegment, newChannel, publish } from "#test/support/live.ts";
import { lineOf } from "#test/support/process.ts";
import { opened, PROXY_NAMES, skipWithoutProxy, startBehind } from "#test/support/proxy.ts";

/** Parts of half a second that are followed. */
const PARTS = 12;

/** Follows a media playlist as players of LL-HLS do: with blocking requests, delta updates and the part of the preload hint. */
async function follow(url: string): Promise<void> {
  const validator = new LiveValidator();
  let text = await textOf(url);
  expect(validator.see(text)).toEqual([]);
  for (let count = 0; count < PARTS; count++) {
    const { hint } = parseLivePlaylist(text);
    const [msn = 0, part = 0] = (hint?.match(/\d+/g) ?? []).map(Number);
    const query = `?_HLS_msn=${msn}&_HLS_part=${part}&_HLS_skip=YES`;
    const [updated, hinted] = await Promise.all([textOf(url + query), fetch(new URL(hint as string, url))]);
    expect(validator.see(updated)).toEqual([]);
    const own = parseLivePlaylist(updated).segments.find(({ number }) => number === msn);
    expect(own?.parts[part]?.uri, query).toBe(hint);
    expect(hinted.status).toBe(200);
    expect(Buffer.from(await hinted.arrayBuffer()).toString("latin1", 4, 8)).toBe("moof");
    text = updated;
  }
}

test.for(PROXY_NAMES)("behind %s viewers follow a live stream with low latency", async (name, context) => {
  skipWithoutProxy(name, context);
  const { server } = await startBehind(name, { VODBOX_RTMP_PORT: "0" });
  const live = { ...server, rtmp: (await lineOf(server, /^live streams to (rtmp:\S+)$/m))[1] as string };
  const channel = await newChannel(live);
  await firstSegment(live, publish(live, channel, 60));
  const shown = async () => (await server.as(channel.key).getChannel(channel.id)).body;
  const { hls_url } = await shown();
  expect(hls_url).toBe(`${server.base}/live/stage/master.m3u8`);

  const uris = (await textOf(hls_url)).match(/[^"\n]+\/live\.m3u8/g) ?? [];
  expect(uris.length).toBe(2);
  await Promise.all(uris.map((uri) => follow(new URL(uri, hls_url).href)));

  const { answer, sending } = opened(hls_url, { localAddress: "127.0.0.2" });
  sending.end();
  expect((await answer).status).toBe(200);
  expect((await shown()).viewers).toBe(2);
});
