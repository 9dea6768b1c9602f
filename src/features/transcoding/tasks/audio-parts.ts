import type { Chunk, PlanResult } from "#protocol/task.ts";
import type { TaskDraft } from "./lifecycle.ts";

/** A request waits for the part that is running: a worker encodes a minute of audio in one to three seconds. */
const PART_SECONDS = 60;
/** A few minutes may as well be one part. */
const LEAST_PARTS = 6;

/**
 * The audio of a long source: in parts of whole segments, in the order of time, so that no worker encodes all of it while
 * others have nothing left to do, and a viewer does not wait for what is before the requested part. As one task where it
 * cannot be cut. With `isEarly` the first segments are a part of their own, whatever the length: a viewer waits for them.
 */
export function audioParts(
  { early, segment_seconds }: PlanResult,
  weight: number,
  { isEarly = false } = {},
): TaskDraft[] {
  const step = early?.audio_step;
  if (!step) return [{ kind: "audio", weight }];
  const each = Math.max(1, Math.round(PART_SECONDS / segment_seconds / step)) * step;
  const isLong = Math.floor(early.segments / each) >= LEAST_PARTS;
  // The last part takes what does not fill another one: where the source ends is only known when it is encoded.
  const minutes = Array.from({ length: isLong ? Math.floor(early.segments / each) : 1 }, (_, number) => number * each);
  const hasLead = isEarly && early.segments >= 2 * step;
  const starts = hasLead ? [0, step, ...minutes.slice(1)] : minutes;
  if (starts.length === 1) return [{ kind: "audio", weight }];
  return starts.map((from, number): TaskDraft => {
    const to = starts[number + 1] ?? null;
    const share = ((to ?? early.segments) - from) / early.segments;
    return { kind: "audio", chunk: rangeOfAudio({ number, from, to }), weight: weight * share, rank: from };
  });
}

/** Segments `from` to before `to` of the audio; null: to the end of the source. */
export const rangeOfAudio = ({ number, from, to }: { number: number; from: number; to: number | null }): Chunk => ({
  number,
  first_segment: from,
  segments: to === null ? null : to - from,
  first_frame: 0,
  end_frame: null,
  renditions: null,
  is_urgent: false,
});
