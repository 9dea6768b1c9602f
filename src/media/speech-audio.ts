import { primaryLanguage } from "#lib/base";
import { DECODED_INPUT, DECODED_TRACK, type DecodedTrack, runDecoded } from "./audio-decoding.ts";
import { SYNCED } from "./audio-filters.ts";
import { type RunOptions, UNTIL_STALLED } from "./ffmpeg.ts";
import { MAX_DURATION_SECONDS } from "./plan.ts";
import type { AudioTrack, Probe } from "./probe.ts";
import { statResult } from "./results.ts";

const RATE = 16_000;
const HEADER_BYTES = 44;

/**
 * The track in which `language` is most likely spoken: one that declares it, else the default one. Null without audio.
 */
export function spokenLanguage({ audio }: Pick<Probe, "audio">, language: string): AudioTrack | null {
  const primary = primaryLanguage(language);
  return audio.find((track) => track.language && primaryLanguage(track.language) === primary) ?? audio[0] ?? null;
}

type SpeechAudioOptions = Pick<RunOptions, "cwd" | "signal" | "pidDir" | "memoryBytes" | "onMove"> & {
  ffmpeg: string;
  input: string;
  track: AudioTrack;
  /** What is produced from the source in all, which decides on the times of a transport stream. */
  whole?: DecodedTrack["whole"];
  /**
   * Only this part of the track, of an input that may begin in the middle. Default: all of it. Times count from `startSeconds`,
   * which is when all of it begins on the clock of its segments.
   */
  range?: { fromMs: number; toMs: number; startSeconds: number };
  /** Absolute. */
  wavPath: string;
};

/**
 * Writes a track in the format of speech recognition: 16 kHz, one channel, 16 bits, with the timeline of the encoded
 * video. Returns its length in seconds. Throws MediaError.
 */
export async function writeSpeech(options: SpeechAudioOptions): Promise<number> {
  const { ffmpeg, input, track, whole, range, wavPath, ...room } = options;
  const startSeconds = range?.startSeconds ?? 0;
  const [from, to] = [range?.fromMs, range?.toMs].map((ms) => (startSeconds + (ms ?? 0) / 1000).toFixed(6));
  const cut = range ? `atrim=start=${from}:end=${to},asetpts=PTS-${from}/TB,` : "";
  await runDecoded(ffmpeg, {
    ...room,
    decoded: { input, track, channelLayout: "stereo", whole, isMiddle: range !== undefined },
    args: [
      ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
      ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5", ...DECODED_INPUT],
      // Gaps and a late start are filled with silence as in the encode, so that captions are in sync.
      ...["-filter_complex", `${DECODED_TRACK}${cut}aresample=${RATE}:${SYNCED}:first_pts=0[a]`, "-map", "[a]"],
      ...["-ac", "1", "-c:a", "pcm_s16le", "-map_metadata", "-1", "-fflags", "+bitexact"],
      ...["-t", String(MAX_DURATION_SECONDS), "-f", "wav", `file:${wavPath}`],
    ],
    ...UNTIL_STALLED,
  });
  // Without any samples there is no file.
  const bytes = await statResult(wavPath).then(
    ({ size }) => size,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return 0;
      throw error;
    },
  );
  return Math.max(0, bytes - HEADER_BYTES) / (2 * RATE);
}
