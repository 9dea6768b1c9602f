import { stat } from "node:fs/promises";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import type { Rate } from "./ladder.ts";
import type { EncodePlan, Passthrough } from "./plan.ts";
import type { Probe, VideoTrack } from "./probe.ts";

export type PassthroughOptions = {
  input: string;
  probe: Probe;
  plan: EncodePlan;
  spec: EncodingSpec;
  binaries: Binaries;
  run: SourceRun;
};

/** One compressed picture, in the order in which they are stored. */
export type Packet = { seconds: number; bytes: number; isKey: boolean };

const PROFILES = ["Constrained Baseline", "Baseline", "Main", "High"];
/** 4.2, as the standard's level_idc: what every player of the last decade decodes at 1080p60. */
const MAX_LEVEL = 42;
/** Off the grid of frames by more than this, segments would not be cut at the same pictures. */
const GRID_SECONDS = 0.001;
const MIN_SEGMENT_SECONDS = 1;
const MAX_SEGMENT_SECONDS = 6;
/** A peak of one segment over the cap that a decoder's buffer still takes. */
const PEAK = 1.5;
/** bit/s that sound and whatever else is in a file may take, at the most that is worth a look. */
const ALL_SOUND = 4_000_000;

/**
 * Whether the source can be copied as its own top rendition: first by what it says of itself, then by the time, size
 * and kind of each of its packets, without decoding one. Null where it cannot. Throws MediaError `aborted`.
 */
export async function findPassthrough(options: PassthroughOptions): Promise<Passthrough | null> {
  const { input, probe, plan, spec } = options;
  const { video } = plan;
  if (!video || !isCandidate(probe, plan)) return null;
  const { track } = video;
  const [top] = video.renditions;
  const bytes = (await stat(input)).size;
  // A camera's original is tens of gigabytes: it is not read through only to learn that it has too many bits.
  if (!top || bytes * 8 > (top.maxBitrate + ALL_SOUND) * (probe.durationSeconds ?? 0)) return null;
  const packets = await packetsOf(options, track.index);
  return packets && passthroughOf(packets, { track, rate: video.rate, maxBitrate: top.maxBitrate, spec });
}

/**
 * The packets of a track as its container has them, decoding none; null where there are more than are read here, or some
 * that cannot be copied. `clean` sees ffprobe's lines first. Throws MediaError `aborted`.
 */
export async function packetsOf(
  { input, binaries, run: common }: PassthroughOptions,
  index: number,
  clean = (csv: string) => csv,
): Promise<Packet[] | null> {
  try {
    const entries = "packet=pts_time,size,flags:packet_side_data=side_data_type";
    const shown = ["-select_streams", String(index), "-show_entries", entries, "-of", "csv=p=0"];
    const stdout = await run(binaries.ffprobe, {
      ...common,
      reads: [input],
      // The output folder may not exist yet, and a folder that does not exist cannot be granted.
      writes: [],
      args: ["-hide_banner", "-loglevel", "error", ...shown, ...untrustedInput(input)],
      timeLimitMs: 300_000,
    });
    return readPackets(clean(stdout.toString("latin1")));
  } catch (error) {
    // It is encoded, which reports what is wrong.
    if (error instanceof MediaError && error.code !== "aborted") return null;
    throw error;
  }
}

/** Of timestamps other containers keep too little, and copying would be no faster where there is nothing to scale. */
function isCandidate(probe: Probe, { video }: EncodePlan): boolean {
  const [top, ...others] = video?.renditions ?? [];
  if (!video || !top || others.length === 0 || video.holdUntilSeconds > 0) return false;
  const { track } = video;
  return (
    probe.format.split(",").includes("mp4") &&
    track.codec === "h264" &&
    PROFILES.includes(track.profile) &&
    track.level > 0 &&
    track.level <= MAX_LEVEL &&
    track.pixelFormat === "yuv420p" &&
    !track.isHdr &&
    track.isProgressive &&
    track.isSquare &&
    track.rotation === 0 &&
    track.width === top.width &&
    track.height === top.height &&
    // ffmpeg moves the earliest stream to 0: that must be the picture.
    Math.abs(track.startSeconds - probe.startSeconds) < GRID_SECONDS
  );
}

/** Null when a packet has no time, is to be thrown away, or brings other parameters. */
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

type Wanted = {
  track: Pick<VideoTrack, "durationSeconds">;
  rate: Rate;
  /** bit/s */
  maxBitrate: number;
  spec: EncodingSpec;
};

/**
 * The times of key frames at which all renditions can be cut; null when pictures are not where a constant rate has
 * them, key frames are too far apart, pictures before a key frame in time come after it (an open group), or there
 * are too many bits.
 */
export function passthroughOf(
  packets: readonly Packet[],
  { track, rate, maxBitrate, spec }: Wanted,
): Passthrough | null {
  const frameSeconds = rate.den / rate.num;
  const origin = packets[0]?.seconds ?? 0;
  const places = packets.map(({ seconds }) => Math.round((seconds - origin) / frameSeconds));
  const isOnGrid = packets.every(
    ({ seconds }, index) => Math.abs(seconds - origin - (places[index] as number) * frameSeconds) < GRID_SECONDS,
  );
  // Each place once: then what is stored before a key frame is also shown before it if its place is its number.
  if (!packets[0]?.isKey || !isOnGrid || new Set(places).size !== places.length) return null;
  if (Math.min(...minMax(places)) !== 0 || Math.max(...minMax(places)) !== places.length - 1) return null;
  const keys = packets.flatMap(({ isKey }, index) => (isKey ? [index] : []));
  if (keys.some((key) => places[key] !== key) || !isClosed(places, keys)) return null;
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
  const keyTimes = thinned(keys, cuts, spec.gop_seconds / frameSeconds).map((key) => key * frameSeconds);
  return { keyTimes, isCopied: true };
}

/** No argument list of a million numbers: that overflows the stack. */
const minMax = (numbers: readonly number[]) =>
  numbers.reduce<[number, number]>(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [0, 0]);

/** Nothing that is stored behind a key frame is shown before it. */
function isClosed(places: readonly number[], keys: readonly number[]): boolean {
  let least = Number.POSITIVE_INFINITY;
  let next = keys.length - 1;
  for (let index = places.length - 1; index >= 0; index--) {
    const place = places[index] as number;
    if (index === keys[next]) {
      if (least < place) return false;
      next--;
    }
    least = Math.min(least, place);
  }
  return true;
}

/** Where the muxer cuts: segment n begins with the first key frame at n x 4 s or later. */
function cutsOf(keys: readonly number[], frameSeconds: number, segmentSeconds: number): number[] {
  const cuts: number[] = [];
  for (const key of keys) if (key * frameSeconds >= cuts.length * segmentSeconds - 1e-6) cuts.push(key);
  return cuts;
}

/** All cuts, and of the other key frames as many as keep the usual distance. */
function thinned(keys: readonly number[], cuts: readonly number[], gopFrames: number): number[] {
  const wanted = new Set(cuts);
  let last = 0;
  return keys.filter((key) => {
    const isKept = wanted.has(key) || key - last >= gopFrames * 0.9;
    if (isKept) last = key;
    return isKept;
  });
}
