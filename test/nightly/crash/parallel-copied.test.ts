import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import {
  isTaskOf,
  rowsOf,
  startWorker,
  type TaskRow,
  tasksOf,
  untilWaiting,
  uploadClip,
} from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { hashesIn, packetsIn, packetsOf, samplesOf } from "#test/support/media/parallel/frames.ts";
import { binaries, complaints, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";

const folder = temporaryFolder("vodbox-test-copied");
const clip = join(folder, "clip.mp4");
const whole = join(folder, "whole");
const SECONDS = 50;
const NAMES = ["720p", "480p", "360p", "audio"];
/** A source that is copied, with keyframes at odd distances. */
const FITTING = ["-c:v", "libx264", "-preset", "superfast", "-crf", "32", "-pix_fmt", "yuv420p", "-g", "70"];

beforeAll(async () => {
  const source = [...picture("1280x720", "30000/1001", SECONDS), ...sound(SECONDS), ...FITTING, "-c:a", "aac"];
  await ffmpeg(...source, "-ar", "48000", "-movflags", "+faststart", clip);
  await encode({ input: clip, outDir: whole, spec, binaries, scratchDir: folder, probe: await probe(clip, binaries) });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Presentation times and keyframes. Which frames are B-frames is the encoder's choice, and determines decoding times. */
const shown = (packets: string[]) => packets.map((line) => line.replace(/,-?\d+,/, ",")).sort();

test("two workers copy a source in parts; when one is killed, its frames and times are still those of one run", async () => {
  const dataDir = emptyFolder();
  const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "4", VODBOX_CHUNK_SECONDS: "8" };
  const server = await startServer(dataDir, { env, args: ["--workers", "0"] });
  const workers = [startWorker(server, emptyFolder()), startWorker(server, emptyFolder())];
  const [victim, survivor] = workers;
  if (!victim || !survivor) throw new Error("No worker was started.");
  await untilWaiting(server, workers.length);
  const { job, asset, key } = await uploadClip(server, clip);
  const isRunning = ({ kind, status }: TaskRow) => kind === "chunk" && status === "running";
  await until("both workers have a chunk", () => {
    const running = tasksOf(dataDir).filter(isRunning);
    return workers.every((worker) => running.some((task) => isTaskOf(worker, task)));
  });
  victim.child.kill("SIGKILL");
  await victim.ended;
  const lost = tasksOf(dataDir).filter((task) => task.status === "running" && isTaskOf(victim, task));
  expect(lost.length).toBeGreaterThan(0);
  const state = async () => (await server.as(key).getJob(job.id)).body;
  await until("the job is complete", async () => (await state()).status === "completed", 120_000);
  // It was cut: at its own keyframes, because its video is copied.
  expect(await state()).toMatchObject({ uncuttable: null, attempt: 1 });
  expect(tasksOf(dataDir).filter(({ kind }) => kind === "chunk").length).toBeGreaterThan(3);
  const repeated = tasksOf(dataDir).filter(({ failures }) => failures > 0);
  expect(repeated.map(({ id }) => id)).toEqual(lost.map(({ id }) => id));

  const { body } = await server.as(key).getPlayback(asset.id);
  const master = new URL(body.hls_url);
  const playlists = [...(await (await fetch(master)).text()).matchAll(/^[^#\n].*|URI="([^"]*\/playlist[^"]*)"/gm)]
    .map(([line, uri]) => new URL(uri ?? line, master).href)
    .filter((url) => !url.includes("iframes"));
  const playlistOf = (name: string) => playlists.find((url) => url.includes(`/${name}/`)) ?? `no playlist of ${name}`;
  expect(playlists.length).toBe(NAMES.length);
  for (const name of NAMES) {
    const packets = await packetsIn(playlistOf(name));
    expect(packets.length).toBeGreaterThan(SECONDS * 25);
    expect(shown(packets), name).toEqual(shown(await packetsOf(whole, name)));
    expect(await complaints("-i", playlistOf(name), "-f", "null", "-"), name).toBe("");
  }
  // The copied packets, and the encoded audio, decode to the same.
  for (const name of ["720p", "audio"])
    expect(await hashesIn(playlistOf(name)), name).toBe(await samplesOf(whole, name));
  await stopCleanly(survivor);
  await stopCleanly(server);
  expect(rowsOf(dataDir).events.filter(({ type }) => type === "video.asset.ready").length).toBe(1);
});
