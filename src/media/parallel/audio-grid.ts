import { audioCodecs } from "#lib/codecs";
import type { EncodingSpec } from "../encoding-spec.ts";
import { fillOf } from "../plan.ts";
import type { SourceIndex } from "./source-index.ts";
import type { StoredPlan } from "./stored-plan.ts";

/** Less than a packet of any codec, and more than a container's rounding of times. */
const GAP_SECONDS = 0.005;
/** Four minutes of segments of 4 s. */
const MAX_STEP = 64;

/** The first packet of segment `number` of an audio track: ffmpeg cuts at the first packet at n x 4 s or later. */
export const firstPacketOf = (number: number, { segment_seconds, audio }: EncodingSpec, rate: number): number =>
  // A tolerance of a millionth of a packet, for segment lengths that are not whole seconds.
  Math.ceil((number * segment_seconds * rate) / audioCodecs[audio.codec].packetSamples - 1e-6);

/** The first sample of segment `number` of encoded audio. */
export const firstSampleOf = (number: number, spec: EncodingSpec): number =>
  firstPacketOf(number, spec, spec.audio.sample_rate) * audioCodecs[spec.audio.codec].packetSamples;

/**
 * Audio can be encoded in parts that begin at multiples of so many segments: there a packet begins exactly at n x 4 s, so
 * that a part has the same packets as a run over the whole source. Null when parts would not be exact, or such
 * segments are too far apart: with a pass over everything before (loudness), audio that is copied, which takes no time,
 * silence of more than the last part, and times that do not follow from the number of samples.
 */
export function audioStep(
  { audio: tracks, startSeconds = 0 }: Pick<StoredPlan, "audio" | "startSeconds">,
  index: SourceIndex | null | undefined,
  spec: EncodingSpec,
): number | null {
  const { audio, segment_seconds } = spec;
  if (!index || tracks.length === 0 || audio.loudness_lufs !== null) return null;
  const step = Array.from({ length: MAX_STEP }, (_, at) => at + 1).find((count) =>
    Number.isInteger((count * segment_seconds * audio.sample_rate) / audioCodecs[audio.codec].packetSamples),
  );
  const isExact = tracks.every(({ track, isCopied, padToSeconds }) => {
    const indexed = index.tracks[track.index];
    const { isShort } = fillOf(track, padToSeconds, { startSeconds });
    return !isCopied && isShort && indexed?.kind === "audio" && isSteady(indexed.dts);
  });
  return isExact ? (step ?? null) : null;
}

/** Whether all packets have the same duration, without gaps. */
function isSteady(times: ArrayLike<number>): boolean {
  const { length } = times;
  const first = times[0] ?? 0;
  const each = length < 2 ? 0 : ((times[length - 1] as number) - first) / (length - 1);
  for (let at = 0; at < length; at++)
    if (Math.abs((times[at] as number) - first - at * each) > GAP_SECONDS) return false;
  return length > 1;
}
