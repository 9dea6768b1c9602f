import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { isTaskOf, requested, startWorker, tasksOf, untilWaiting, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, ffmpeg, ffprobe, packetsOf, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { startServer } from "#test/support/process.ts";

/** Sources in H.264, HEVC and AV1, encoded by two workers. */

const SECONDS = 24;
const RATE = 20;
const NAMES = ["", "-hevc", "-av1"].flatMap((codec) => ["180p", "120p"].map((size) => `${size}${codec}`));
const folder = temporaryFolder("vodbox-test-worker-codecs");
const clip = join(folder, "clip.mp4");

/** Its noise keeps it from being copied. */
beforeAll(async () => {
  const video = ["-f", "lavfi", "-i", `testsrc2=s=320x180:r=${RATE}:d=${SECONDS},noise=alls=20:allf=t`];
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "14", "-g", String(2 * RATE)];
  await ffmpeg(...video, "-f", "lavfi", "-i", `sine=d=${SECONDS}`, ...encoder, "-c:a", "aac", clip);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function encodedBy(early_playback: boolean, { source = clip, encoding_profile = "modern", names = NAMES } = {}) {
  const server = await startServer(emptyFolder(), {
    args: ["--workers", "0"],
    env: { VODBOX_CHUNK_SECONDS: "8", VODBOX_RATE_LIMIT_UPLOADS: "100000/60" },
  });
  const profile = { name: "modern", codecs: ["h264", "hevc", "av1"], ladder: [180, 120].map(rung) };
  const created = await server.as({ admin: server.admin }).createEncodingProfile(profile);
  expect(created.status, created.text).toBe(201);
  const workers = [startWorker(server, emptyFolder()), startWorker(server, emptyFolder())];
  await untilWaiting(server, workers.length);
  const fields = { encoding_profile, playback_policy: "public", early_playback };
  const made = await uploadClip(server, source, "t", fields);
  const asset = async () => (await server.as(made.key).getAsset(made.asset.id)).body;
  const playback = async () => (await server.as(made.key).getPlayback(made.asset.id)).body;
  /** When all is encoded: the asset has all renditions, complete and without a fault, and no frame more or less. */
  const expectComplete = async () => {
    await until("all is encoded", async () => (await asset()).encoding_status === "complete", 200_000);
    const { body: job } = await server.as(made.key).getJob(made.job.id);
    expect(job).toMatchObject({ status: "completed", attempt: 1, uncuttable: null });
    const tasks = tasksOf(server.dataDir);
    expect(tasks.every(({ status, failures }) => status === "completed" && failures === 0)).toBe(true);
    const { renditions } = await asset();
    expect(renditions.map(({ name }: { name: string }) => name)).toEqual([...names, "audio"]);
    const { hls_url } = await playback();
    expect(await complaints("-i", hls_url, "-map", "0", "-f", "null", "-")).toBe("");
    const counted = ["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
    const counts = (await ffprobe(...counted, "-of", "csv=p=0", hls_url)).split("\n").filter(Boolean);
    expect(new Set(counts.map(Number.parseFloat).filter(Number.isFinite))).toEqual(new Set([SECONDS * RATE]));
    return tasks;
  };
  const end = async () => {
    server.child.kill("SIGTERM");
    await server.ended;
  };
  return { workers, asset, playback, expectComplete, end };
}

nightly("two workers share the chunks of a source in all codecs", async () => {
  const { workers, expectComplete, end } = await encodedBy(false);
  const chunks = (await expectComplete()).filter(({ kind }) => kind === "chunk");
  expect(chunks.map(({ renditions }) => renditions)).toEqual([null, null, null]);
  for (const worker of workers) expect(chunks.some((chunk) => isTaskOf(worker, chunk))).toBe(true);
  await end();
});

nightly("such a source plays early, and requested segments of all codecs are encoded", async () => {
  const { asset, playback, expectComplete, end } = await encodedBy(true);
  await until("the asset is ready", async () => (await asset()).playback_status === "ready");
  expect((await asset()).encoding_status).toBe("partial");
  const { hls_url, dash_url } = await playback();
  const master = await (await fetch(hls_url)).text();
  const variants = [...master.matchAll(/^#EXT-X-STREAM-INF:.*SCORE=(\d+).*\n(?:\S+\/)?([^/\s]+)\/[^/\s]+$/gm)];
  // The preferred ones first: players would otherwise request what is encoded last.
  const preferred = variants.toSorted(([, a], [, b]) => Number(b) - Number(a)).map(([, , name]) => name);
  expect(preferred).toEqual(NAMES);
  const mpd = await (await fetch(dash_url)).text();
  const priorities = [...mpd.matchAll(/contentType="video"[^>]* selectionPriority="(\d)"/g)].map(([, value]) => value);
  expect(priorities).toEqual(["3", "2", "1"]);
  for (const name of ["120p-av1", "180p-hevc"]) {
    expect(await requested(new URL(`1-1/${name}/00005.m4s`, hls_url).href)).toBeGreaterThan(500);
    expect((await fetch(new URL(`1-1/${name}/init.mp4`, hls_url))).status).toBe(200);
  }
  const chunks = (await expectComplete()).filter(({ kind }) => kind === "chunk");
  // A requested segment is a task of its own.
  expect(chunks.some(({ renditions }) => renditions === JSON.stringify(["120p-av1"]))).toBe(true);
  const final = await (await fetch((await playback()).hls_url)).text();
  expect(final).not.toContain("SCORE");
  await end();
});

describe("a source in HEVC that is fit", () => {
  const copied = join(folder, "copied.mp4");
  beforeAll(async () => {
    const parameters = "keyint=56:min-keyint=56:scenecut=0:open-gop=0:log-level=error";
    const encoder = ["-c:v", "libx265", "-preset", "superfast", "-crf", "36", "-x265-params", parameters];
    const source = ["-f", "lavfi", "-i", `testsrc2=s=320x180:r=${RATE}:d=${SECONDS}`];
    await ffmpeg(...source, "-f", "lavfi", "-i", `sine=d=${SECONDS}`, ...encoder, "-pix_fmt", "yuv420p", copied);
    // A box without content: the index of a small file is not read over the network, and without one copies are not cut.
    const free = Buffer.alloc(9 * 2 ** 20);
    free.writeUInt32BE(free.length);
    free.write("free", 4);
    appendFileSync(copied, free);
  });

  test.each(
    rows(
      [
        ["plays early, and its copy is there on request", true, {}],
        ["is copied in chunks", false, {}],
        ["is an original for VR", true, { encoding_profile: "vr", names: ["180p", "180p-hevc"] }],
      ],
      1,
    ),
  )("%s", async (_, isEarly, fields) => {
    const { asset, playback, expectComplete, end } = await encodedBy(isEarly, { source: copied, ...fields });
    if (isEarly) {
      await until("the asset is ready", async () => (await asset()).playback_status === "ready");
      const { hls_url } = await playback();
      expect(await requested(new URL("1-1/180p-hevc/00004.m4s", hls_url).href)).toBeGreaterThan(500);
    }
    const chunks = (await expectComplete()).filter(({ kind }) => kind === "chunk");
    expect(chunks.length).toBeGreaterThan(1);
    const own = new URL("1-1/180p-hevc/playlist.m3u8", (await playback()).hls_url).href;
    expect(await packetsOf(own)).toEqual(await packetsOf(copied));
    await end();
  });
});

const rung = (height: number) => ({ height, max_bitrate: height * 2000 });
