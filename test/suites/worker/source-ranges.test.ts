import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CountingProxy, countingProxy } from "#test/support/counting-proxy.ts";
import { rowsOf, startWorker, tasksOf, type Uploaded, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import type { UploadFields } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { captionUnit, erase, popOn } from "#test/support/live/closed-captions.ts";
import { writeCaptioned } from "#test/support/media/captioned-source.ts";
import { pairsByFrame } from "#test/support/media/source-captions.ts";
import { complaints, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const SECONDS = 120;
const FPS = 10;
const CHUNKS = 6;
const clips = temporaryFolder("vodbox-test-ranges");
const clip = join(clips, "clip.mp4");
const piped = join(clips, "clip.mkv");

/** A source of about 30 MB that is encoded fast, with a keyframe every 2 s and the index at its end. */
beforeAll(async () => {
  const video = ["-f", "lavfi", "-i", `testsrc2=s=256x144:r=${FPS}:d=${SECONDS},noise=alls=20`];
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "2M", "-g", String(2 * FPS)];
  await ffmpeg(...video, "-f", "lavfi", "-i", `sine=d=${SECONDS}`, ...encoder, "-c:a", "aac", "-b:a", "96k", clip);
  await ffmpeg("-i", clip, "-c", "copy", piped);
});
afterAll(() => rmSync(clips, { recursive: true, force: true }));

const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60" };

/** Encodes a source with two workers that reach the server through `proxy`. */
async function encoded(
  path: string,
  { fields = {}, ...options }: Parameters<typeof countingProxy>[1] & { fields?: UploadFields } = {},
) {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env, args: ["--workers", "0"] });
  const proxy = await countingProxy(server.base, options);
  const remote = { ...server, base: proxy.base } as RunningServer;
  const workers = [startWorker(remote, emptyFolder()), startWorker(remote, emptyFolder())];
  await until("both workers wait for a job", async () => {
    const { body } = await server.as({ admin: server.admin }).listWorkers();
    return body.length === workers.length;
  });
  const made = await uploadClip(server, path, "t", fields);
  const job = () => server.as(made.key).getJob(made.job.id);
  await until("the job is complete", async () => (await job()).body.status === "completed", 200_000);
  return { server, proxy, made, workers, dataDir, job: (await job()).body };
}

/** Video packets of each rendition; the whole asset decodes without a warning. */
async function framesOf(server: RunningServer, { asset, key }: Uploaded): Promise<number[]> {
  const { body } = await server.as(key).getPlayback(asset.id);
  expect(await complaints("-i", body.hls_url, "-map", "0", "-f", "null", "-")).toBe("");
  const counted = ["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
  const counts = await ffprobe(...counted, "-of", "csv=p=0", body.hls_url);
  return counts.split("\n").filter(Boolean).map(Number.parseFloat).filter(Number.isFinite);
}

const share = (proxy: CountingProxy, path: string) => proxy.sourceBytes() / statSync(path).size;

test("two remote workers read only the bytes of an MP4 source that their tasks need", async () => {
  const { server, proxy, made, workers, dataDir, job } = await encoded(clip);
  // The plan, the audio, the images.
  expect(job.tasks).toMatchObject({ total: CHUNKS + 3, completed: CHUNKS + 3 });
  const frames = await framesOf(server, made);
  expect(new Set(frames)).toEqual(new Set([SECONDS * FPS]));
  expect(share(proxy, clip)).toBeLessThan(1.15);
  expect(share(proxy, clip)).toBeGreaterThan(0.99);
  for (const worker of workers) expect(worker.stderr()).not.toContain("without the index");
  server.child.kill("SIGTERM");
  await server.ended;
  expect(rowsOf(dataDir).attempts).toHaveLength(1);
});

test("of a source with closed captions one of them reads all, and has them", async () => {
  const captioned = join(clips, "captioned.mp4");
  const pairs = pairsByFrame(
    [
      [60_000, popOn("HELLO")],
      [100_000, erase()],
    ],
    FPS,
  );
  const written = `${captioned}.mkv`;
  await writeCaptioned(written, {
    video: ["-i", clip, "-map", "0:v", "-c", "copy"],
    units: ({ index }) => captionUnit([pairs.get(index) ?? [0x80, 0x80]]),
  });
  await ffmpeg("-i", written, "-i", clip, "-map", "0:v", "-map", "1:a", "-c", "copy", captioned);
  const { server, made, job } = await encoded(captioned);
  expect(job.tasks).toMatchObject({ total: CHUNKS + 3, completed: CHUNKS + 3 });
  const { body } = await server.call("GET", `/api/v1/assets/${made.asset.id}/subtitles?include=content`, made);
  const content = expect.stringMatching(/^WEBVTT\n\n00:01:00\.9.. --> 00:01:40\.0..\nHELLO\n$/);
  expect(body).toMatchObject([{ language: "und", label: "CC1", content }]);
});

test("of a source with text tracks they read only these in addition", async () => {
  const texts = join(clips, "texts.srt");
  const times = Array.from({ length: SECONDS / 2 }, (_, index) => {
    const time = (second: number) => `00:0${Math.floor(second / 60)}:${String(second % 60).padStart(2, "0")},000`;
    return `${index + 1}\n${time(2 * index)} --> ${time(2 * index + 1)}\nLine ${index}\n`;
  });
  writeFileSync(texts, times.join("\n"));
  const titled = join(clips, "titled.mp4");
  await ffmpeg("-i", clip, "-i", texts, "-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text", titled);
  const { server, proxy, made } = await encoded(titled);
  const { body } = await server.call("GET", `/api/v1/assets/${made.asset.id}/subtitles?include=content`, made);
  expect(body).toMatchObject([{ language: "und", label: "Track 3", warnings: [] }]);
  expect(body[0].content.match(/Line/g)).toHaveLength(SECONDS / 2);
  expect(share(proxy, titled)).toBeLessThan(1.2);
});

nightly("the first segment of early playback needs only the beginning of a source", async () => {
  const { server, proxy, made, workers, dataDir } = await encoded(clip, { fields: { early_playback: true } });
  expect(new Set(await framesOf(server, made))).toEqual(new Set([SECONDS * FPS]));
  // Both workers read what is decoded before a chunk, and the beginning.
  expect(share(proxy, clip)).toBeLessThan(1.3);
  for (const worker of workers) expect(worker.stderr()).not.toContain("without the index");
  server.child.kill("SIGTERM");
  await server.ended;
  const { attempts } = rowsOf(dataDir);
  expect(attempts.map(({ uncuttable }) => uncuttable)).toEqual([null]);
});

nightly(
  "remote workers copy a source that plays before it is complete, without reading it whole at first",
  async () => {
    const fit = join(clips, "fit.mp4");
    const video = ["-f", "lavfi", "-i", `testsrc2=s=640x360:r=${FPS}:d=${SECONDS},noise=alls=4`];
    const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "700k", "-maxrate", "700k", "-bufsize", "700k"];
    const audio = ["-f", "lavfi", "-i", `sine=d=${SECONDS}`];
    await ffmpeg(...video, ...audio, ...encoder, "-pix_fmt", "yuv420p", "-g", String(2 * FPS), "-c:a", "aac", fit);
    expect(statSync(fit).size).toBeGreaterThan(8 * 2 ** 20);
    const { server, proxy, made, dataDir, job } = await encoded(fit, { fields: { early_playback: true } });
    expect(job).toMatchObject({ uncuttable: null, attempt: 1 });
    expect(new Set(await framesOf(server, made))).toEqual(new Set([SECONDS * FPS]));
    // One worker may copy what the other one encodes.
    expect(share(proxy, fit)).toBeLessThan(2.1);
    server.child.kill("SIGTERM");
    await server.ended;
    const copies = tasksOf(dataDir).filter(({ renditions }) => renditions === '["360p"]');
    expect(copies.length).toBeGreaterThan(0);
  },
);

nightly("a source in another container, or of a server that ignores ranges, is downloaded by each worker", async () => {
  for (const [path, options] of [
    [piped, {}],
    [clip, { ignoresRanges: true }],
  ] as const) {
    const { server, proxy, made, job } = await encoded(path, options);
    expect(job.tasks).toMatchObject({ total: CHUNKS + 3, completed: CHUNKS + 3 });
    // One frame more where the container rounds the duration of the audio.
    for (const frames of await framesOf(server, made)) expect(Math.abs(frames - SECONDS * FPS)).toBeLessThan(2);
    expect(share(proxy, path)).toBeGreaterThan(1.9);
    expect(share(proxy, path)).toBeLessThan(2.5);
    server.child.kill("SIGTERM");
    await server.ended;
  }
});
