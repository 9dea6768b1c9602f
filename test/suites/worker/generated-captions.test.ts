import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { startServer, tenantKey, vodbox } from "#test/support/process.ts";

const VTT = "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nGood morning\n";
/** Loud and quiet, in two languages. */
const TONES = ["-f", "lavfi", "-i", "sine=200:d=2,volume=0.1", "-f", "lavfi", "-i", "sine=2000:d=2,volume=8"];

/** A transcriber that keeps its input, and stops at a file. */
function transcriber(folder: string): string {
  const script = join(folder, "transcribe.sh");
  const text = `#!/bin/sh
cp "$1" "${folder}/heard-$2.wav"
while [ -e "${folder}/wait" ]; do sleep 0.05; done
cat "${folder}/answer"
`;
  writeFileSync(script, text);
  chmodSync(script, 0o755);
  return script;
}

const loudness = (wav: Buffer) => {
  let peak = 0;
  for (let at = 44; at < wav.length - 1; at += 2) peak = Math.max(peak, Math.abs(wav.readInt16LE(at)));
  return peak;
};

test("a ready asset is transcribed by a worker that can, from its renditions, also after kill -9", async () => {
  const folder = emptyFolder();
  const clip = join(folder, "clip.mp4");
  const maps = ["-map", "0:v", "-map", "1:a", "-map", "2:a", "-metadata:s:a:0", "language=eng"];
  await ffmpeg(...picture("64x36", "10", 2), ...TONES, ...maps, "-metadata:s:a:1", "language=ger", ...fast, clip);
  const server = await startServer(join(folder, "data"), {
    args: ["--workers", "1"],
    env: { VODBOX_MIN_FREE_BYTES: "0", VODBOX_LEASE_SECONDS: "2" },
  });
  const { as, call } = server;
  const key = await tenantKey(server);
  const { asset } = await uploaded(server, key, { bytes: readFileSync(clip) });
  const path = `/api/v1/assets/${asset.id}`;
  const get = async (at: string) => (await call("GET", at, { key })).body;
  await until("the asset is ready", async () => (await get(path)).playback_status === "ready", 60_000);
  const generate = (body: unknown) => as(key).unchecked.generateSubtitle(asset.id, body);
  expect((await generate({})).error.code).toBe("transcription_not_configured");
  expect((await as(key).deleteSource(asset.id)).status).toBeLessThan(300);

  const line = `"${transcriber(folder)}"`;
  const work = () =>
    vodbox(["worker", "--server", server.base, "--token", server.worker, "--scratch", join(folder, "scratch")], {
      env: { VODBOX_TRANSCRIBE: "command", VODBOX_TRANSCRIBE_COMMAND: line, VODBOX_MIN_FREE_BYTES: "0" },
    });
  const heard = join(folder, "heard-de.wav");
  const wait = join(folder, "wait");
  writeFileSync(wait, "");
  writeFileSync(join(folder, "answer"), VTT);
  const first = work();
  await until("the worker is known", async () => (await generate({ language: "de" })).status === 202, 30_000);
  await until("it transcribes", () => existsSync(heard), 30_000);
  first.child.kill("SIGKILL");
  await first.ended;
  // The loudness of the track in the language.
  const german = loudness(readFileSync(heard));
  rmSync(heard);

  const second = work();
  await until("it transcribes again", () => existsSync(heard), 30_000);
  const [pending] = await get(`${path}/subtitles`);
  expect(pending).toMatchObject({ language: "de", source: "auto", status: "pending" });
  rmSync(wait);
  const tracks = () => get(`${path}/subtitles?include=content`);
  await until("the captions are ready", async () => (await tracks())[0].status === "ready", 30_000);
  expect(await tracks()).toMatchObject([{ id: pending.id, language: "de", label: "Deutsch", content: VTT }]);

  // Nothing is said; the language is that of the default track.
  writeFileSync(join(folder, "answer"), "");
  const { job } = (await generate({ language: "auto" })).body;
  const jobPath = `/api/v1/caption_jobs/${job.id}`;
  await until("it has failed", async () => (await get(jobPath)).status === "failed", 30_000);
  expect(await get(jobPath)).toMatchObject({ error: { code: "no_speech" }, attempt: 1 });
  expect((await tracks())[1]).toMatchObject({ language: "und", status: "failed", error: { code: "no_speech" } });
  expect(german).toBeGreaterThan(5 * loudness(readFileSync(join(folder, "heard-auto.wav"))));

  writeFileSync(join(folder, "answer"), VTT);
  expect((await generate({})).status).toBe(202);
  await until("they are in English", async () => (await tracks())[1].language === "en", 30_000);

  // A clip plays a part of the media of the asset.
  const body = { start_seconds: 0.5, end_seconds: 1.5, mode: "exact" };
  const clipped = (await as(key).createClip(asset.id, body)).body;
  expect(clipped).toHaveProperty("id");
  const clipPath = `/api/v1/assets/${clipped.id}`;
  await until("the clip is ready", async () => (await get(clipPath)).playback_status === "ready", 30_000);
  rmSync(join(folder, "heard-nl.wav"), { force: true });
  const ofClip = await as(key).generateSubtitle(clipped.id, { language: "nl" });
  expect(ofClip.status).toBe(202);
  const dutch = async () =>
    (await get(`${clipPath}/subtitles`)).find((one: { language: string }) => one.language === "nl");
  await until("it has captions", async () => (await dutch()).status === "ready", 30_000);
  const seconds = (readFileSync(join(folder, "heard-nl.wav")).length - 44) / 32_000;
  expect(seconds).toBeCloseTo((await get(clipPath)).duration_seconds, 0);
  second.child.kill("SIGTERM");
  expect((await second.ended).code).toBe(0);
});
