import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { Writable } from "node:stream";
import type { Rate } from "#lib/codecs";
import { type ByteRange, isFragmented, type TrackIndex } from "#lib/isobmff";
import { adtsSeconds } from "./adts.ts";
import { hasTimePerPacket } from "./audio-decoding.ts";
import { MediaError } from "./error.ts";
import { type Binaries, run, untrustedInput } from "./ffmpeg.ts";
import { withFields } from "./fields/deinterlacing.ts";
import { probeLinks } from "./ogg/join-links.ts";
import { indexOfFile, type SourceIndex } from "./parallel/source-index.ts";
import { type AudioTrack, type Probe, type ProbeOptions, probe, type VideoTrack } from "./probe.ts";
import { FrameRates } from "./timeline/frame-rates.ts";
import { type Jumps, PacketLines } from "./timeline/packet-lines.ts";
import { type Pauses, pausesIn, pausesOf } from "./timeline/pauses.ts";
import { TrackTimes } from "./timeline/track-times.ts";
import { isMedia } from "./tracks.ts";
import { withContinuations } from "./transport/continuations.ts";
import { withSteadyPrograms } from "./transport/steady-programs.ts";

/*
 * When the tracks of a source begin and end, and how fast its frames follow each other. Most containers leave that out or
 * state it wrongly: Matroska and FLV have no length of a track, recordings of browsers have none at all, transport streams
 * and MP3 only an estimate, and one late subtitle makes a clip of seconds last for hours. So the times of the packets are
 * read, once, without decoding. Everything that follows (plan, parts, silence, held frames, shown duration) uses the result,
 * which has the form of a probe.
 */

/** Only ends what would never end: a day of packets is read in minutes. */
const LIMIT_MS = 6 * 3_600_000;
/** A header that differs from the packets by more than this is not believed. */
const TOLERANCE_SECONDS = 1;
/** The same for the index of an MP4 file. */
const INDEX_TOLERANCE_SECONDS = 0.1;
const RATE_TOLERANCE = 0.02;

/**
 * Reads the streams of a source, with the times that its packets have, and whether its content is interlaced. `index`: of a
 * source of which only parts are there.
 * Throws as `probe`, and MediaError `input_has_no_media` when no track has packets.
 */
export async function probeSource(
  path: string,
  binaries: Binaries,
  { index, need, ...options }: SourceOptions = {},
): Promise<Probe> {
  const headers = await probe(path, binaries, options);
  const fields = { path, binaries, ...options };
  if (isIndexed(headers)) {
    const found = index ?? (await indexOfFile(path, { isCut: headers.isTruncated }).catch(() => null));
    // The index has a time for each packet.
    if (found) {
      const timed = withIndex(headers, found);
      const track = timed.video && found.tracks[timed.video.index];
      const whole = {
        ...timed,
        isTruncated: timed.isTruncated || (await hasBlankSamples(path, timed, { track, need })),
      };
      return withFields(whole, { ...fields, need, ...(track?.kind === "video" && { index: track }) });
    }
  }
  await options.makeWhole?.();
  if (headers.format === "mpegts") {
    const rewritten = await withSteadyPrograms(path, options, async (input, programs) =>
      withContinuations({ ...(await probeSource(input, binaries, options)), jumps: programs.jumps }, programs),
    );
    if (rewritten) return { ...rewritten, rewriting: "programs" };
  }
  if (headers.format === "ogg") {
    const { cwd = tmpdir(), signal } = options;
    const joined = await probeLinks(path, { cwd, signal }, (link) => probeSource(link, binaries, options));
    if (joined) return joined;
  }
  const pauses = isIndexed(headers) ? await pausesOf(path) : new Map();
  const read = await readTracks(path, binaries, headers, { ...options, pauses });
  const timed = withStatedEnd(headers, withPauses(measured(headers, read), pauses));
  return withFields(headers.format === "aac" ? await withAdtsLength(path, timed, options) : timed, fields);
}

/** `need` makes bytes of a source available of which only parts are there. */
type SourceOptions = ProbeOptions & {
  index?: SourceIndex | null | undefined;
  need?: ((ranges: readonly ByteRange[]) => Promise<void>) | undefined;
};

const isIndexed = ({ format }: Pick<Probe, "format">) => format.split(",").includes("mp4");

/** With the times and the rate that the index has. What is not in the file does not exist. */
function withIndex(headers: Probe, { tracks, isCut }: SourceIndex): Probe {
  const isTruncated = headers.isTruncated || isCut;
  const timed = <Track extends VideoTrack | AudioTrack>(track: Track): Track | null => {
    const indexed = tracks[track.index];
    if (indexed?.kind !== ("width" in track ? "video" : "audio")) return track;
    if (indexed.pts.length === 0) return null;
    const seconds = Math.max(0, indexed.endSeconds - track.startSeconds);
    // Edits and clocks round.
    const isBelieved = Math.abs((track.durationSeconds ?? 0) - seconds) < INDEX_TOLERANCE_SECONDS;
    return isBelieved ? track : { ...track, durationSeconds: seconds };
  };
  const video = headers.video && timed(headers.video);
  const audio = headers.audio.flatMap((track) => timed(track) ?? []);
  if (!video && audio.length === 0) throw withoutMedia();
  const ends = [...(video ? [video] : []), ...audio].map(
    ({ startSeconds, durationSeconds }) => startSeconds + (durationSeconds ?? 0),
  );
  const seconds = Math.max(...ends) - headers.startSeconds;
  const durationSeconds = seconds > 0 ? seconds : headers.durationSeconds;
  const indexed = video && tracks[video.index];
  const skipped = withPackets(headers, (index) => tracks[index]?.sizes.length !== 0);
  const common = { ...headers, durationSeconds, isTruncated, audio, skipped };
  if (!video || indexed?.kind !== "video") return { ...common, video };
  const rates = new FrameRates();
  for (const seconds of indexed.pts) rates.add(seconds);
  return { ...common, video: { ...video, ...ratesOf(video, rates.rate(), indexed.pts.length) } };
}

/** Subtitles that are only declared are not left out. */
const withPackets = ({ skipped }: Probe, has: (index: number) => boolean): Probe["skipped"] =>
  skipped.filter((track) => isMedia(track) || has(track.number - 1));

/** Codecs whose samples in MP4 begin with the length of a NAL unit, which is never 0 (ISO/IEC 14496-15, 4.3.3). */
const WITH_LENGTHS: readonly string[] = ["h264", "hevc"];
const BLANK_BYTES = 64;
/** Where samples are looked at, as shares of the track. */
const BLANK_PLACES = [1, 0.5];

/**
 * Whether video has samples of zeros: the file was given its size first, and a download or a copy of it ended early. Looks at a
 * few samples.
 */
async function hasBlankSamples(
  path: string,
  { video, isTruncated }: Probe,
  { track, need }: { track: TrackIndex | null | undefined; need: SourceOptions["need"] },
): Promise<boolean> {
  if (isTruncated || !video || !WITH_LENGTHS.includes(video.codec) || track?.kind !== "video") return false;
  const last = track.sizes.length - 1;
  const ranges = BLANK_PLACES.map((share): ByteRange => {
    const sample = Math.round(last * share);
    return [track.offsets[sample] ?? 0, Math.min(BLANK_BYTES, track.sizes[sample] ?? 0)];
  }).filter(([, bytes]) => bytes > 0);
  await need?.(ranges);
  await using file = await open(path);
  for (const [offset, bytes] of ranges) {
    const data = Buffer.alloc(bytes, 1);
    await file.read(data, 0, bytes, offset);
    if (data.every((byte) => byte === 0)) return true;
  }
  return false;
}

const withoutMedia = () => new MediaError("input_has_no_media", "The source has neither video nor audio.", false);

/**
 * As ffmpeg's AVFMT_TS_DISCONT: it counts time from the first of the tracks that it uses, not of all that are there, such as
 * other programs.
 */
const isDiscontinuous = ({ format }: Pick<Probe, "format">) => /^(?:mpegts|mpeg|ogg)$/.test(format);

/** The packets of all tracks that may play. */
async function readTracks(
  path: string,
  binaries: Binaries,
  { format, video, otherVideo, audio }: Probe,
  { makeWhole: _, timeLimitMs: __, pauses, onMove, ...options }: ProbeOptions & { pauses: Pauses },
): Promise<Read> {
  const others = format === "mpegts" ? otherVideo : [];
  const wanted = [...(video ? [video] : []), ...others, ...audio];
  const tracks = new Map(wanted.map((one) => [one.index, new TrackTimes("width" in one)]));
  const isMp4 = isIndexed({ format });
  const clock = isMp4
    ? (await isFragmented(path))
      ? "fragments"
      : "index"
    : isDiscontinuous({ format })
      ? "discontinuous"
      : "continuous";
  const vague = new Set(format === "mpegts" ? audio.filter(hasTimePerPacket).map(({ index }) => index) : []);
  const lines = new PacketLines(tracks, { clock, vague, pauses });
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.take(chunk.toString("latin1"));
      onMove?.();
      done();
    },
  });
  await run(binaries.ffprobe, {
    ...options,
    args: [
      ...["-hide_banner", "-loglevel", "error", "-of", "csv=p=0"],
      ...["-show_entries", "packet=stream_index,pts_time,dts_time,duration_time,flags"],
      ...untrustedInput(path),
    ],
    reads: [path],
    timeLimitMs: LIMIT_MS,
    output,
  }).catch((error) => {
    // A source that ends in the middle has what was read of it; the encode reports its faults.
    if (!(error instanceof MediaError) || error.exitCode === null) throw error;
  });
  return { tracks, jumps: lines.jumps, seen: lines.seen };
}

/** FLAC states its length, and has nothing else from which it is known that its end is missing. */
const withStatedEnd = ({ format, durationSeconds: stated }: Probe, probe: Probe): Probe => {
  const isMissing = format === "flac" && (stated ?? 0) - (probe.durationSeconds ?? 0) > INDEX_TOLERANCE_SECONDS;
  return isMissing ? { ...probe, isTruncated: true } : probe;
};

async function withAdtsLength(path: string, probe: Probe, { signal }: ProbeOptions): Promise<Probe> {
  const durationSeconds = await adtsSeconds(path, signal);
  return durationSeconds === null
    ? probe
    : { ...probe, durationSeconds, audio: probe.audio.map((track) => ({ ...track, durationSeconds })) };
}

function withPauses(probe: Probe, pauses: Pauses): Probe {
  const paused = <Track extends VideoTrack | AudioTrack>(track: Track): Track => ({
    ...track,
    pauses: pausesIn(track, probe.startSeconds, pauses),
  });
  return { ...probe, video: probe.video && paused(probe.video), audio: probe.audio.map(paused) };
}

type Read = { tracks: ReadonlyMap<number, TrackTimes>; jumps: Jumps | null; seen: ReadonlySet<number> };

function measured(headers: Probe, { tracks, jumps, seen }: Read): Probe {
  const timed = <Track extends VideoTrack | AudioTrack>(track: Track): Track | null => {
    const { first, end, packets } = tracks.get(track.index) ?? { first: null, end: null, packets: 0 };
    // A track that is only declared does not exist.
    if (packets === 0) return null;
    if (first === null || end === null) return track;
    const isBelieved = Math.abs(first - track.startSeconds) < TOLERANCE_SECONDS;
    const startSeconds = isBelieved ? track.startSeconds : first;
    return { ...track, startSeconds, durationSeconds: Math.max(0, end - startSeconds) };
  };
  const video = headers.video && timed(headers.video);
  const audio = headers.audio.flatMap((track) => timed(track) ?? []);
  if (!video && audio.length === 0) throw withoutMedia();
  const played = [...(video ? [video] : []), ...audio];
  const ends = played.map(({ startSeconds, durationSeconds }) =>
    durationSeconds === null ? 0 : startSeconds + durationSeconds,
  );
  const startSeconds = isDiscontinuous(headers)
    ? Math.min(...played.map((track) => track.startSeconds))
    : headers.startSeconds;
  const seconds = Math.max(...ends) - startSeconds;
  const times = video && tracks.get(video.index);
  return {
    ...headers,
    startSeconds,
    jumps: jumps && { ...jumps, firstSeconds: jumps.firstSeconds - startSeconds },
    durationSeconds: seconds > 0 ? seconds : headers.durationSeconds,
    otherVideo: headers.otherVideo.map((track) => timed(track) ?? track),
    skipped: withPackets(headers, (index) => seen.has(index)),
    video: video && times ? { ...video, ...ratesOf(video, times.rate, times.packets) } : video,
    audio,
  };
}

/** The rate of the motion, where the container states another one: freezes, gaps and a few odd frames do not lower it. */
function ratesOf(
  { averageRate, declaredRate }: VideoTrack,
  measuredRate: number | null,
  frames: number,
): Pick<VideoTrack, "averageRate" | "declaredRate"> {
  // A single frame has none: of what is stated, a rate is taken, but not the unit of the container's times.
  if (frames < 2) {
    const rate = declaredRate.num / declaredRate.den <= MAX_STATED_RATE ? declaredRate : NO_RATE;
    return { averageRate: rate, declaredRate: rate };
  }
  if (measuredRate === null) return { averageRate, declaredRate };
  const stated = averageRate.num / averageRate.den;
  if (Math.abs(stated / measuredRate - 1) < RATE_TOLERANCE) return { averageRate, declaredRate };
  return { averageRate: { num: Math.round(measuredRate * RATE_UNITS), den: RATE_UNITS }, declaredRate };
}

const NO_RATE: Rate = { num: 0, den: 1 };
const RATE_UNITS = 1000;
const MAX_STATED_RATE = 120;
