import { PassThrough } from "node:stream";
import { audioEncoder } from "./arguments.ts";
import { DECODED_INPUT, runDecoded } from "./audio-decoding.ts";
import { amplify, normalizedAudio } from "./audio-filters.ts";
import { decodedFor } from "./audio-tracks.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { run, type SourceRun, UNTIL_STALLED } from "./ffmpeg.ts";
import type { Gain, PlannedAudio } from "./plan.ts";

type LoudnessOptions = { input: string; spec: EncodingSpec; ffmpeg: string; run: SourceRun };

/** Quieter than this, a track is silence or noise, which would only become loud noise. */
const SILENCE_LUFS = -60;
const MAX_GAIN_DB = 40;
/** Above this level a sample would be limited; the encoder adds up to a decibel. */
const PEAK_DB = -1.5;

const METER = "ebur128=peak=true:framelog=verbose";
const measuring = (filter: string) => ["-af", filter, "-f", "null", "-"];
const OPTIONS = ["-nostdin", "-hide_banner", "-loglevel", "info"];
const PROGRESS = ["-progress", "pipe:1", "-nostats"];
/** It can be read while it is written. */
const CONTAINER = "matroska";

/** A limiter takes loudness away, and an encoder what it does not encode: so much is given more than the measured gain. */
const MOST_CORRECTION_DB = 12;
/** ffmpeg states one decimal. */
const TOLERANCE_LU = 0.2;
const MAX_CORRECTIONS = 4;
/** The least that a decibel of gain is assumed to add before a limiter, in LU. */
const LEAST_SLOPE = 0.25;

/**
 * The tracks with the gain that brings each to the loudness of the specification (EBU R 128, measured by ITU-R BS.1770-4): it
 * is computed from the loudness of the track, and corrected by that of the encoded result. Stereo and 5.1 of the same track are
 * measured each as it is encoded, because a downmix is not as loud as the channels that it is made of. Without such a value
 * they are returned unchanged. Throws MediaError.
 */
export async function withGains(tracks: readonly PlannedAudio[], options: LoudnessOptions): Promise<PlannedAudio[]> {
  const target = options.spec.audio.loudness_lufs;
  const measured: PlannedAudio[] = [];
  for (const track of tracks)
    measured.push(
      target === null || track.isCopied ? track : { ...track, gain: await gainFor(track, target, options) },
    );
  return measured;
}

type Loudness = { lufs: number; peakDb: number };

async function gainFor(track: PlannedAudio, target: number, options: LoudnessOptions): Promise<Gain | null> {
  const source = await measureSource(track, options);
  if (!source || source.lufs < SILENCE_LUFS) return null;
  const gainOf = (db: number): Gain => ({ db, isLimited: source.peakDb + db > PEAK_DB });
  const first = Math.min(MAX_GAIN_DB, target - source.lufs);
  const most = Math.min(MAX_GAIN_DB, first + MOST_CORRECTION_DB);
  let db = first;
  let before: { db: number; lufs: number } | null = null;
  for (let count = 0; count < MAX_CORRECTIONS; count++) {
    const result = await measureEncoded(track, gainOf(db), options);
    if (!result) break;
    const missing = target - result.lufs;
    if (Math.abs(missing) <= TOLERANCE_LU || (missing > 0 && db >= most)) break;
    const slope: number = before ? (result.lufs - before.lufs) / (db - before.db) : 1;
    before = { db, lufs: result.lufs };
    db = Math.min(most, db + missing / Math.min(1, Math.max(LEAST_SLOPE, slope)));
  }
  return gainOf(db);
}

/** As the encoder gets it. Null when ffmpeg reports none, as for a track without a packet. */
async function measureSource(one: PlannedAudio, { input, spec, ffmpeg, run: common }: LoudnessOptions) {
  const { lines, onLog } = lastLines();
  await runDecoded(ffmpeg, {
    ...common,
    decoded: decodedFor(one, { input }),
    // The output directory may not exist yet, and the sandbox cannot grant access to a missing directory.
    writes: [],
    args: [...OPTIONS, ...PROGRESS, ...DECODED_INPUT, ...measuring([...normalizedAudio(one, spec), METER].join(","))],
    ...UNTIL_STALLED,
    onLog,
  });
  return parseSummary(lines);
}

/** As players decode it, without storing it: one run encodes, another one measures. */
async function measureEncoded(one: PlannedAudio, gain: Gain, { input, spec, ffmpeg, run: common }: LoudnessOptions) {
  const { lines, onLog } = lastLines();
  const encoded = new PassThrough();
  const shared = { ...common, writes: [] };
  const encoding = runDecoded(ffmpeg, {
    ...shared,
    decoded: decodedFor(one, { input }),
    args: [
      ...["-nostdin", "-hide_banner", "-loglevel", "error", "-nostats", ...DECODED_INPUT],
      ...["-af", [...normalizedAudio(one, spec), ...amplify(gain)].join(",")],
      ...[...audioEncoder(one, spec), "-map_metadata", "-1", "-map_chapters", "-1", "-f", CONTAINER, "pipe:1"],
    ],
    // Ends with the meter, which takes its output.
    timeLimitMs: null,
    output: encoded,
  }).finally(() => encoded.end());
  const meter = run(ffmpeg, {
    ...shared,
    reads: [],
    args: [...OPTIONS, ...PROGRESS, "-f", CONTAINER, "-i", "pipe:0", ...measuring(METER)],
    ...UNTIL_STALLED,
    input: encoded,
    onLog,
  });
  // Both have ended when an error of one is thrown.
  const failed = (await Promise.allSettled([encoding, meter])).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
  return parseSummary(lines);
}

/** The summary is the end of the log. */
function lastLines() {
  const lines: string[] = [];
  const onLog = (line: string) => {
    lines.push(line);
    if (lines.length > SUMMARY_LINES) lines.shift();
  };
  return { lines, onLog };
}

const SUMMARY_LINES = 40;

/** Reads the summary of ffmpeg's filter `ebur128`. */
export function parseSummary(lines: readonly string[]): Loudness | null {
  const value = (label: string, unit: string) => {
    const line = lines.findLast((one) => one.trim().startsWith(`${label}:`) && one.trim().endsWith(unit));
    return line === undefined ? null : Number.parseFloat(line.slice(line.indexOf(":") + 1));
  };
  const lufs = value("I", "LUFS");
  const peakDb = value("Peak", "dBFS");
  if (lufs === null || !Number.isFinite(lufs)) return null;
  return { lufs, peakDb: peakDb !== null && Number.isFinite(peakDb) ? peakDb : 0 };
}
