import { stat } from "node:fs/promises";
import { type Rate, videoCodecs } from "#lib/codecs";
import type { TrackIndex } from "#lib/isobmff";
import { isCopyableColor, isKeptHdrColor } from "./color.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import { type SourceIndex, videoTrackOf } from "./parallel/source-index.ts";
import { type Copy, copyOf, type EncodePlan, fillOf, type Passthrough } from "./plan.ts";
import type { Probe, VideoTrack } from "./probe.ts";

export type PassthroughOptions = {
  input: string;
  probe: Probe;
  plan: EncodePlan;
  spec: EncodingSpec;
  binaries: Binaries;
  run: SourceRun;
  /** Whether most packets are known from the index only. */
  isSparse?: boolean | undefined;
  /** The container's index: with it packets need not be read, which takes a second per hour of video. */
  index?: SourceIndex | null | undefined;
};

/** The index states which packets are keyframes; a parser would look for them in the packets. */
const OF_INDEX = ["-fflags", "+noparse+nofillin"];

/** One compressed frame, in storage order. */
export type Packet = { seconds: number; bytes: number; isKey: boolean };

/** Frames further off the grid than this would cause segments to be cut at different frames. */
const GRID_SECONDS = 0.001;
/** The rounding of an edit list. */
const EDIT_SECONDS = 1e-6;
const MIN_SEGMENT_SECONDS = 1;
const MAX_SEGMENT_SECONDS = 6;
/** The largest peak of one segment over the cap that a decoder's buffer tolerates. */
const PEAK = 1.5;
/** Upper bound of the bit/s that audio and other tracks in a file may take, for the file to be considered. */
const ALL_AUDIO = 4_000_000;

/**
 * Whether the source's video can be copied as the top rendition: decided first from its metadata, then from the time,
 * size and type of each packet, without decoding. Null when it cannot. Throws MediaError `aborted`.
 */
export async function findPassthrough(options: PassthroughOptions): Promise<Passthrough | null> {
  const { input, probe, plan, spec } = options;
  const { video } = plan;
  const copy = video && copyOf(video, spec);
  if (!video || !copy || !isCandidate(probe, plan, spec, copy)) return null;
  const { track } = video;
  const { maxBitrate } = copy.rendition;
  const bytes = (await stat(input)).size;
  // A camera original is tens of gigabytes: it is not read in full only to find that its bitrate is too high.
  if (bytes * 8 > (maxBitrate + ALL_AUDIO) * (probe.durationSeconds ?? 0)) return null;
  const indexed = options.index && videoTrackOf(options.index, track);
  // Frames before the start of the edit are discarded.
  const shown = indexed?.pts.every((seconds) => seconds > -EDIT_SECONDS) ? indexed : null;
  const packets = (shown && packetsOfIndex(shown)) ?? (await packetsOf(options, track.index));
  const found = packets && passthroughOf(packets, { track, rate: video.rate, maxBitrate, spec });
  return found && { keyTimes: found, isCopied: copy.settings === null };
}

/**
 * The packets of a track as stored, without decoding; null when there are more than the limit, or some that cannot be
 * copied. `clean` sees ffprobe's lines first. Throws MediaError `aborted`.
 */
export async function packetsOf(
  { input, binaries, run: common, isSparse }: PassthroughOptions,
  index: number,
  clean = (csv: string) => csv,
): Promise<Packet[] | null> {
  try {
    const entries = "packet=pts_time,size,flags:packet_side_data=side_data_type";
    const selection = ["-select_streams", String(index), "-show_entries", entries, "-of", "csv=p=0"];
    const stdout = await run(binaries.ffprobe, {
      ...common,
      reads: [input],
      // The output directory may not exist yet, and the sandbox cannot grant access to a missing directory.
      writes: [],
      args: [
        "-hide_banner",
        "-loglevel",
        "error",
        ...selection,
        ...(isSparse ? OF_INDEX : []),
        ...untrustedInput(input),
      ],
      timeLimitMs: 300_000,
    });
    return readPackets(clean(stdout.toString("latin1")));
  } catch (error) {
    // The source is encoded instead, which reports the fault.
    if (error instanceof MediaError && error.code !== "aborted") return null;
    throw error;
  }
}

/** The same from the index of the container; null when its packets would have to be read. */
export function packetsOfIndex({ pts, sizes, isKey, isUniform }: TrackIndex): Packet[] | null {
  if (!isUniform) return null;
  return Array.from(pts, (seconds, at) => ({ seconds, bytes: sizes[at] as number, isKey: isKey[at] === 1 }));
}

/** Whether a source may be copied. Containers other than MP4 and MOV store timestamps too coarsely. */
function isCandidate(probe: Probe, { video }: EncodePlan, spec: EncodingSpec, copy: Copy): boolean {
  if (!video || probe.isTruncated || spec.video.watermark) return false;
  const { track, renditions } = video;
  const { rendition, settings, hdr, isOriginal } = copy;
  const { isCopyable } = videoCodecs[settings?.codec ?? spec.video.codec];
  // Without another rendition of the primary codec nothing is decoded, which finds faults and is most of the time.
  const hasOthers = settings !== null || renditions.some((one) => one !== rendition);
  return (
    hasOthers &&
    fillOf(track, video.holdUntilSeconds, probe).isCopyable &&
    probe.format.split(",").includes("mp4") &&
    isCopyable({ ...track, hdr }, isOriginal) &&
    (hdr
      ? isKeptHdrColor(track.color, hdr)
      : !track.isHdr && (track.color === null || isCopyableColor(track.color, track.height))) &&
    // Files in HEVC and AV1 rarely state it: AV1 has only frames, and HEVC is examined when it is copied.
    (settings ? !track.isInterlaced : track.isProgressive) &&
    track.pauses.length === 0 &&
    track.isSquare &&
    track.rotation === 0 &&
    !track.isMirrored &&
    // ffmpeg moves the earliest stream to 0: it must be the video.
    Math.abs(track.startSeconds - probe.startSeconds) < GRID_SECONDS
  );
}

/** Null when a packet has no time, is to be discarded, or changes parameters. */
function readPackets(csv: string): Packet[] | null {
  const packets: Packet[] = [];
  for (const line of csv.split("\n")) {
    if (line === "") continue;
    const [time = "", size = "", flags = ""] = line.split(",");
    const seconds = Number.parseFloat(time);
    if (!Number.isFinite(seconds) || flags.includes("D") || (packets.length > 0 && line.includes("Extradata")))
      return null;
    packets.push({ seconds, bytes: Number(size), isKey: flags.startsWith("K") });
  }
  return packets;
}

type CopyRequirements = {
  track: Pick<VideoTrack, "durationSeconds">;
  rate: Rate;
  /** bit/s */
  maxBitrate: number;
  spec: EncodingSpec;
};

/**
 * The times of keyframes at which all renditions can be cut; null when frames are off the grid of a constant frame
 * rate, keyframes are too far apart, frames before a keyframe in presentation order follow it in storage order (an open
 * GOP), or the bitrate is too high.
 */
export function passthroughOf(
  packets: readonly Packet[],
  { track, rate, maxBitrate, spec }: CopyRequirements,
): number[] | null {
  const frameSeconds = rate.den / rate.num;
  const origin = packets[0]?.seconds ?? 0;
  const positions = packets.map(({ seconds }) => Math.round((seconds - origin) / frameSeconds));
  const isOnGrid = packets.every(
    ({ seconds }, index) => Math.abs(seconds - origin - (positions[index] as number) * frameSeconds) < GRID_SECONDS,
  );
  // Each grid position once: then every frame stored before a keyframe is also shown before it if the keyframe's
  // position equals its index.
  if (!packets[0]?.isKey || !isOnGrid || new Set(positions).size !== positions.length) return null;
  if (Math.min(...minMax(positions)) !== 0 || Math.max(...minMax(positions)) !== positions.length - 1) return null;
  const keys = packets.flatMap(({ isKey }, index) => (isKey ? [index] : []));
  if (keys.some((key) => positions[key] !== key) || !isClosed(positions, keys)) return null;
  const durationSeconds = packets.length * frameSeconds;
  if (track.durationSeconds === null || Math.abs(durationSeconds - track.durationSeconds) > 0.1) return null;

  const cuts = cutsOf(keys, frameSeconds, spec.segment_seconds);
  const ends = [...cuts.slice(1), packets.length];
  for (const [index, cut] of cuts.entries()) {
    const end = ends[index] as number;
    const seconds = (end - cut) * frameSeconds;
    const isLast = end === packets.length;
    if (seconds > MAX_SEGMENT_SECONDS || (seconds < MIN_SEGMENT_SECONDS && !isLast)) return null;
    const bits = packets.slice(cut, end).reduce((sum, { bytes }) => sum + bytes * 8, 0);
    if (bits / Math.max(MIN_SEGMENT_SECONDS, seconds) > maxBitrate * PEAK) return null;
  }
  const bits = packets.reduce((sum, { bytes }) => sum + bytes * 8, 0);
  if (bits / durationSeconds > maxBitrate) return null;
  return thinned(keys, cuts, spec.gop_seconds / frameSeconds).map((key) => key * frameSeconds);
}

/** Not as an argument list: a million arguments overflow the stack. */
const minMax = (numbers: readonly number[]) =>
  numbers.reduce<[number, number]>(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [0, 0]);

/** No frame that is stored after a keyframe is shown before it. */
function isClosed(positions: readonly number[], keys: readonly number[]): boolean {
  let least = Number.POSITIVE_INFINITY;
  let next = keys.length - 1;
  for (let index = positions.length - 1; index >= 0; index--) {
    const position = positions[index] as number;
    if (index === keys[next]) {
      if (least < position) return false;
      next--;
    }
    least = Math.min(least, position);
  }
  return true;
}

/** Where the muxer cuts: segment n begins with the first keyframe at n x 4 s or later. */
export function cutsOf(keys: readonly number[], frameSeconds: number, segmentSeconds: number): number[] {
  const cuts: number[] = [];
  for (const key of keys) if (key * frameSeconds >= cuts.length * segmentSeconds - 1e-6) cuts.push(key);
  return cuts;
}

/** All cuts, and as many other keyframes as keep the usual distance. */
function thinned(keys: readonly number[], cuts: readonly number[], gopFrames: number): number[] {
  const required = new Set(cuts);
  let last = 0;
  return keys.filter((key) => {
    const isKept = required.has(key) || key - last >= gopFrames * 0.9;
    if (isKept) last = key;
    return isKept;
  });
}
