import { join } from "node:path";
import { codecNameOf } from "#lib/codecs";
import { mediaPlaylist } from "#lib/manifests";
import { INIT_NAME } from "./arguments.ts";
import { audioGroups } from "./audio-groups.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { mpd } from "./manifests/dash.ts";
import { iFramesOf, master } from "./manifests/hls.ts";
import {
  audioOf,
  isIndependent,
  type ManifestData,
  type ManifestPlan,
  type Rendition,
  toRenditions,
} from "./manifests/renditions.ts";
import type { Segment, Written } from "./package.ts";
import { statResult, writeResult } from "./results.ts";
import type { Storyboard } from "./storyboard.ts";

/** `audioRenditions`: those that `renditions` do not contain, which are of video if there is any. */
export type Packaged = {
  renditions: Rendition[];
  audioRenditions: Rendition[];
  durationSeconds: number;
  files: string[];
  bytes: number;
};

/**
 * Writes both manifests and the media playlists over the segments in `outDir`. Throws MediaError `encode_failed` when
 * the renditions are not aligned.
 */
export async function writeManifests(given: {
  outDir: string;
  plan: ManifestPlan;
  spec: EncodingSpec;
  videos: Written[];
  audios: Written[];
  names: { manifest: string; dash: string };
  storyboard: Storyboard | null;
  /** Renditions that the master playlist lists first, in this order: players begin with the first one. */
  listedFirst?: readonly string[];
  /** Players are to begin with the first codec, although others need fewer bits: these are encoded last, or on request. */
  prefersFirst?: boolean;
  /** For a part of longer media: the number of its first segment, and where that begins. */
  begins?: { number: number; seconds: number } | undefined;
  /** Our code wrote the media files, not ffmpeg. */
  areOurs?: boolean;
}): Promise<Packaged> {
  const options = {
    ...given,
    audios: given.audios.map((one) => untilEndOf(one, given.videos[0])),
    listedFirst: given.listedFirst ?? ladderFirst(given),
    prefersFirst: given.prefersFirst || hasLoneCodec(given.videos),
  };
  const { outDir, plan, spec, videos, audios, names, areOurs } = options;
  const all = [...videos, ...audios];
  const [first] = videos;
  // Players switch at segment boundaries; an unaligned rendition would stutter at every switch.
  if (first && videos.some(({ segments }) => !isAligned(segments, first.segments))) {
    throw new MediaError("encode_failed", "The segment boundaries of the renditions differ.", true);
  }
  const target = Math.max(
    1,
    ...all.flatMap(({ segments }) => segments.map((segment) => Math.round(segment.durationSeconds))),
  );
  // A recording of a live stream has whole segments: it is as long as its video.
  const durationSeconds = first && areOurs ? first.durationSeconds : lengthOf(first, audios);

  const { version, playlist } = spec.hls;
  const files: string[] = [];
  const write = async (path: string, text: string) => {
    await writeResult(join(outDir, path), text);
    files.push(path);
  };
  for (const { name, init, segments } of all) {
    const text = mediaPlaylist({
      version,
      initUri: INIT_NAME,
      targetDurationSeconds: target,
      segments: segments.map((segment) => ({ uri: segment.name, durationSeconds: segment.durationSeconds })),
      isIndependent: isIndependent(segments),
    });
    await write(`${name}/${playlist}`, text);
    const frames = init.width ? iFramesOf(segments) : null;
    const list = { version, initUri: INIT_NAME, targetDurationSeconds: target, isIFramesOnly: true };
    if (frames) await write(`${name}/${spec.hls.iframe_playlist}`, mediaPlaylist({ ...list, segments: frames }));
    files.push(`${name}/${INIT_NAME}`, ...segments.map((segment) => `${name}/${segment.name}`));
  }
  const initBytes = new Map<string, number>();
  for (const { name } of all) initBytes.set(name, (await statResult(join(outDir, name, INIT_NAME), { areOurs })).size);
  const sized = { plan, spec, videos, audios, target, initBytes };
  const groups = audioGroups(plan, audios, spec.audio.group);
  const renditions = toRenditions(sized, groups[0]);
  const audioRenditions = audioOf(sized).filter(({ name }) => renditions.every((one) => one.name !== name));
  await write(names.manifest, master({ ...options, ...sized }, groups));
  await write(names.dash, mpd(options, target, Math.max(...all.map((one) => one.durationSeconds))));
  const sizes = await Promise.all(
    files.filter((file) => !file.endsWith(".m4s")).map((file) => statResult(join(outDir, file), { areOurs })),
  );
  const bytes =
    sizes.reduce((sum, { size }) => sum + size, 0) +
    all.flatMap((one) => one.segments).reduce((sum, s) => sum + s.bytes, 0);
  return { renditions, audioRenditions, durationSeconds, files, bytes };
}

/**
 * Omits segments that begin after the end of the video, such as the last 21 ms of audio packets: a player cannot buffer
 * any part of them, and hls.js then waits for them forever and never fires `ended`.
 */
function untilEndOf(audio: Written, video: Written | undefined): Written {
  if (!video) return audio;
  let durationSeconds = 0;
  const segments = audio.segments.filter((segment) => {
    const isWithin = durationSeconds < video.durationSeconds - 0.001;
    if (isWithin) durationSeconds += segment.durationSeconds;
    return isWithin;
  });
  return segments.length === audio.segments.length ? audio : { ...audio, segments, durationSeconds };
}

/**
 * The end of the longest track in seconds. Audio counts where it is longer than by the packets that its encoder begins and ends
 * with: copied video may end earlier.
 */
function lengthOf(video: Written | undefined, audios: readonly Written[]): number {
  if (!video) return Math.max(...audios.map(({ durationSeconds }) => durationSeconds));
  const heard = audios.map(({ durationSeconds, init: { delay, timescale } }) => durationSeconds - delay / timescale);
  const longest = Math.max(0, ...heard);
  return longest - video.durationSeconds > PACKETS_SECONDS ? longest : video.durationSeconds;
}
const PACKETS_SECONDS = 0.1;

/**
 * By how much audio is longer than the video, when segments of it would be left out because no player can buffer them; else 0.
 * The video is damaged, or its container states a wrong length.
 */
export function unseenSeconds(video: Written | undefined, audios: readonly Written[]): number {
  const isLong = audios.some((one) => untilEndOf(one, video) !== one);
  return video && isLong ? lengthOf(video, audios) - video.durationSeconds : 0;
}

/** Players begin with the first variant: not with an original that is larger than the ladder, which few of them can load. */
function ladderFirst({ videos, spec: { video } }: Pick<ManifestData, "videos" | "spec">): string[] {
  const primary = videosOfFirstCodec(videos);
  const isAbove = ({ init: { width, height } }: Written) =>
    Math.min(width, height) > (video.ladder[0]?.height ?? 0) || width * height > video.max_pixels;
  return primary.some(isAbove)
    ? [...primary.filter((one) => !isAbove(one)), ...primary.filter(isAbove)].map(({ name }) => name)
    : [];
}

const videosOfFirstCodec = (videos: readonly Written[]): Written[] =>
  videos.filter(({ init }) => codecNameOf(init.codec) === codecNameOf(videos[0]?.init.codec ?? ""));

/**
 * Whether a codec has a single rendition where the first one has several, such as an original that was copied. Players do not
 * switch between codecs: those that prefer it could not adapt to the bandwidth.
 */
function hasLoneCodec(videos: readonly Written[]): boolean {
  const [first, ...others] = Map.groupBy(videos, ({ init }) => codecNameOf(init.codec)).values();
  return (first?.length ?? 0) > 1 && others.some(({ length }) => length === 1);
}

const isAligned = (a: Segment[], b: Segment[]) =>
  a.length === b.length &&
  a.every((segment, i) => Math.abs(segment.durationSeconds - (b[i]?.durationSeconds ?? 0)) < 0.001);
