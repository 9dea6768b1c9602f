import { expect, test } from "vitest";
import { publishVideo } from "#test/suites/live/paced-publisher.ts";
import { until } from "#test/support/descendants.ts";
import { picture } from "#test/support/live/cmaf-publisher.ts";
import { completeSegments, framesOf, playlistUrl, RENDITION_LIMIT_MS, textOf } from "#test/support/live/live-client.ts";
import { messagesOfMp4 } from "#test/support/live/mp4-messages.ts";
import { liveServer, newChannel } from "#test/support/live.ts";
import { LiveManifestValidator, parseLiveManifest } from "#test/support/live-manifest.ts";

/** Publishers of codecs that many players cannot decode: a worker encodes H.264 for those. */

const SECONDS = 6;

test.each([
  [
    "hevc",
    /CODECS="hvc1\.[^"]+"/,
    ["-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"],
    ["-x265-params", "keyint=30:bframes=2:open-gop=0:log-level=none:pools=1"],
  ],
  ["av1", /CODECS="av01\.[^"]+"/, ["-c:v", "libsvtav1", "-preset", "12"], ["-g", "30"]],
] as const)("%s has a smaller rendition in H.264, with the same frames", async (codec, codecs, encoder, options) => {
  const input = [...picture(SECONDS, 30, "640x360"), "-pix_fmt", "yuv420p"];
  const messages = await messagesOfMp4(codec, ...input, ...encoder, ...options);
  const server = await liveServer({ workers: 1 });
  const channel = await newChannel(server, { encoding_profile: "default" });
  await publishVideo(server, channel, { codec, messages, seconds: SECONDS });
  const small = await until("the rendition is listed", () => playlistUrl(server, "240p"), RENDITION_LIMIT_MS);
  const source = (await playlistUrl(server, "360p")) as string;
  const variants = (await textOf(`${server.base}/live/stage/master.m3u8`)).split("\n");
  const infoOf = (track: string) => variants[variants.findIndex((line) => line.includes(`/${track}/`)) - 1];
  expect(infoOf("360p")).toMatch(codecs);
  expect(infoOf("240p")).toMatch(/CODECS="avc1\.[^"]+".*RESOLUTION=426x240/);
  const names = await until(
    "three segments are complete",
    async () => {
      const found = (await completeSegments(small)).map(({ complete }) => complete?.uri as string);
      return found.length >= 3 ? found.slice(-3) : null;
    },
    RENDITION_LIMIT_MS,
  );
  const frames = await framesOf(small, names);
  expect(frames.length).toBeGreaterThan(80);
  expect(frames).toEqual(await framesOf(source, names));

  // In DASH each codec has a set of its own.
  const url = `${server.base}/live/stage/manifest.mpd`;
  const manifest = await until(
    "the manifest lists it",
    async () => {
      const text = await textOf(url);
      return text.includes('id="240p"') ? text : null;
    },
    RENDITION_LIMIT_MS,
  );
  expect(new LiveManifestValidator().see(manifest, url)).toEqual([]);
  const sets = parseLiveManifest(manifest, url)
    .periods.at(-1)
    ?.representations.map(({ id, fixed }) => [id, fixed]);
  expect(sets).toMatchObject([
    ["360p", { "set id": "0", "set selectionPriority": "2" }],
    ["240p", { "set id": "1", "set selectionPriority": "1", codecs: expect.stringMatching(/^avc1\./) }],
  ]);
});
