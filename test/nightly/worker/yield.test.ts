import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { requested, startWorker, tasksOf, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer } from "#test/support/process.ts";

const SECONDS = 64;
const RATE = 10;
const FIRST_FRAME = 12 * RATE;
const folder = temporaryFolder("vodbox-test-yield");
const clip = join(folder, "clip.mp4");

/** Its keyframes and its noise keep it from being copied. */
beforeAll(async () => {
  const video = ["-f", "lavfi", "-i", `testsrc2=s=854x480:r=${RATE}:d=${SECONDS},noise=alls=10:allf=t`];
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "20", "-g", "100"];
  await ffmpeg(...video, "-f", "lavfi", "-i", `sine=d=${SECONDS}`, ...encoder, "-c:a", "aac", clip);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a worker ends a long chunk for a segment that a viewer waits for, and every frame is encoded once", async () => {
  const server = await startServer(emptyFolder(), {
    args: ["--workers", "0"],
    // All but the first twelve seconds are one chunk.
    env: { VODBOX_CHUNK_SECONDS: "60" },
  });
  startWorker(server, emptyFolder());
  const made = await uploadClip(server, clip, "t", { early_playback: true, playback_policy: "public" });
  const chunk = await until("the long chunk is encoded", () =>
    tasksOf(server.dataDir).find(
      ({ kind, status, first_frame }) => kind === "chunk" && status === "running" && (first_frame ?? 0) >= FIRST_FRAME,
    ),
  );
  const { body: playback } = await server.as(made.key).getPlayback(made.asset.id);
  // On a slow machine it has the smallest rendition only.
  const [rendition] = JSON.parse(chunk.renditions ?? '["480p"]');
  const segment = new URL(`1-1/${rendition}/00015.m4s`, playback.hls_url);
  expect(await requested(segment.href)).toBeGreaterThan(1000);
  // It went to the end of the source.
  expect(chunk.segments).toBeNull();
  const after = tasksOf(server.dataDir).find(({ id }) => id === chunk.id);
  expect(after?.segments).toBeGreaterThan(0);
  expect(after?.segments).toBeLessThan(12);

  const asset = async () => (await server.as(made.key).getAsset(made.asset.id)).body;
  await until("all is encoded", async () => (await asset()).encoding_status === "complete", 120_000);
  expect(tasksOf(server.dataDir).every(({ status, failures }) => status === "completed" && failures === 0)).toBe(true);
  expect(await complaints("-i", playback.hls_url, "-map", "0", "-f", "null", "-")).toBe("");
  const counted = ["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
  const counts = (await ffprobe(...counted, "-of", "csv=p=0", playback.hls_url)).split("\n").filter(Boolean);
  expect(new Set(counts.map(Number.parseFloat).filter(Number.isFinite))).toEqual(new Set([SECONDS * RATE]));
  server.child.kill("SIGTERM");
  await server.ended;
});
