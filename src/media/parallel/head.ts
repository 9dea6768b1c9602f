import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Encoders, encoderFor, usesDevices } from "#lib/codecs";
import { type InitSegment, readInit } from "#lib/isobmff";
import type { WrittenRendition } from "#protocol/task.ts";
import { encodeArguments, INIT_NAME } from "../arguments.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { type Binaries, run, type SourceRun } from "../ffmpeg.ts";
import type { EncodeResult, FileNames } from "../finish.ts";
import { addInitBoxes, type StatedMetadata } from "../init-boxes.ts";
import { largestOf } from "../manifests/renditions.ts";
import { writeManifests } from "../manifests.ts";
import { prepareFolders } from "../package.ts";
import { makeFolder, moveResult, readResult } from "../results.ts";
import { readFromFolder } from "../sample-video.ts";
import { writeThumbnail } from "../thumbnail.ts";
import { copyRange } from "./copy-range.ts";
import { listedAudio, listedVideo } from "./predict.ts";
import type { StoredPlan } from "./stored-plan.ts";
import { copiedIn, statedBy, videoRenditions, videoRuns } from "./video-runs.ts";
import { fromRows } from "./written-rows.ts";

type Common = {
  outDir: string;
  plan: StoredPlan;
  spec: EncodingSpec;
  binaries: Binaries;
  run: SourceRun;
};

/** An init segment does not depend on what follows it; the encoders need some frames before they output the first. */
const INIT_FRAMES = 24;
/** Frames for the init segments of other codecs: each takes several times as long, and only the delay of B-frames must be known. */
const ADDITIONAL_INIT_FRAMES = 8;
/** From the first packet of the last track to begin. */
const READ_SECONDS = 2;
const TIME_LIMIT_MS = 5 * 60_000;

/** How much of a source its init segments need. */
export const initSeconds = ({ audio }: Pick<StoredPlan, "audio">): number =>
  READ_SECONDS + Math.max(0, ...audio.map(({ track }) => track.startSeconds));

type Init = { workDir: string; outDir: string; name: string; stated?: StatedMetadata };

async function keepInit({ workDir, outDir, name, stated }: Init): Promise<void> {
  const path = join(workDir, name, INIT_NAME);
  if (stated) await addInitBoxes(path, stated);
  await makeFolder(join(outDir, name));
  await moveResult(path, join(outDir, name, INIT_NAME));
}

/** Writes the init segments of these renditions, of all codecs, and of all audio tracks. */
export async function writeInits({
  input,
  workDir,
  renditions,
  ...options
}: Common & { input: string; workDir: string; renditions: readonly string[]; encoders?: Encoders | undefined }) {
  const { outDir, plan, spec, binaries } = options;
  if (!plan.video) throw new Error("Only a source with video plays before it is encoded");
  const only = new Set(renditions);
  const copied = copiedIn(plan, spec);
  for (const one of videoRuns(plan, spec)) {
    const { plan: own, settings: additional, hdr } = one;
    const stated = statedBy(one);
    const audio = additional ? [] : plan.audio;
    const all = own.video.renditions.filter(({ name }) => only.has(name));
    // One of the primary codec is in the task that publishes.
    const copy = all.find(({ name }) => name === copied);
    const missing = all.filter((each) => each !== copy);
    if (copy) {
      await prepareFolders(workDir, { ...own, video: { ...own.video, renditions: [copy] } });
      await copyRange(
        { input, workDir, binaries, run: options.run, chunk: { first_frame: 0, end_frame: INIT_FRAMES } },
        one,
      );
      await keepInit({ workDir, outDir, name: copy.name, stated });
    }
    if (missing.length + audio.length === 0) continue;
    // Audio alone would be encoded to its end: the range is one of video frames.
    const wanted = missing.length > 0 ? missing : own.video.renditions.slice(-1);
    await prepareFolders(workDir, { ...own, audio, video: { ...own.video, renditions: wanted } });
    const encoder = encoderFor(options.encoders, (additional ?? spec.video).codec, hdr);
    const endFrame = additional ? ADDITIONAL_INIT_FRAMES : INIT_FRAMES;
    await run(binaries.ffmpeg, {
      ...options.run,
      writes: [...(options.run.writes ?? []), workDir],
      args: encodeArguments({
        input,
        outDir: workDir,
        spec,
        readSeconds: initSeconds(plan),
        additional,
        hdr,
        plan: { ...own, audio },
        whole: plan,
        encoder,
        range: { firstFrame: 0, endFrame, seekBackSeconds: 0 },
        only: new Set(wanted.map(({ name }) => name)),
      }),
      devices: usesDevices(encoder),
      timeLimitMs: TIME_LIMIT_MS,
    });
    for (const { name } of wanted) await keepInit({ workDir, outDir, name, stated });
    for (const { name } of audio) await keepInit({ workDir, outDir, name });
  }
  await rm(workDir, { recursive: true, force: true });
}

/** The names of the files that are published first: those that replace them at the end have others. */
export const earlyNames = (names: FileNames): FileNames => ({
  ...names,
  manifest: `early-${names.manifest}`,
  dash: `early-${names.dash}`,
  thumbnail: `early-${names.thumbnail}`,
  mp4: null,
});

/**
 * What exists already is the fastest to start with. A copied rendition comes last: from the bitrate of the first variant some
 * players (hls.js) conclude which one they can load, and would begin with a large one that does not exist yet.
 */
function playableFirst({ video }: StoredPlan, written: readonly WrittenRendition[]): string[] {
  const copied = video?.passthrough?.isCopied ? video.renditions[0]?.name : undefined;
  const names = written.map(({ name }) => name);
  return [...names.filter((name) => name !== copied), ...names.filter((name) => name === copied)];
}

/**
 * Writes manifests that list all segments of all renditions, of which only `written` exist, and a thumbnail. All init
 * segments are in `outDir`. `files` of the result are those that it wrote, and the init segments. Throws MediaError.
 */
export async function writeEarly({
  written,
  names,
  ...options
}: Common & { written: readonly WrittenRendition[]; names: FileNames }): Promise<EncodeResult> {
  const { outDir, plan, spec, binaries } = options;
  const initOf = async (name: string): Promise<InitSegment> =>
    readInit(await readResult(join(outDir, name, INIT_NAME)));
  const videos = await Promise.all(
    videoRenditions(plan, spec).map(async ({ name }) => listedVideo(plan, spec, name, await initOf(name))),
  );
  const audios = await Promise.all(plan.audio.map(async (one) => listedAudio(plan, spec, one, await initOf(one.name))));
  await writeThumbnail({
    outDir,
    spec,
    ffmpeg: binaries.ffmpeg,
    run: options.run,
    read: readFromFolder(outDir),
    name: names.thumbnail,
    videos: written.map((one) => fromRows(one)),
    audios: [],
  });
  const hls = { ...spec.hls, playlist: `early-${spec.hls.playlist}` };
  const packaged = await writeManifests({
    outDir,
    plan,
    spec: { ...spec, hls },
    videos,
    audios,
    names,
    storyboard: null,
    listedFirst: playableFirst(plan, written),
    prefersFirst: true,
  });
  const top = largestOf(packaged.renditions);
  return {
    ...names,
    storyboard: null,
    mp4: null,
    width: top?.width ?? null,
    height: top?.height ?? null,
    durationSeconds: Math.round(packaged.durationSeconds * 1000) / 1000,
    frameRate: top?.frame_rate ?? null,
    // The listed sizes are those at the maximum bitrate.
    renditions: packaged.renditions.map((one) => ({ ...one, bytes: null })),
    audioRenditions: packaged.audioRenditions.map((one) => ({ ...one, bytes: null })),
    files: [names.thumbnail, ...packaged.files.filter((file) => !file.endsWith(".m4s"))],
    bytes: packaged.bytes,
    skipped: [],
    isTruncated: false,
  };
}
