import { audioOutput, decodeOutput, normalizedAudio } from "../arguments.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { untrustedInput } from "../ffmpeg.ts";
import type { PlannedAudio } from "../plan.ts";

type AudioPartOptions = {
  input: string;
  outDir: string;
  spec: EncodingSpec;
  audio: readonly PlannedAudio[];
  /** The samples to encode; without an end those to the end of the source. */
  samples: { first: number; end: number | null };
};

/** How long before its first sample a part is read: a decoder's first packets have faults. */
const LEAD_SECONDS = 1;
const PROGRESS = ["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"];

/** Arguments of the run that encodes a part of audio tracks, with times from 0. */
export function audioPartArguments({ input, outDir, audio, spec, samples }: AudioPartOptions): string[] {
  const { first, end } = samples;
  // Of any sample rate whole seconds are whole samples: resampled, they are those of a run over the whole source.
  const seconds = Math.floor(first / spec.audio.sample_rate) - LEAD_SECONDS;
  const trim = `atrim=${[`start_pts=${first}`, ...(end === null ? [] : [`end_pts=${end}`])].join(":")}`;
  const isFromStart = seconds <= 0;
  const filtersOf = (one: PlannedAudio) =>
    [
      ...(isFromStart ? [] : [`atrim=start=${seconds}`]),
      ...normalizedAudio(one, spec, { isFromStart }),
      trim,
      `asetpts=PTS-${first}`,
    ].join(",");
  return [
    ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning", ...PROGRESS],
    ...["-copyts", "-start_at_zero", ...(isFromStart ? [] : ["-noaccurate_seek", "-ss", String(seconds)])],
    ...untrustedInput(input),
    ...["-filter_complex", audio.map((one, index) => `[0:${one.track.index}]${filtersOf(one)}[a${index}]`).join(";")],
    ...audio.flatMap((one, index) => audioOutput(one, index, { spec, outDir })),
  ];
}

/** Arguments of the run that decodes tracks, and fails at the first fault. */
export const decodeArguments = ({ input, audio }: { input: string; audio: readonly PlannedAudio[] }): string[] => [
  ...["-nostdin", "-hide_banner", "-loglevel", "warning", "-xerror", "-err_detect", "explode", ...PROGRESS],
  ...untrustedInput(input),
  ...audio.flatMap(decodeOutput),
];
