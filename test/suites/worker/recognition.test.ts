import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { runToEnd } from "#src/lib/base/sliced.ts";
import { parsing } from "#src/lib/subtitles/vtt/parse.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { liveServer, newChannel } from "#test/support/live.ts";
import { nightly } from "#test/support/nightly.ts";
import { startServer } from "#test/support/process.ts";
import { receiver } from "#test/support/receiver.ts";

const PROGRAMS = ["espeak-ng", "pocketsphinx_continuous", "ffmpeg"];
const SPOKEN = "Good morning everybody. Welcome to the city. Everybody is welcome. Welcome everybody.";
const SILENCE_SECONDS = 4;
const script = fileURLToPath(new URL("pocketsphinx.sh", import.meta.url));

function missing(): string[] {
  return PROGRAMS.filter((name) => {
    try {
      execFileSync("sh", ["-c", `command -v ${name}`], { stdio: "ignore" });
      return false;
    } catch {
      return true;
    }
  });
}

/** Path of a video of something else, with a voice after some seconds of silence. */
function talk(folder: string): string {
  const wav = join(folder, "talk.wav");
  const clip = join(folder, "talk.mp4");
  execFileSync("espeak-ng", ["-v", "en-us", "-s", "110", "-g", "3", "-w", wav, SPOKEN]);
  const wait = `adelay=${SILENCE_SECONDS * 1000}:all=1,apad=pad_dur=2`;
  execFileSync("ffmpeg", [
    ...["-v", "error", "-i", wav, "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25", "-af", wait, "-shortest"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac", "-b:a", "64k", "-ar", "48000", clip],
  ]);
  return clip;
}

/** Some distinctive words of it are there, at their time: a small model of 2012 transcribes a synthetic voice. */
function expectSpoken(content: string): void {
  const { cues, faults } = runToEnd(parsing(content));
  expect(faults).toEqual([]);
  const said = cues.map(({ text }) => text).join(" ");
  expect(said).toMatch(/\beverybody\b/);
  expect(said).toMatch(/\bwelcome\b/);
  expect(cues[0]?.startMs).toBeGreaterThan(SILENCE_SECONDS * 1000 - 1000);
}

const TRANSCRIBER = { VODBOX_TRANSCRIBE: "command", VODBOX_TRANSCRIBE_COMMAND: `"${script}"` };

test("speech in a video becomes its captions, with a real voice and speech recognition", async ({ skip }) => {
  const absent = missing();
  skip(absent.length > 0, `${absent.join(", ")} cannot be had here; scripts/test.sh installs them`);
  const folder = emptyFolder();
  const hooks = await receiver();
  const server = await startServer(join(folder, "data"), {
    args: ["--workers", "1"],
    env: {
      ...TRANSCRIBER,
      VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      VODBOX_MIN_FREE_BYTES: "0",
    },
  });
  const { admin, as, call } = server;
  const body = { name: "Talk", slug: "talk" };
  const { id: tenant_id } = (await as({ admin }).createTenant(body)).body;
  const scopes = ["assets:write", "playback:read"];
  const key = (await as({ admin }).createApiKey({ tenant_id, scopes })).body.token;
  const hook = { tenant_id, url: hooks.url, event_types: ["video.subtitle.ready", "video.asset.ready"] };
  expect((await as({ admin }).createWebhook(hook)).status).toBe(201);

  const { asset, job } = await uploaded(server, key, { bytes: readFileSync(talk(folder)), captions: ["en", "de"] });
  const status = async () => (await as(key).getAsset(asset.id)).body.playback_status;
  await until("ready or errored", async () => ["ready", "errored"].includes(await status()), 240_000);
  expect(await status()).toBe("ready");

  const tracks = (await as(key).listSubtitles(asset.id, { include: "content" })).body;
  expect(tracks).toMatchObject([
    { language: "en", label: "English", source: "auto", status: "ready", is_default: false },
  ]);
  expectSpoken(tracks[0].content);
  // There is no German model: the asset is ready anyway, and the job says why that track is missing.
  const [shown] = (await as(key).listJobs({ asset_id: asset.id })).body;
  expect(shown).toMatchObject({ id: job.id, status: "completed" });
  expect(shown.caption_errors).toEqual({ de: "The transcription command exited with code 3." });

  await until("both events", () => hooks.received.length >= 2, 60_000);
  const subtitle = hooks.received.find(({ json }) => json.event === "video.subtitle.ready")?.json.data;
  expect(subtitle).toMatchObject({ subtitle_id: tracks[0].id, language: "en", label: "English", source: "auto" });
  const { hls_url } = (await as(key).getPlayback(asset.id)).body;
  const master = (await call("GET", hls_url)).text;
  expect(master).toMatch(/#EXT-X-MEDIA:TYPE=SUBTITLES,.*LANGUAGE="en"/);
  const captions = /TYPE=SUBTITLES,.*URI="([^"]+)"/.exec(master)?.[1] as string;
  const list = (await call("GET", new URL(captions, hls_url).href)).text;
  expect(list).toContain("#EXT-X-ENDLIST");
});

nightly("speech in a live stream becomes the captions of its recording", async ({ skip }) => {
  const absent = missing();
  skip(absent.length > 0, `${absent.join(", ")} cannot be had here; scripts/test.sh installs them`);
  const server = await liveServer({ workers: 1, env: TRANSCRIBER });
  const { as, rtmp } = server;
  const { channel, stream_key, key } = await newChannel(server, { captions: ["en", "de"] });
  const url = `${rtmp}/${channel}?key=${stream_key}`;
  const publisher = ["-nostdin", "-v", "error", "-re", "-i", talk(emptyFolder()), "-c", "copy", "-f", "flv", url];
  await promisify(execFile)("ffmpeg", publisher);
  const assets = async () => (await as(key).listAssets()).body;
  await until("the recording is an asset", async () => (await assets()).length === 1);
  const [{ id, playback_status }] = await assets();
  expect(playback_status).toBe("ready");
  const tracksOf = async () => (await as(key).listSubtitles(id, { include: "content" })).body;
  await until("it has a track", async () => (await tracksOf()).length > 0, 240_000);
  const tracks = await tracksOf();
  expect(tracks).toMatchObject([{ language: "en", label: "English", source: "auto" }]);
  expectSpoken(tracks[0].content);
  const [job] = (await as(key).listJobs({ asset_id: id })).body;
  expect(job.caption_errors).toEqual({ de: "The transcription command exited with code 3." });
});
