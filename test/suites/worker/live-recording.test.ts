import { globSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import { liveServer, newChannel, publish } from "#test/support/live.ts";
import { complaints } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** What a worker makes of a recording, which plays from the end of the stream on. */

nightly(
  "a channel with an encoding profile gets its ladder after the stream, and the recording plays meanwhile",
  async () => {
    const server = await liveServer({ workers: 1 });
    const channel = await newChannel(server, { encoding_profile: "default" });
    const { as, dataDir } = server;
    const { key } = channel;
    expect((await publish(server, channel, 8, { size: "1280x720" }).exit)[0]).toBe(0);
    const assets = async () => (await as(key).listAssets()).body;
    await until("the recording is an asset", async () => (await assets()).length === 1);
    const [{ id, playback_status }] = await assets();
    expect(playback_status).toBe("ready");
    const playback = async () => (await as(key).getPlayback(id)).body;
    const names = async () => (await playback()).renditions.map(({ name }: { name: string }) => name);
    expect(await names()).toEqual(["720p"]);
    const decode = async () =>
      complaints("-i", (await playback()).hls_url, "-map", "0:v:0", "-map", "0:a:0", "-f", "null", "-");
    expect(await decode()).toBe("");
    await until("it has the renditions of the profile", async () => (await names()).length > 1, 60_000);
    expect(await names()).toEqual(["720p", "480p", "360p"]);
    expect(await decode()).toBe("");
    const asset = (await as(key).getAsset(id)).body;
    expect(asset.duration_seconds).toBeCloseTo(8, 0);
    // The segments of the recording are deleted an hour later.
    expect(asset.storage_bytes).toBeLessThan(
      globSync("objects/**", { cwd: dataDir, withFileTypes: true }).length * 2 ** 20,
    );
  },
);

test("the job that a recording gets anyway creates the captions of the channel, without video and with a profile too", async () => {
  const vtt = join(newFolder(), "captions.vtt");
  await writeFile(vtt, "WEBVTT\n\n00:00:00.500 --> 00:00:02.000\nHello\n");
  const env = { VODBOX_TRANSCRIBE: "command", VODBOX_TRANSCRIBE_COMMAND: `sh -c 'cat "${vtt}"'` };
  const server = await liveServer({ workers: 1, env });
  const { as } = server;
  const plain = await newChannel(server, { captions: ["de"] });
  const { key } = plain;
  const body = { channel: "encoded", captions: ["de"], encoding_profile: "default" };
  const encoded = (await as(key).createChannel(body)).body;
  const publishers = [publish(server, plain, 4, { video: [] }), publish(server, encoded, 4)];
  const isLive = ({ status }: { status: string }) => status === "live";
  await until("both are live", async () => (await as(key).listChannels()).body.every(isLive));
  // Streams keep the languages that they began with.
  for (const { id } of [plain, encoded]) await as(key).updateChannel(id, { captions: [] });
  for (const { exit } of publishers) expect((await exit)[0]).toBe(0);
  const assets = async () => (await as(key).listAssets()).body;
  await until("the recordings are assets", async () => (await assets()).length === 2);
  for (const { id } of await assets()) {
    const tracks = async () => (await as(key).listSubtitles(id, { include: "content" })).body;
    await until("it has captions", async () => (await tracks()).length === 1, 60_000);
    expect(await tracks()).toMatchObject([{ language: "de", source: "auto", content: await readFile(vtt, "utf8") }]);
    const { dash_url } = (await as(key).getPlayback(id)).body;
    expect(await complaints("-i", dash_url, "-map", "0:a:0", "-f", "null", "-")).toBe("");
  }
});
