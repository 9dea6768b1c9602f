import { PassThrough } from "node:stream";
import { clockOutput } from "./clock-output.ts";
import { isSourceFault } from "./error.ts";
import { ANY_ERROR_RATE, type RunOptions, run, untrustedInput } from "./ffmpeg.ts";
import type { EncodePlan } from "./plan.ts";
import type { AudioTrack } from "./probe.ts";
import { outsideOf } from "./timeline/pauses.ts";

/*
 * Audio is decoded by a process of its own. In the middle of a source its channels or its sample rate may change, in any
 * container. ffmpeg then builds its filters again, and those would begin again: silence that fills a late start would be
 * inserted a second time. So the filters that depend on what was before are in another process, which gets samples of one
 * rate and number of channels, with the times that they have in the source.
 */

export type DecodedTrack = {
  input: string;
  track: AudioTrack;
  channelLayout: string;
  /** What is produced from the source in all: its times count from the first of these tracks. */
  whole?: Pick<EncodePlan, "video" | "audio" | "isTransport" | "clockStart"> | undefined;
  /** Whole seconds; nothing before is returned. Of a source with an index. */
  fromSeconds?: number | undefined;
  /** The input begins in the middle: its times are kept. */
  isMiddle?: boolean | undefined;
};

/** It keeps times to the sample. */
const CONTAINER = "nut";

/** What the process that takes the samples has as its input: one track, with times of the source from 0. */
export const DECODED_INPUT = ["-copyts", "-f", CONTAINER, "-i", "pipe:0"];
export const DECODED_TRACK = "[0:0]";

/** Up to which AAC may have spectral band replication that its headers leave out (ISO/IEC 14496-3, 4.6.18). */
const MAX_CORE_RATE = 24_000;
const UNKNOWN_RATE = 48_000;

/**
 * The rate in which a track is passed on: its own. Every whole second then begins with a sample, so that a part that begins
 * there has the samples of a run over the whole source.
 */
const rateOf = ({ codec, sampleRate }: AudioTrack): number => {
  if (sampleRate <= 0) return UNKNOWN_RATE;
  return codec.startsWith("aac") && sampleRate <= MAX_CORE_RATE ? 2 * sampleRate : sampleRate;
};

/**
 * ffmpeg's decoder of these states the sample rate of the frame before, where it changes: that frame has a time far from its
 * place, and is left out. So is the first one behind any gap, which silence fills anyway.
 */
const HAS_STALE_RATE = /^mp[123]/;
const WITHOUT_JUMPS = "aselect='isnan(prev_pts)+lt(abs(pts-prev_pts)*TB,0.3)'";

/**
 * A PES packet of these has one time for several frames. ffmpeg's demuxer computes the times of the others with the sample rate of
 * the beginning, which may change; its decoder continues with that of each frame.
 */
export const hasTimePerPacket = ({ codec }: Pick<AudioTrack, "codec">): boolean => codec.startsWith("aac");

/** A frame of audio may be longer than a syllable: around pauses it is left out in pieces of so many samples. */
const PIECE = 64;

/** Arguments of the process that decodes a track. */
function decoderArguments({ input, track, channelLayout, whole, fromSeconds, isMiddle }: DecodedTrack): string[] {
  const seek = fromSeconds === undefined ? [] : ["-copyts", "-start_at_zero"];
  const isTimed = fromSeconds === undefined && hasTimePerPacket(track);
  const clockStart = isTimed ? (whole?.clockStart ?? null) : null;
  const filters = [
    ...(clockStart === null ? [] : [`asetpts=PTS-${clockStart.toFixed(6)}/TB`]),
    ...(HAS_STALE_RATE.test(track.codec) && track.pauses.length === 0 ? [WITHOUT_JUMPS] : []),
    ...(track.pauses.length > 0 ? [`asetnsamples=n=${PIECE}:p=0`, `aselect=${outsideOf(track.pauses)}`] : []),
    // What comes before is the delay of an encoder.
    `atrim=start=${fromSeconds ?? 0}`,
    `aresample=${rateOf(track)}`,
    `aformat=sample_fmts=flt:channel_layouts=${channelLayout}`,
  ];
  return [
    ...["-nostdin", "-hide_banner", "-loglevel", "warning", "-nostats", ...ANY_ERROR_RATE],
    ...(clockStart === null ? [] : ["-copyts", "-fflags", "+nofillin"]),
    ...(isMiddle ? ["-copyts"] : []),
    ...[...seek, ...(fromSeconds ? ["-noaccurate_seek", "-ss", String(fromSeconds)] : []), ...untrustedInput(input)],
    ...["-map", `0:${track.index}`, "-af", filters.join(","), "-c:a", "pcm_f32le"],
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-f", CONTAINER, "pipe:1"],
    ...(whole && fromSeconds === undefined && clockStart === null ? clockOutput([track], whole) : []),
  ];
}

/** What ffmpeg says when a decoder returned nothing. */
const NOTHING_DECODED = "Output file is empty";

/**
 * Runs ffmpeg with the samples of a track as its input (`DECODED_INPUT` in `args`), and returns its stdout. Without any
 * samples it returns nothing, and outputs that it would have written may be missing. Throws MediaError as `run`, of the
 * decoder too.
 */
export async function runDecoded(
  binary: string,
  { decoded, ...options }: RunOptions & { decoded: DecodedTrack },
): Promise<Buffer> {
  const { signal, precedence, memoryBytes, pidDir, cwd, onLog, killSignal } = options;
  const samples = new PassThrough();
  let isOver = false;
  let isEmpty = false;
  let failure: unknown;
  const decoding = run(binary, {
    args: decoderArguments(decoded),
    reads: [decoded.input],
    output: samples,
    memoryBytes,
    killSignal,
    ...(cwd !== undefined && { cwd }),
    ...(signal && { signal }),
    ...(precedence && { precedence }),
    ...(pidDir !== undefined && { pidDir }),
    onLog: (line) => {
      isEmpty ||= line.includes(NOTHING_DECODED);
      onLog?.(line);
    },
    // Ends with the process that takes its output.
    timeLimitMs: null,
  }).catch((error) => {
    // That process may have what it needs before the end of the track.
    if (isOver) return;
    failure = error;
    samples.destroy(error);
  });
  try {
    return await run(binary, { ...options, reads: [], input: samples });
  } catch (error) {
    if (isEmpty && isSourceFault(error)) return Buffer.alloc(0);
    throw failure ?? error;
  } finally {
    isOver = true;
    samples.destroy();
    await decoding;
  }
}
