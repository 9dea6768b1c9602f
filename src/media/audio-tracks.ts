import { audioOutput } from "./arguments.ts";
import { DECODED_INPUT, DECODED_TRACK, type DecodedTrack, runDecoded } from "./audio-decoding.ts";
import { channelLayout, encodedSamples } from "./audio-filters.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { type RunOptions, type SourceRun, UNTIL_STALLED } from "./ffmpeg.ts";
import type { EncodePlan, PlannedAudio } from "./plan.ts";

type TrackOptions = {
  input: string;
  /** Has the folder of each rendition. */
  outDir: string;
  /** What is produced from the source in all. */
  whole: EncodePlan;
  spec: EncodingSpec;
  ffmpeg: string;
  run: SourceRun & Pick<RunOptions, "precedence">;
  /** 0 to 1. */
  onProgress?: (fraction: number) => void;
};

/** What is decoded for a rendition. */
export const decodedFor = (
  one: Pick<PlannedAudio, "track" | "surroundOf">,
  { input, whole }: Pick<DecodedTrack, "input" | "whole">,
): DecodedTrack => ({ input, track: one.track, channelLayout: channelLayout(one), whole });

/** Encodes audio renditions that are not copied, one after the other, each from its start to its end. Throws MediaError. */
export async function encodeTracks(audio: readonly PlannedAudio[], options: TrackOptions): Promise<void> {
  const { input, outDir, whole, spec, ffmpeg, onProgress } = options;
  const tracks = audio.filter(({ isCopied }) => !isCopied);
  const length = whole.durationSeconds;
  for (const [done, one] of tracks.entries()) {
    await runDecoded(ffmpeg, {
      ...options.run,
      decoded: decodedFor(one, { input, whole }),
      args: [
        ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
        ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5", ...DECODED_INPUT],
        ...["-filter_complex", `${DECODED_TRACK}${encodedSamples(one, spec).join(",")}[a0]`],
        ...audioOutput(one, 0, { spec, outDir }),
      ],
      ...UNTIL_STALLED,
      onPosition: (seconds) => length && onProgress?.((done + Math.min(1, seconds / length)) / tracks.length),
    });
  }
}
