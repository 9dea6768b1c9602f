import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { playingEarly, rowsOf } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { hashesIn, packetsIn, packetsOf, samplesOf } from "#test/support/media/parallel/frames.ts";
import { binaries, complaints, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { stopCleanly } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 400_000 });

const folder = temporaryFolder("vodbox-test-early-copied");
const clip = join(folder, "clip.mp4");
const whole = join(folder, "whole");
const SECONDS = 90;
const NAMES = ["480p", "360p", "audio"];
/** A source that is copied, with keyframes at odd distances, and audio that is copied too. */
const FITTING = ["-c:v", "libx264", "-preset", "superfast", "-crf", "32", "-pix_fmt", "yuv420p", "-g", "70"];

beforeAll(async () => {
  const source = [...picture("854x480", "30000/1001", SECONDS), ...sound(SECONDS), ...FITTING, "-c:a", "aac"];
  await ffmpeg(...source, "-movflags", "+faststart", clip);
  await encode({ input: clip, outDir: whole, spec, binaries, scratchDir: folder, probe: await probe(clip, binaries) });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Presentation times and keyframes. Which frames are B-frames is the encoder's choice, and determines decoding times. */
const shown = (packets: string[]) => packets.map((line) => line.replace(/,-?\d+,/, ",")).sort();
const linesOf = async (url: string) => (await (await fetch(url)).text()).split("\n").filter((line) => line !== "");
const urisOf = async (url: string) =>
  (await linesOf(url)).filter((line) => !line.startsWith("#")).map((uri) => new URL(uri, url).href);

test("a source that is copied plays before it is complete, and is then that of one run", async () => {
  const { dataDir, server, key, asset, state, playback } = await playingEarly(clip);
  expect(await state()).toMatchObject({ encoding_status: "partial" });

  const listed = await urisOf(playback.hls_url);
  // The copied rendition is there first, but from its bitrate hls.js would conclude that it can load any rendition.
  expect(listed.map((url) => url.split("/").at(-2))).toEqual(["360p", "480p"]);
  const playlists = listed.toReversed();
  const durations = (lines: string[]) =>
    lines.filter((line) => line.startsWith("#EXTINF:")).map((line) => line.slice(8));
  const real = (name: string) => durations(readFileSync(join(whole, name, "playlist.m3u8"), "utf8").split("\n"));
  for (const url of playlists) {
    const name = url.split("/").at(-2) as string;
    expect(durations(await linesOf(url)), name).toEqual(real(name));
  }
  const audio = (playlists[0] as string).replace("/480p/", "/audio/");
  expect(durations(await linesOf(audio)).slice(0, -1)).toEqual(real("audio").slice(0, -1));
  // Segments that do not exist yet: of the copied rendition, and of one that is encoded.
  for (const url of playlists) {
    const segment = (await urisOf(url)).at(-3) as string;
    expect(await state()).toMatchObject({ encoding_status: "partial" });
    const response = await fetch(segment);
    expect(response.status).toBe(200);
    expect((await response.bytes()).length).toBeGreaterThan(1000);
  }

  await until("it is complete", async () => (await state()).encoding_status === "complete", 120_000);
  const { body: complete } = await server.as(key).getPlayback(asset.id);
  const last = await urisOf(complete.hls_url);
  const playlistOf = (name: string) => (last[0] as string).replace("/480p/", `/${name}/`);
  for (const name of NAMES) {
    expect(shown(await packetsIn(playlistOf(name))), name).toEqual(shown(await packetsOf(whole, name)));
    expect(await complaints("-i", playlistOf(name), "-f", "null", "-"), name).toBe("");
  }
  for (const name of ["480p", "audio"])
    expect(await hashesIn(playlistOf(name)), name).toBe(await samplesOf(whole, name));
  await stopCleanly(server);
  const types = rowsOf(dataDir).events.map(({ type }) => type);
  for (const once of ["video.asset.ready", "video.asset.encoded"])
    expect(types.filter((type) => type === once)).toHaveLength(1);
  expect(rowsOf(dataDir).attempts).toHaveLength(1);
});
