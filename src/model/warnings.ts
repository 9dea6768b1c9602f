/** The codes of an asset's `warnings`, with what each means. */
export const WARNINGS = {
  track_skipped: "A track of the source cannot be decoded or read and was left out; the others play",
  source_truncated: "The end of the source is missing; its beginning plays",
  timestamps_repaired: "The timestamps of the source jump; they were corrected, and all of it plays in sync",
  closed_captions_unreadable: "The closed captions in the video of the source could not be read",
  captions_not_configured: "Captions are requested, but this server has no transcriber",
} as const;

export type WarningCode = keyof typeof WARNINGS;
export const WARNING_CODES = Object.keys(WARNINGS) as [WarningCode, ...WarningCode[]];

/** `message` is for people: it names what was left out, or corrected. */
export type Warning = { code: WarningCode; message: string };
