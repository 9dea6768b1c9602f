import { open } from "node:fs/promises";
import { join } from "node:path";
import { ANY_ERROR_RATE, type Binaries, run, type SourceRun, UNTIL_STALLED, untrustedInput } from "../ffmpeg.ts";
import type { AudioTrack, Probe, VideoTrack } from "../probe.ts";
import type { ProgramTrack } from "./program-tracks.ts";
import { type BlockProgress, copyPackets } from "./rewrite.ts";
import type { TransportPrograms } from "./transport-programs.ts";

/*
 * A track that continues in another codec, on a PID of its own in the rewritten stream. A reader has one decoder for a track, so
 * what continues it is encoded in the codec of the beginning, nearly without loss, and follows on its PID.
 */

/** By the names of stream-types.ts. Times stay exactly those of the source. */
const ENCODERS: Readonly<Record<string, readonly string[]>> = {
  h264: ["-c:v", "libx264", "-preset", "veryfast", "-crf", "12", "-bf", "0"],
  hevc: ["-c:v", "libx265", "-preset", "superfast", "-crf", "12", "-x265-params", "bframes=0:log-level=error"],
  "MPEG-1": ["-c:v", "mpeg1video", "-q:v", "2"],
  "MPEG-2": ["-c:v", "mpeg2video", "-q:v", "2"],
  aac: ["-c:a", "aac", "-b:a", "320k"],
  "AAC in LATM": ["-c:a", "aac", "-b:a", "320k", "-mpegts_flags", "+latm"],
  "MPEG-1 audio (MP2 or MP3)": ["-c:a", "mp2", "-b:a", "320k"],
  "MPEG-2 audio (MP2 or MP3)": ["-c:a", "mp2", "-b:a", "320k"],
  "AC-3": ["-c:a", "ac3", "-b:a", "640k"],
  "E-AC-3": ["-c:a", "eac3", "-b:a", "640k"],
};

/** Its first packet is the delay of the encoder. */
const HAS_DELAY = /^AAC/i;
/** Interlaced frames lose that they are, so they are deinterlaced. */
const VIDEO_OPTIONS = ["-vf", "bwdif=mode=send_frame:deint=interlaced", "-fps_mode", "passthrough"];

/** Where a track begins that is continued by others; itself when it continues none. */
function beginning(track: ProgramTrack): ProgramTrack {
  let first = track;
  while (first.continues) first = first.continues;
  return first;
}

const tracksOf = ({ programs }: TransportPrograms) => programs.flatMap(({ tracks }) => tracks.tracks);

/** Tracks that can be encoded in the codec in which they began. */
const continuationsOf = (programs: TransportPrograms) =>
  tracksOf(programs)
    .filter(({ continues }) => continues !== null)
    .map((track) => ({ track, first: beginning(track) }))
    .filter(({ first }) => ENCODERS[first.codec] !== undefined);

/** Appends to a rewritten stream what continues the tracks of a probe. Throws MediaError. */
export async function appendContinuations(
  path: string,
  programs: TransportPrograms,
  { probe, binaries, run: common, onMove }: { probe: Probe; binaries: Binaries; run: SourceRun } & BlockProgress,
): Promise<void> {
  const ids = [probe.video, ...probe.audio].map((track) => track?.id);
  for (const { track, first } of continuationsOf(programs)) {
    if (!ids.includes(first.pid)) continue;
    const part = join(common.cwd, "continuation.ts");
    await run(binaries.ffmpeg, {
      ...common,
      args: [
        ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
        ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5", "-copyts"],
        ...[...ANY_ERROR_RATE, ...untrustedInput(path)],
        ...[
          "-map",
          `0:i:${track.pid}`,
          ...(track.kind === "video" ? VIDEO_OPTIONS : []),
          ...(ENCODERS[first.codec] ?? []),
        ],
        ...["-muxdelay", "0", "-muxpreload", "0", "-pes_payload_size", "0"],
        ...["-streamid", `0:${first.pid}`, "-f", "mpegts", `file:${part}`],
      ],
      ...UNTIL_STALLED,
      onPosition: () => onMove?.(),
    });
    await using written = await open(path, "a");
    const skipped = HAS_DELAY.test(first.codec) ? 1 : 0;
    await copyPackets(part, written, { pid: first.pid, skipped, signal: common.signal });
  }
}

/** A probe of a rewritten stream in which each track lasts until what continues it ends. */
export function withContinuations(probe: Probe, programs: TransportPrograms): Probe {
  const { video, otherVideo, audio, startSeconds } = probe;
  const all = [...(video ? [video] : []), ...otherVideo, ...audio];
  // What continues a track that cannot be decoded is one of its own.
  const pairs = continuationsOf(programs).filter(({ first }) => all.some(({ id }) => id === first.pid));
  const longer = <Track extends VideoTrack | AudioTrack>(track: Track): Track => {
    const own = pairs.filter(({ first }) => first.pid === track.id).map((pair) => pair.track.pid);
    const end = Math.max(...all.filter(({ id }) => id === track.id || own.includes(id ?? 0)).map(endOf));
    return { ...track, durationSeconds: end - track.startSeconds };
  };
  const isWhole = ({ id }: { id: number | null }) => pairs.every(({ track }) => track.pid !== id);
  const whole = { video: video && longer(video), audio: audio.filter(isWhole).map(longer) };
  const ends = [...(whole.video ? [whole.video] : []), ...whole.audio].map(endOf);
  return { ...probe, ...whole, durationSeconds: Math.max(...ends) - startSeconds };
}

const endOf = ({ startSeconds, durationSeconds }: VideoTrack | AudioTrack) => startSeconds + (durationSeconds ?? 0);
