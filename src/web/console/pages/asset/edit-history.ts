/** What was edited, as texts: earlier ones and undone ones, the last of each the nearest. */
export type EditHistory = { past: readonly string[]; future: readonly string[]; step: string | null };

export const NO_EDITS: EditHistory = { past: [], future: [], step: null };

const MAX_STEPS = 200;
/** All texts together; a subtitle has up to two million. */
const MAX_CHARACTERS = 40_000_000;

/** After an edit of `before`. Edits of the same `step`, such as letters of one word, are undone together. */
export function edited(history: EditHistory, before: string, step: string | null): EditHistory {
  if (step !== null && step === history.step) return { ...history, future: [] };
  const past = [...history.past, before].slice(-MAX_STEPS);
  let characters = past.reduce((sum, { length }) => sum + length, 0);
  let from = 0;
  for (; characters > MAX_CHARACTERS && from < past.length - 1; from++) characters -= past[from]?.length ?? 0;
  return { past: past.slice(from), future: [], step };
}

/** The text before the last step, and the history then; null when there is none. */
export function undone({ past, future }: EditHistory, now: string): { text: string; history: EditHistory } | null {
  const text = past.at(-1);
  if (text === undefined) return null;
  return { text, history: { past: past.slice(0, -1), future: [...future, now], step: null } };
}

export function redone({ past, future }: EditHistory, now: string): { text: string; history: EditHistory } | null {
  const text = future.at(-1);
  if (text === undefined) return null;
  return { text, history: { past: [...past, now], future: future.slice(0, -1), step: null } };
}
