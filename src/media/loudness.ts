import { normalizedAudio } from "./arguments.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import type { Gain, PlannedAudio } from "./plan.ts";

type LoudnessOptions = { input: string; spec: EncodingSpec; ffmpeg: string; run: SourceRun };

/** Quieter than this, a track is silence or noise, which would only become loud noise. */
const SILENCE_LUFS = -60;
const MAX_GAIN_DB = 40;
/** Above this level a sample would be limited; the encoder adds up to a decibel. */
const PEAK_DB = -1.5;
const TIME_LIMIT_MS = 12 * 3_600_000;
const STALL_MS = 5 * 60_000;

/**
 * The tracks with the gain that brings each to the loudness of the specification: the first of two passes (EBU R 128,
 * measured by ITU-R BS.1770-4). Stereo and 5.1 of the same track are measured each as it is encoded, because a downmix is
 * not as loud as the channels that it is made of. Without such a value they are returned unchanged. Throws MediaError.
 */
export async function withGains(tracks: readonly PlannedAudio[], options: LoudnessOptions): Promise<PlannedAudio[]> {
  const target = options.spec.audio.loudness_lufs;
  const measured: PlannedAudio[] = [];
  for (const track of tracks)
    measured.push(
      target === null || track.isCopied ? track : { ...track, gain: gainOf(await measure(track, options), target) },
    );
  return measured;
}

type Loudness = { lufs: number; peakDb: number };

function gainOf(measured: Loudness | null, target: number): Gain | null {
  if (!measured || measured.lufs < SILENCE_LUFS) return null;
  const db = Math.min(MAX_GAIN_DB, target - measured.lufs);
  return { db, isLimited: measured.peakDb + db > PEAK_DB };
}

/** Null when ffmpeg reports none, as for a track without a packet. */
async function measure(one: PlannedAudio, { input, spec, ffmpeg, run: common }: LoudnessOptions) {
  const lines: string[] = [];
  const filters = [...normalizedAudio(one, spec), "ebur128=peak=true:framelog=verbose"];
  await run(ffmpeg, {
    ...common,
    // The output directory may not exist yet, and the sandbox cannot grant access to a missing directory.
    writes: [],
    args: [
      ...["-nostdin", "-hide_banner", "-loglevel", "info", "-progress", "pipe:1", "-nostats", "-vn", "-sn", "-dn"],
      ...untrustedInput(input),
      ...["-map", `0:${one.track.index}`, "-af", filters.join(","), "-f", "null", "-"],
    ],
    timeLimitMs: TIME_LIMIT_MS,
    stallMs: STALL_MS,
    // The summary is the end of the log.
    onLog: (line) => {
      lines.push(line);
      if (lines.length > SUMMARY_LINES) lines.shift();
    },
  });
  return parseSummary(lines);
}

const SUMMARY_LINES = 40;

/** Reads the summary of ffmpeg's filter `ebur128`. */
export function parseSummary(lines: readonly string[]): Loudness | null {
  const value = (label: string, unit: string) => {
    const line = lines.findLast((one) => one.trim().startsWith(`${label}:`) && one.trim().endsWith(unit));
    return line === undefined ? null : Number.parseFloat(line.slice(line.indexOf(":") + 1));
  };
  const [lufs, peakDb] = [value("I", "LUFS"), value("Peak", "dBFS")];
  if (lufs === null || !Number.isFinite(lufs)) return null;
  return { lufs, peakDb: peakDb !== null && Number.isFinite(peakDb) ? peakDb : 0 };
}
