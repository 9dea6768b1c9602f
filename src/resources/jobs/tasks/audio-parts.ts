import type { Chunk, PlanResult } from "../../../protocol/task.ts";
import type { TaskDraft } from "./lifecycle.ts";

/** A request waits for the part that is running: a worker encodes a minute of audio in about a second. */
const PART_SECONDS = 60;
/** A few minutes may as well be one part. */
const LEAST_PARTS = 6;

/**
 * The audio of a long source: in parts of whole segments, in the order of time, so that no worker encodes all of it while
 * others have nothing left to do, and a viewer does not wait for what is before the requested part. As one task where it
 * cannot be cut.
 */
export function audioParts({ early, segment_seconds }: PlanResult, weight: number): TaskDraft[] {
  const step = early?.audio_step;
  const each = step ? Math.max(1, Math.round(PART_SECONDS / segment_seconds / step)) * step : 1;
  const parts = step ? Math.floor(early.segments / each) : 1;
  if (parts < LEAST_PARTS) return [{ kind: "audio", weight }];
  return Array.from({ length: parts }, (_, number): TaskDraft => {
    const from = number * each;
    const to = number === parts - 1 ? null : from + each;
    return { kind: "audio", chunk: rangeOfAudio({ number, from, to }), weight: weight / parts, rank: from };
  });
}

/** Segments `from` to before `to` of the audio; null: to the end of the source. */
export const rangeOfAudio = ({ number, from, to }: { number: number; from: number; to: number | null }): Chunk => ({
  ...{ number, first_segment: from, segments: to === null ? null : to - from },
  ...{ first_frame: 0, end_frame: null, renditions: null, is_urgent: false },
});
