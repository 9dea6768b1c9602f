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
