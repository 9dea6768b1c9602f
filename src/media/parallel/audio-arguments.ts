import { audioOutput, decodeOutput, UNCHANGED } from "../arguments.ts";
import { DECODED_INPUT, DECODED_TRACK, type DecodedTrack } from "../audio-decoding.ts";
import { normalizedAudio, silenceUntil } from "../audio-filters.ts";
import { decodedFor } from "../audio-tracks.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { untrustedInput } from "../ffmpeg.ts";
import type { PlannedAudio } from "../plan.ts";

type AudioPartOptions = {
  input: string;
  outDir: string;
  spec: EncodingSpec;
  /** The samples to encode; without an end those to the end of the source. */
  samples: { first: number; end: number | null };
};

/** How long before its first sample a part is read: a decoder's first packets have faults. */
const LEAD_SECONDS = 1;
const PROGRESS = ["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"];

/** What is decoded of a track, and the arguments of the run that encodes a part of it, with times from 0. */
export function audioPart(
  one: PlannedAudio,
  { input, outDir, spec, samples }: AudioPartOptions,
): { decoded: DecodedTrack; args: string[] } {
  const { first, end } = samples;
  // Whole seconds are whole samples at any sample rate: resampled, they are those of a run over the whole source.
  const fromSeconds = Math.max(0, Math.floor(first / spec.audio.sample_rate) - LEAD_SECONDS);
  const trim = `atrim=${[`start_pts=${first}`, ...(end === null ? [] : [`end_pts=${end}`])].join(":")}`;
  const filters = [
    ...normalizedAudio(one, spec, { isFromStart: fromSeconds === 0 }),
    trim,
    `asetpts=PTS-${first}`,
    ...(end === null ? silenceUntil(one, spec, first) : []),
  ].join(",");
  return {
    decoded: { ...decodedFor(one, { input }), fromSeconds },
    args: [
      ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning", ...PROGRESS, ...DECODED_INPUT],
      ...["-filter_complex", `${DECODED_TRACK}${filters}[a0]`],
      ...audioOutput(one, 0, { spec, outDir }),
    ],
  };
}

/** Arguments of the run that decodes tracks, and fails at the first fault. */
export const decodeArguments = ({ input, audio }: { input: string; audio: readonly PlannedAudio[] }): string[] => [
  ...["-nostdin", "-hide_banner", "-loglevel", "warning", "-xerror", "-err_detect", "explode", ...PROGRESS],
  ...UNCHANGED,
  ...untrustedInput(input),
  ...audio.flatMap(decodeOutput),
];
