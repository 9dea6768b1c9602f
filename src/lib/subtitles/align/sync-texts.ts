import { runToEnd } from "#lib/base";
import { parsing } from "../vtt/parse.ts";
import { retimed } from "../vtt/retime.ts";
import { type Alignment, align } from "./align.ts";

export type SyncedText = Pick<Alignment, "matchRatio" | "anchorCount"> & {
  /** `text` is the track with the reference's times. Null when the two have too little in common. */
  moved:
    | (Omit<NonNullable<Alignment["moved"]>, "timings"> & {
        text: string;
      })
    | null;
};

/** Re-times the WebVTT text `track` to the times of the same words in `reference`. Throws TooComplex. */
export function syncTexts({ track, reference }: { track: string; reference: string }): SyncedText {
  const { cues } = runToEnd(parsing(track));
  const other = runToEnd(parsing(reference));
  const { matchRatio, anchorCount, moved } = runToEnd(align(cues, other.cues));
  if (!moved) return { matchRatio, anchorCount, moved };
  const { timings, ...rest } = moved;
  return { matchRatio, anchorCount, moved: { ...rest, text: runToEnd(retimed(track, cues, timings)) } };
}
