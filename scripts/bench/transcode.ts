import { execFile } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { tenantApi, uploadFile } from "#cli/api.ts";
import { encodeArguments } from "#media/arguments.ts";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { prepareFolders } from "#media/package.ts";
import { planEncode } from "#media/plan.ts";
import { probe } from "#media/probe.ts";
import { chooseTools } from "../build/tools.ts";
import { startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { alternately, compare, median, type Result } from "./result.ts";

const run = promisify(execFile);
const QUIET = ["-nostdin", "-hide_banner", "-y", "-loglevel", "error"];
const SECONDS = 60;
const POLL_MS = 50;

/** 60 s of 1080p30 with motion, noise and audio, which costs the encoder as much as real footage. */
async function makeSource(ffmpeg: string, path: string, length = SECONDS): Promise<void> {
  const testVideo = ["-f", "lavfi", "-i", `testsrc2=size=1920x1080:rate=30:duration=${length}`];
  const testAudio = ["-f", "lavfi", "-i", `sine=frequency=330:beep_factor=4:sample_rate=48000:duration=${length}`];
  await run(ffmpeg, [
    ...QUIET,
    ...testVideo,
    ...testAudio,
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-crf",
    "18",
    "-pix_fmt",
    "yuv420p",
    "-c:a",
    "aac",
    path,
  ]);
}

/** As a phone or an editor exports it for the web: keyframes every 2 s, bitrate below the cap. */
async function makeFitting(ffmpeg: string, source: string, path: string): Promise<void> {
  const bits = ["-crf", "25", "-maxrate", "5M", "-bufsize", "7M", "-x264-params", "keyint=60:scenecut=0"];
  await run(ffmpeg, [...QUIET, "-i", source, "-c:v", "libx264", "-preset", "superfast", ...bits, "-c:a", "copy", path]);
}

const seconds = async (work: () => Promise<unknown>) => {
  const from = performance.now();
  await work();
  return (performance.now() - from) / 1000;
};

/**
 * From `complete` to `ready` through the whole product, compared with the same single command by hand and with the
 * usual scripts.
 */
export async function benchTranscode(): Promise<Result[]> {
  const work = workFolder();
  const { ffmpeg, ffprobe } = await chooseTools(process.arch as "x64");
  const server = await startVodbox(join(work.path, "data"), { workers: 1 });
  try {
    const source = join(work.path, "source.mp4");
    await makeSource(ffmpeg, source);
    const api = tenantApi(server.base, (await tenantWithKey(server.base)).key);
    const ours: number[] = [];
    const byHand: number[] = [];
    for (let round = 0; round < 3; round++) {
      ours.push(await completeToReady(api, source));
      byHand.push(
        await seconds(() => oneCommand({ ffmpeg, ffprobe, source, outDir: join(work.path, `hand-${round}`) })),
      );
    }
    const fitting = join(work.path, "fitting.mp4");
    await makeFitting(ffmpeg, source, fitting);
    const copied: number[] = [];
    const encoded: number[] = [];
    for (let round = 0; round < 3; round++) {
      const outDir = join(work.path, `fitting-${round}`);
      copied.push(await seconds(() => throughEncode({ ffmpeg, ffprobe, source: fitting, outDir })));
      encoded.push(await seconds(() => oneCommand({ ffmpeg, ffprobe, source: fitting, outDir })));
    }
    const early: number[] = [];
    for (let round = 0; round < 3; round++) early.push(await completeToReady(api, fitting, { early_playback: true }));
    const short = join(work.path, "short.mp4");
    await makeSource(ffmpeg, short, 10);
    const over: number[] = [];
    for (let round = 0; round < 5; round++) {
      const whole = await completeToReady(api, short);
      const outDir = join(work.path, `short-${round}`);
      over.push(whole - (await seconds(() => oneCommand({ ffmpeg, ffprobe, source: short, outDir }))));
    }
    const plain = await seconds(() => perRendition(ffmpeg, source, join(work.path, "plain")));
    return [
      compare(
        "complete → ready, 60 s of 1080p30, four renditions",
        { ours, theirs: byHand },
        { reference: "the same ffmpeg command by hand", unit: "s", bar: { atMost: 1.05 } },
      ),
      compare(
        "60 s of 1080p30 that fits: its top rendition copied",
        { ours: copied, theirs: encoded },
        { reference: "the same ffmpeg run with all four encoded", unit: "s", bar: { atMost: 0.6 } },
      ),
      compare(
        "complete → plays early, 60 s of 1080p30 that fits",
        { ours: early, theirs: [3] },
        { reference: "the promised 3 s", unit: "s", bar: { atMost: 1 } },
      ),
      compare(
        "10 s of 1080p30: what complete → ready takes over the bare command",
        { ours: over, theirs: [0.7] },
        { reference: "the promised 0.7 s", unit: "s", bar: { atMost: 1 } },
      ),
      compare(
        "complete → ready, 60 s of 1080p30, four renditions",
        { ours, theirs: [plain] },
        {
          reference: "an ffmpeg run per rendition for HLS, then for DASH",
          unit: "s",
          bar: { atMost: 0.4 },
          note: `(median of ${ours.length} and one run: ${median(ours).toFixed(1)} s)`,
        },
      ),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

/**
 * From `complete` to the first segment that can be played, of a source that must be encoded, compared with ffmpeg that encodes
 * one segment of one rendition.
 */
export async function benchFirstFrame(rounds: number): Promise<Result[]> {
  const work = workFolder();
  const { ffmpeg } = await chooseTools(process.arch as "x64");
  const server = await startVodbox(join(work.path, "data"), { workers: 1 });
  try {
    const source = join(work.path, "source.mp4");
    await makeSource(ffmpeg, source, 10);
    const api = tenantApi(server.base, (await tenantWithKey(server.base)).key);
    const size = words("-t 4 -vf scale=640:360 -maxrate 900k -bufsize 1800k");
    const samples = await alternately(rounds, {
      ours: () => completeToReady(api, source, { early_playback: true }),
      theirs: () =>
        seconds(() => run(ffmpeg, [...QUIET, "-i", source, ...ENCODER, ...size, join(work.path, "segment.mp4")])),
    });
    return [
      compare("complete → first frame, 10 s of 1080p30", samples, {
        reference: "ffmpeg that encodes 4 s in 360p",
        unit: "s",
        bar: { atMost: 1.5 },
      }),
    ];
  } finally {
    await server.stop();
    work.remove();
  }
}

/** Until it plays; with early playback it waits for completion, and returns the time of first playback. */
async function completeToReady(
  api: ReturnType<typeof tenantApi>,
  source: string,
  fields: Record<string, unknown> = {},
): Promise<number> {
  const { asset_id } = await uploadFile(api, source, fields, () => {});
  const from = performance.now();
  let readySeconds = 0;
  for (;;) {
    const asset = await api<{ playback_status: string; stage: string | null; error: unknown }>(
      "GET",
      `/api/v1/assets/${asset_id}`,
    );
    if (asset.playback_status === "ready") readySeconds ||= (performance.now() - from) / 1000;
    if (readySeconds && asset.stage === null) return readySeconds;
    if (asset.playback_status === "errored") throw new Error(JSON.stringify(asset.error));
    await sleep(POLL_MS);
  }
}

type Hand = { ffmpeg: string; ffprobe: string; source: string; outDir: string };
async function oneCommand({ ffmpeg, ffprobe, source, outDir }: Hand): Promise<void> {
  mkdirSync(outDir, { recursive: true });
  const found = await probe(source, { ffmpeg, ffprobe }, { cwd: outDir });
  const plan = planEncode(found, encodingSpec);
  await prepareFolders(outDir, plan);
  await run(ffmpeg, encodeArguments({ input: source, outDir, plan, spec: encodingSpec }), {
    cwd: outDir,
    maxBuffer: 2 ** 26,
  });
  rmSync(outDir, { recursive: true });
}

/** A worker's processing of a source, without the server. */
async function throughEncode({ ffmpeg, ffprobe, source, outDir }: Hand): Promise<void> {
  const binaries = { ffmpeg, ffprobe };
  await encode({ input: source, outDir, binaries, spec: encodingSpec, probe: await probe(source, binaries) });
  rmSync(outDir, { recursive: true });
}

const LADDER = [
  { width: 1920, height: 1080, rate: 6000 },
  { width: 1280, height: 720, rate: 3200 },
  { width: 854, height: 480, rate: 1500 },
  { width: 640, height: 360, rate: 900 },
];

const words = (text: string) => text.split(" ");
const ENCODER = words(
  "-c:v libx264 -preset veryfast -crf 23 -pix_fmt yuv420p -g 60 -sc_threshold 0 -c:a aac -b:a 128k -ac 2",
);

/** A script with one step at a time: each rendition decodes the source again, and DASH encodes again. */
async function perRendition(ffmpeg: string, source: string, outDir: string): Promise<void> {
  mkdirSync(outDir, { recursive: true });
  const from = [...QUIET, "-i", source];
  for (const { width, height, rate } of LADDER) {
    const size = words(`-vf scale=${width}:${height} -maxrate ${rate}k -bufsize ${rate * 2}k`);
    const hls = words(
      `-f hls -hls_time 4 -hls_playlist_type vod -hls_segment_type fmp4 -hls_fmp4_init_filename ${height}.mp4 ${height}.m3u8`,
    );
    await run(ffmpeg, [...from, ...ENCODER, ...size, ...hls], { cwd: outDir });
  }
  const streams = LADDER.flatMap(({ width, height, rate }, index) =>
    words(`-map 0:v -s:v:${index} ${width}x${height} -maxrate:v:${index} ${rate}k -bufsize:v:${index} ${rate * 2}k`),
  );
  await run(ffmpeg, [...from, ...ENCODER, ...streams, ...words("-map 0:a -f dash -seg_duration 4 manifest.mpd")], {
    cwd: outDir,
  });
  rmSync(outDir, { recursive: true });
}
