import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ByteRange } from "#lib/isobmff";
import { constantFrames } from "../constant-frames.ts";
import { MediaError } from "../error.ts";
import { ANY_ERROR_RATE, type Binaries, run, type SourceRun, UNTIL_STALLED, untrustedInput } from "../ffmpeg.ts";
import type { AudioTrack, Probe, VideoTrack } from "../probe.ts";
import { linksOf } from "./links.ts";

/*
 * A chained Ogg file is several files in one: each link has bitstreams of its own, whose codecs, sizes and rates may differ, and
 * times that begin again. ffmpeg follows only the simplest ones. So each link is decoded by itself, and what its tracks have in
 * common is encoded nearly without loss to one file, with times that continue.
 */

/** A link that plays, and when it begins in the whole. */
type Link<Place> = { place: Place; probe: Probe; startSeconds: number };

/** Reads the links of a chained file, one after the other. Links that do not play are left out. */
async function probedLinks<Place>(
  places: readonly Place[],
  probeOf: (place: Place) => Promise<Probe>,
): Promise<Link<Place>[]> {
  const links: Link<Place>[] = [];
  let startSeconds = 0;
  let fault: unknown;
  for (const place of places) {
    const probe = await probeOf(place).catch((error) => {
      if (!(error instanceof MediaError) || error.code === "aborted") throw error;
      fault ??= error;
      return null;
    });
    if (!probe) continue;
    links.push({ place, probe, startSeconds });
    startSeconds += probe.durationSeconds ?? 0;
  }
  if (links.length === 0) throw fault;
  return links;
}

/**
 * The probe of a chained Ogg file, as the file that `joinLinks` makes of it; null for any other. `probeOf` reads a file with one
 * link. Throws as `probeOf` when no link plays.
 */
export async function probeLinks(
  path: string,
  { cwd, signal }: { cwd: string; signal?: AbortSignal | undefined },
  probeOf: (path: string) => Promise<Probe>,
): Promise<Probe | null> {
  const ranges = await linksOf(path, signal);
  if (!ranges) return null;
  const folder = await mkdtemp(join(cwd, "links-"));
  const link = join(folder, "link.ogg");
  const links = await probedLinks(ranges, async (range) => {
    await copyRange(path, link, range);
    return await probeOf(link);
  }).finally(() => rm(folder, { recursive: true, force: true }));
  const first = links[0] as Link<ByteRange>;
  const last = links.at(-1) as Link<ByteRange>;
  return {
    ...first.probe,
    startSeconds: 0,
    durationSeconds: last.startSeconds + (last.probe.durationSeconds ?? 0),
    video: whole(trackIn(links, ({ video }) => video)),
    otherVideo: [],
    audio: audioTracks(links).flatMap((parts) => whole(parts) ?? []),
    skipped: first.probe.skipped,
    jumps: null,
    isTruncated: last.probe.isTruncated,
    rewriting: "links",
  };
}

type Part<Track> = { track: Track; link: Link<unknown>; startSeconds: number };

/** One track in all links that have it. */
const trackIn = <Track extends VideoTrack | AudioTrack>(
  links: readonly Link<unknown>[],
  of: (probe: Probe) => Track | null | undefined,
): Part<Track>[] =>
  links.flatMap((link) => {
    const track = of(link.probe);
    const startSeconds = track ? link.startSeconds + Math.max(0, track.startSeconds - link.probe.startSeconds) : 0;
    return track ? [{ track, link, startSeconds }] : [];
  });

const audioTracks = (links: readonly Link<unknown>[]): Part<AudioTrack>[][] => {
  const count = Math.max(...links.map(({ probe }) => probe.audio.length));
  return Array.from({ length: count }, (_, index) => trackIn(links, ({ audio }) => audio[index]));
};

/** The first part of a track, which lasts until the last one ends. */
function whole<Track extends VideoTrack | AudioTrack>(parts: readonly Part<Track>[]): Track | null {
  const first = parts[0];
  const last = parts.at(-1);
  if (!first || !last) return null;
  const end = last.startSeconds + (last.track.durationSeconds ?? 0);
  return { ...first.track, startSeconds: first.startSeconds, durationSeconds: end - first.startSeconds };
}

/**
 * Writes the tracks of a chained Ogg file to one file in the working directory, and returns its path. Throws MediaError.
 */
export async function joinLinks(
  path: string,
  { binaries, run: common, onMove }: { binaries: Binaries; run: SourceRun; onMove?: (() => void) | undefined },
  probeOf: (path: string) => Promise<Probe>,
): Promise<string> {
  const { cwd, signal } = common;
  const folder = join(cwd, "links");
  await mkdir(folder);
  const ranges = (await linksOf(path, signal)) ?? [];
  const paths: string[] = [];
  for (const [index, range] of ranges.entries()) {
    const link = join(folder, `${index}.ogg`);
    await copyRange(path, link, range);
    paths.push(link);
  }
  const links = await probedLinks(paths, probeOf);
  const video = trackIn(links, (probe) => probe.video);
  const tools = { ffmpeg: binaries.ffmpeg, run: common, onMove };
  const tracks: { path: string; language: string | null }[] = [];
  if (video[0]) tracks.push({ path: await joined(video, decodedVideo(video[0].track), VIDEO, tools), language: null });
  for (const [index, parts] of audioTracks(links).entries()) {
    const { track } = parts[0] as Part<AudioTrack>;
    const encoding = { ...AUDIO, name: `audio-${index}` };
    tracks.push({ path: await joined(parts, decodedAudio(track), encoding, tools), language: track.language });
  }
  await rm(folder, { recursive: true, force: true });
  const output = join(cwd, "links.mkv");
  await run(binaries.ffmpeg, {
    ...common,
    args: [
      ...[...OPTIONS, "-copyts"],
      ...tracks.flatMap((track) => untrustedInput(track.path)),
      ...tracks.flatMap(({ language }, at) => [
        ...["-map", String(at)],
        ...(language === null ? [] : [`-metadata:s:${at}`, `language=${language}`]),
      ]),
      ...["-c", "copy", "-max_muxing_queue_size", "16384", "-f", "matroska", `file:${output}`],
    ],
    ...UNTIL_STALLED,
  });
  for (const track of tracks) await rm(track.path, { force: true });
  return output;
}

const OPTIONS = [
  ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
  ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"],
];
/** One unit for all links, whatever their rates. */
const UNIT = "1:90000";
const VIDEO = {
  name: "video",
  codec: [...["-c:v", "libx264", "-preset", "veryfast", "-crf", "12", "-bf", "0"], "-fps_mode", "passthrough"],
};
const AUDIO = { name: "audio", codec: ["-c:a", "flac"] };

/** Samples of one format for all links, that of the first part. */
const decodedVideo = (first: VideoTrack): string[] => [
  ...["-vf", constantFrames(first).join(","), "-fps_mode", "passthrough", "-enc_time_base", UNIT, "-c:v", "rawvideo"],
];
const decodedAudio = ({ sampleRate, channels }: AudioTrack): string[] => [
  ...["-ar", String(sampleRate), "-ac", String(channels), "-c:a", "pcm_f32le"],
];

/** As NUT begins; what follows may be appended to another file. */
const NUT_ID_BYTES = "nut/multimedia container\0".length;

/** Decodes the parts of a track one after the other, and encodes them in one run. Returns the path of its file. */
async function joined(
  parts: readonly Part<VideoTrack | AudioTrack>[],
  decoding: readonly string[],
  { name, codec }: { name: string; codec: readonly string[] },
  { ffmpeg, run: common, onMove }: { ffmpeg: string; run: SourceRun; onMove: (() => void) | undefined },
): Promise<string> {
  const output = join(common.cwd, `${name}.mkv`);
  const samples = new PassThrough();
  const encoding = run(ffmpeg, {
    ...common,
    input: samples,
    args: [...OPTIONS, "-copyts", "-f", "nut", "-i", "pipe:0", ...codec, "-f", "matroska", `file:${output}`],
    ...UNTIL_STALLED,
    onPosition: () => onMove?.(),
  });
  const decode = async () => {
    for (const [at, { track, link, startSeconds }] of parts.entries()) {
      const path = link.place as string;
      await run(ffmpeg, {
        ...common,
        reads: [path],
        output: into(samples, at > 0 ? NUT_ID_BYTES : 0),
        args: [
          ...["-nostdin", "-hide_banner", "-loglevel", "warning", "-nostats", "-noautorotate"],
          ...[...ANY_ERROR_RATE, ...untrustedInput(path)],
          ...["-map", `0:${track.index}`, ...decoding, "-map_metadata", "-1", "-map_chapters", "-1"],
          ...["-output_ts_offset", startSeconds.toFixed(6), "-f", "nut", "pipe:1"],
        ],
        // Ends with the process that takes its output.
        timeLimitMs: null,
      });
    }
    samples.end();
  };
  const decodes = decode();
  await Promise.all([encoding, decodes]).catch(async (error) => {
    samples.destroy();
    await Promise.allSettled([encoding, decodes]);
    throw error;
  });
  return output;
}

/** Passes on all but the first bytes, and leaves the end to the caller. */
function into(stream: PassThrough, skipped: number): Transform {
  let left = skipped;
  const piece = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const kept = chunk.subarray(left);
      left = Math.max(0, left - chunk.length);
      done(null, kept);
    },
  });
  piece.pipe(stream, { end: false });
  // Else a decoder would wait forever for someone to take its output.
  const end = () => void piece.destroy();
  if (stream.destroyed) end();
  else {
    stream.once("close", end);
    piece.once("close", () => stream.off("close", end));
  }
  return piece;
}

const copyRange = (path: string, target: string, [offset, length]: ByteRange): Promise<void> =>
  pipeline(createReadStream(path, { start: offset, end: offset + length - 1 }), createWriteStream(target));
