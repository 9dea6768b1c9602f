/** Why a cue of a file is left out. */
export type SkipReason = "duration" | "before" | "text" | "end" | "image";
/** A cue that is left out, and the line of its times, counted from 1. */
export type SkippedCue = { line: number; reason: SkipReason };
/** An entry of a subtitle's `warnings` in the API, and of their column in the database. */
export type SubtitleWarning = { code: "cues_skipped"; count: number; message: string };

const REASONS: Record<SkipReason, string> = {
  duration: "without duration",
  before: "before the start of the video",
  text: "without text",
  end: "without an end",
  image: "with an image in place of text",
};
/** More would hide the other reasons. */
const LISTED_LINES = 10;

/** The warnings of a text: empty when no cue was left out. */
export function skippedWarnings(skipped: readonly SkippedCue[]): SubtitleWarning[] {
  const count = skipped.length;
  if (count === 0) return [];
  const reasons = [...Map.groupBy(skipped, ({ reason }) => reason)].map(
    ([reason, cues]) => `${cues.length} ${REASONS[reason]} (${lineList(cues.map(({ line }) => line))})`,
  );
  const verb = count === 1 ? "cue was" : "cues were";
  return [{ code: "cues_skipped", count, message: `${count} ${verb} left out: ${reasons.join(", ")}.` }];
}

function lineList(lines: readonly number[]): string {
  const more = lines.length - LISTED_LINES;
  const listed = lines.slice(0, LISTED_LINES).join(", ");
  return `${lines.length === 1 ? "line" : "lines"} ${listed}${more > 0 ? ` and ${more} more` : ""}`;
}
