/** At the same words, the track shows `from` ms what the reference shows `to` ms. */
export type Tie = { from: number; to: number };

/** Two neighbours may differ by so much without a jump between them: cues are set by hand, and rates differ by 4 %. */
const LOOSE_MS = 750;
const DRIFT = 0.06;

/** Whether two ties can belong to one offset that drifts at most. */
export const agree = (a: Tie, b: Tie): boolean =>
  Math.abs(b.to - b.from - (a.to - a.from)) <= LOOSE_MS + DRIFT * Math.abs(b.from - a.from);
