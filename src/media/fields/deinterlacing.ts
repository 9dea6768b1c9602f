import { Writable } from "node:stream";
import * as v from "valibot";
import { type ByteRange, rangesOf, type TrackIndex } from "#lib/isobmff";
import { MediaError } from "../error.ts";
import { type Binaries, run, untrustedInput } from "../ffmpeg.ts";
import type { Probe, ProbeOptions, VideoTrack } from "../probe.ts";
import { Combing, type Verdict } from "./combing.ts";
import { asFrames, isOfFieldRate, type ShownFrame } from "./field-frames.ts";
import { hasOnlyFrames } from "./h264.ts";

/*
 * Whether the video of a source is interlaced is decided by its content, because headers state it wrongly or not at all:
 * decoders of DV call everything interlaced, many recorders nothing, and film on tape is progressive in interlaced frames.
 * A few frames at some places are decoded. Nothing is, where codec, size or rate exclude fields.
 */

/** ffprobe's names of the codecs that carry interlaced video in practice. HEVC stores each field by itself instead. */
const CODECS = new Set([
  ...["mpeg2video", "h264", "dvvideo", "mpeg4", "vc1", "wmv3", "mjpeg", "prores", "dnxhd", "cfhd", "jpeg2000"],
  ...["rawvideo", "v210", "ffv1", "huffyuv", "ffvhuff", "utvideo", "msmpeg4v2", "msmpeg4v3"],
]);
const MIN_LINES = 96;
const MAX_LINES = 1088;
/** From so many lines on, formats were never interlaced. */
const PROGRESSIVE_LINES = 720;
/** The numbers of lines of standard definition: transcodes of tapes and DVDs often lost that they are interlaced. */
const TAPE_LINES = [480, 486, 512, 576, 608];
/** A rate above that of 1080i is one of fields. */
const MAX_RATE = 31;

const PLACES = 8;
/** For a source whose frames call themselves interlaced where they are not: those that are have to be found. */
const DENSE_SECONDS = 2.5;
const MAX_PLACES = 48;
/** The last place is before the end by this. */
const END_SECONDS = 1;
const FRAMES = 16;
/** Frames that a decoder holds back, or that a seek leaves without references. */
const EXTRA_FRAMES = 40;
/** Every few columns show as much. */
const WIDTH = 192;
const LIMIT_MS = 60_000;
/** So many of the places must be progressive to doubt a header that says interlaced. */
const MIN_PROGRESSIVE = 2;

type Options = Omit<ProbeOptions, "makeWhole" | "timeLimitMs"> & {
  path: string;
  binaries: Binaries;
  /** The index of a source of which only parts are there. */
  index?: TrackIndex | undefined;
  /** Makes these bytes available. */
  need?: ((ranges: readonly ByteRange[]) => Promise<void>) | undefined;
};

/** `stated`: by all of its frames; null when they differ. */
type Sample = { verdict: Verdict; stated: Verdict | null; frames: readonly ShownFrame[] };
const STATED: Record<string, Verdict> = { P: "progressive", T: "tff", B: "bff" };

/** A probe whose video states how it is deinterlaced. Throws MediaError `aborted`. */
export async function withFields(original: Probe, options: Options): Promise<Probe> {
  const probe = await withFrames(original, options);
  const { video } = probe;
  if (!video || !(await isPossible(probe, video, options))) return probe;
  const samples: Sample[] = [];
  const sampled = new Set<number>();
  const look = async (places: readonly Place[]) => {
    for (const place of places) {
      if (sampled.has(place.seconds)) continue;
      sampled.add(place.seconds);
      await options.need?.(place.ranges);
      samples.push(await sampleAt(place.seconds, video, options));
      options.onMove?.();
    }
  };
  await look(placesOf(probe, options.index, PLACES));
  const dense = Math.min(MAX_PLACES, Math.ceil((probe.durationSeconds ?? 0) / DENSE_SECONDS));
  if (dense > PLACES && !samples.some(isOfFields) && samples.some(isMisstated))
    await look(placesOf(probe, options.index, dense));
  const areFlagged = await canStateFields(probe, video, options);
  return { ...probe, video: { ...video, ...decided(video, samples, areFlagged) } };
}

const isOfFields = ({ verdict }: Sample) => verdict === "tff" || verdict === "bff";
/** Frames that call themselves interlaced, and are not. */
const isMisstated = ({ verdict, stated }: Sample) => verdict === "progressive" && stated !== "progressive";

/** A probe with the rate and size of frames, where the packets of the source are fields. */
async function withFrames(probe: Probe, options: Options): Promise<Probe> {
  const { video } = probe;
  if (!video || !isOfFieldRate(video)) return probe;
  const [place] = placesOf(probe, options.index, PLACES);
  await options.need?.(place?.ranges ?? []);
  const { frames } = await sampleAt(place?.seconds ?? 0, video, options);
  return { ...probe, video: asFrames(video, frames) };
}

/** `areFlagged`: each frame states whether it is interlaced. */
function decided(
  { isInterlaced, isProgressive }: VideoTrack,
  samples: readonly Sample[],
  areFlagged: boolean,
): Pick<VideoTrack, "isInterlaced" | "isProgressive" | "fieldOrder"> {
  const interlaced = samples.filter(isOfFields);
  if (interlaced.length > 0) {
    // Frames that state it by themselves leave the progressive ones between them as they are.
    if (interlaced.every(({ verdict, stated }) => verdict === stated))
      return { isInterlaced: true, isProgressive: false, fieldOrder: "flagged" };
    const top = interlaced.filter(({ verdict }) => verdict === "tff").length;
    return { isInterlaced: true, isProgressive: false, fieldOrder: top * 2 >= interlaced.length ? "tff" : "bff" };
  }
  const count = samples.filter(({ verdict }) => verdict === "progressive").length;
  const isStated = isInterlaced || samples.some(({ stated }) => stated !== "progressive");
  const isDoubted = count >= Math.max(Math.min(MIN_PROGRESSIVE, samples.length), samples.length / 2);
  // Where no frame was seen that states it wrongly, those that state it are believed, wherever they are.
  const isBelieved = areFlagged && !samples.some(isMisstated);
  return { isInterlaced: isBelieved || (isStated && !isDoubted), isProgressive, fieldOrder: "flagged" };
}

async function isPossible({ format }: Probe, video: VideoTrack, options: Options): Promise<boolean> {
  const { codec, averageRate: rate, fieldOrder } = video;
  if (fieldOrder === "separate") return false;
  const lines = linesOf(video);
  if (!CODECS.has(codec) || lines < MIN_LINES || lines > MAX_LINES || lines === PROGRESSIVE_LINES) return false;
  if (rate.num / rate.den > MAX_RATE) return false;
  return TAPE_LINES.includes(lines) || mayHaveFields({ format, video }, options);
}

/** Codecs in which each frame states whether it is interlaced; in other codecs all frames of a stream are alike. */
const FLAGGED = new Set(["mpeg2video", "h264", "mpeg4", "vc1"]);

const canStateFields = async ({ format }: Probe, video: VideoTrack, options: Options): Promise<boolean> =>
  FLAGGED.has(video.codec) && (await mayHaveFields({ format, video }, options));

/** Whether parameter sets allow it. */
async function mayHaveFields(
  { format, video }: { format: string; video: VideoTrack },
  options: Options,
): Promise<boolean> {
  // Elsewhere they are between the frames, and may change.
  if (video.codec !== "h264" || !/(^|,)(mov|matroska|flv)(,|$)/.test(format)) return true;
  return !hasOnlyFrames(await extradataOf(video, options));
}

/** The lines of a frame before its rotation, in the display size, which may have more lines than the stored frames. */
const linesOf = ({ rotation, width, height }: VideoTrack) => (rotation === 90 || rotation === 270 ? width : height);

const Extradata = v.object({ streams: v.array(v.object({ extradata: v.optional(v.string(), "") })) });

/** The configuration of the decoder; empty when it cannot be read. */
async function extradataOf({ index }: VideoTrack, { path, binaries, ...options }: Options): Promise<Buffer> {
  const selection = [
    "-select_streams",
    String(index),
    "-show_data",
    "-show_entries",
    "stream=extradata",
    "-of",
    "json",
  ];
  const stdout = await run(binaries.ffprobe, {
    ...runOf(options),
    args: ["-hide_banner", "-loglevel", "error", ...selection, ...untrustedInput(path)],
    reads: [path],
    timeLimitMs: LIMIT_MS,
  }).catch(unlessAborted);
  const answer = v.safeParse(v.pipe(v.string(), v.parseJson(), Extradata), stdout?.toString("utf8") ?? "");
  const dump = answer.success ? (answer.output.streams[0]?.extradata ?? "") : "";
  // Lines such as `00000010: b011 0000 0300 0100 0003 0032 0f16 2ea0  ...........2....`.
  const hex = [...dump.matchAll(/^[0-9a-f]{8}: ((?:[0-9a-f]{2,4} )+) /gm)].map(([, bytes = ""]) => bytes);
  return Buffer.from(hex.join("").replaceAll(" ", ""), "hex");
}

type Place = { seconds: number; ranges: readonly ByteRange[] };

/** Spread over the source, up to its end. With an index at keyframes, of which the bytes are known. */
function placesOf({ durationSeconds, startSeconds }: Probe, index: TrackIndex | undefined, most: number): Place[] {
  const length = durationSeconds ?? 0;
  const count = Math.max(1, Math.min(most, Math.floor(durationSeconds ?? 1)));
  const spread = Array.from({ length: count }, (_, at) => (length * at) / count);
  const seconds = length > count * END_SECONDS ? [...spread, length - END_SECONDS] : spread;
  if (!index) return seconds.map((each) => ({ seconds: each, ranges: [] }));
  const keys = [...index.isKey.keys()].filter((sample) => index.isKey[sample] === 1);
  const wanted = seconds.map((each) => keys.findLast((key) => (index.pts[key] as number) - startSeconds <= each) ?? 0);
  return [...new Set(wanted)].map((key) => ({
    seconds: Math.max(0, (index.pts[key] as number) - startSeconds),
    ranges: rangesOf(index, key, Math.min(index.sizes.length, key + FRAMES + EXTRA_FRAMES)),
  }));
}

/** What some frames from a time on show. Unknown when they cannot be decoded: the encode reports faults. */
async function sampleAt(seconds: number, video: VideoTrack, { path, binaries, ...options }: Options): Promise<Sample> {
  const width = Math.min(WIDTH, Math.max(video.width, video.height));
  const height = linesOf(video);
  const combing = new Combing(width, height);
  const stated = new Set<Verdict>();
  const frames: ShownFrame[] = [];
  const filters = ["showinfo=checksum=0", `scale=${width}:ih:flags=neighbor`, "format=gray", `pad=${width}:${height}`];
  await run(binaries.ffmpeg, {
    ...runOf(options),
    args: [
      ...["-nostdin", "-hide_banner", "-loglevel", "info", "-nostats", "-noautorotate"],
      ...(seconds > 0 ? ["-noaccurate_seek", "-ss", seconds.toFixed(6)] : []),
      ...untrustedInput(path),
      ...["-map", `0:${video.index}`, "-vf", filters.join(","), "-fps_mode", "passthrough"],
      ...["-frames:v", String(FRAMES), "-f", "rawvideo", "pipe:1"],
    ],
    reads: [path],
    timeLimitMs: LIMIT_MS,
    output: framesInto(combing, width * height),
    onLog: (line) => {
      if (!line.startsWith("[Parsed_showinfo")) return;
      const [, time] = / pts_time:([-\d.]+) /.exec(line) ?? [];
      const [, letter = ""] = / i:([PTB]) /.exec(line) ?? [];
      const field = STATED[letter];
      if (field === undefined || time === undefined) return;
      stated.add(field);
      frames.push({ seconds: Number(time), field });
    },
  }).catch(unlessAborted);
  return { frames, verdict: combing.verdict(), stated: stated.size > 1 ? null : ([...stated][0] ?? "progressive") };
}

/** Cuts the output of a run into frames. */
function framesInto(combing: Combing, bytes: number): Writable {
  let frame = Buffer.alloc(bytes);
  let filled = 0;
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (let at = 0; at < chunk.length; ) {
        const copied = chunk.copy(frame, filled, at);
        [filled, at] = [filled + copied, at + copied];
        if (filled < bytes) continue;
        combing.add(frame);
        [frame, filled] = [Buffer.alloc(bytes), 0];
      }
      done();
    },
  });
}

const runOf = ({ signal, cwd, pidDir, memoryBytes }: Omit<Options, "path" | "binaries">) => ({
  memoryBytes,
  ...(signal && { signal }),
  ...(cwd && { cwd }),
  ...(pidDir && { pidDir }),
});

function unlessAborted(error: unknown): null {
  if (error instanceof MediaError && error.code !== "aborted") return null;
  throw error;
}
