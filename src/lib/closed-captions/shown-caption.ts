/**
 * What a service shows for a time: `cc1` to `cc4`, `service1` and more, or another source of captions. `text`: rows, without empty ones. `row`: of
 * the first one, 0 to 14.
 */
export type ShownCaption = {
  service: string;
  /** A BCP 47 tag, where it is known. */
  language?: string;
  startMs: number;
  endMs: number;
  text: string;
  row: number;
};
/** The row in which captions usually end. */
export const BOTTOM_ROW = 14;

/**
 * The WebVTT settings of one of the 15 rows of the screen; captions in the lower third are where players show them anyway.
 * @example
 * settingsOf(0) // => "line:0%"
 * settingsOf(14) // => ""
 */
export const settingsOf = (row: number): string => (row < 9 ? `line:${Math.round((100 * row) / 15)}%` : "");
