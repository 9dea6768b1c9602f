import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { countingProxy } from "#test/support/counting-proxy.ts";
import { startWorker, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const SECONDS = 60;
const FPS = 10;
const folder = temporaryFolder("vodbox-test-per-title");
const clip = join(folder, "clip.mp4");

/** About 15 MB, so that tasks read only parts of it. */
beforeAll(async () => {
  const video = ["-f", "lavfi", "-i", `testsrc2=s=480x270:r=${FPS}:d=${SECONDS},noise=alls=20`];
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "2M", "-g", String(2 * FPS)];
  await ffmpeg(...video, "-f", "lavfi", "-i", `sine=d=${SECONDS}`, ...encoder, "-c:a", "aac", "-b:a", "96k", clip);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(rows([[false], [true]], 1))(
  "rungs are chosen once for all workers, with early playback: %s",
  async (early_playback) => {
    const server = await startServer(emptyFolder(), { args: ["--workers", "0"] });
    const profile = { name: "titles", per_title: true, ladder: [270, 180, 120].map(rung) };
    const created = await server.as({ admin: server.admin }).createEncodingProfile(profile);
    expect(created.status).toBe(201);
    const proxy = await countingProxy(server.base);
    const remote = { ...server, base: proxy.base } as RunningServer;
    const workers = [startWorker(remote, emptyFolder()), startWorker(remote, emptyFolder())];
    const made = await uploadClip(server, clip, "t", { encoding_profile: "titles", early_playback });
    const job = async () => (await server.as(made.key).getJob(made.job.id)).body;
    await until("the job is complete", async () => (await job()).status === "completed", 200_000);
    expect(await job()).toMatchObject({ attempt: 1, uncuttable: null, profile: "titles" });
    const { body: asset } = await server.as(made.key).getAsset(made.asset.id);
    const video = asset.renditions.filter(({ width }: { width: number | null }) => width !== null);
    const scores = video.map(({ score }: { score: number }) => score);
    expect(video.length).toBeGreaterThan(1);
    expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
    expect(scores.every((score: number) => score > 0 && score < 100)).toBe(true);
    const { body: playback } = await server.as(made.key).getPlayback(asset.id);
    expect(playback.renditions.map(({ score }: { score: number }) => score)).toEqual(scores);
    expect(await complaints("-i", playback.hls_url, "-map", "0", "-f", "null", "-")).toBe("");
    // The samples are read in parts too, by one worker.
    expect(proxy.sourceBytes() / statSync(clip).size).toBeLessThan(1.7);
    for (const worker of workers) expect(worker.stderr()).not.toContain("without the index");
    server.child.kill("SIGTERM");
    await server.ended;
  },
);

const rung = (height: number) => ({ height, max_bitrate: height * 4000 });
