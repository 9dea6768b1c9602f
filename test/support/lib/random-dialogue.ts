import type { TimedText } from "#src/lib/subtitles/align/timing.ts";

/** A small random number generator for [0, 1): mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A few words make up most of the text, as in any language. */
export const lineOf = (random: () => number, stem = "w"): string =>
  Array.from({ length: 3 + Math.floor(random() * 8) }, () => `${stem}${Math.floor(random() ** 3 * 3000)}`).join(" ");

/** Lines of generated dialogue, one after another with pauses. */
export function talk({ cues, seed }: { cues: number; seed: number }): TimedText[] {
  const random = randomFrom(seed);
  let time = 1000;
  return Array.from({ length: cues }, () => {
    const startMs = time + Math.floor(random() * 2500) + 50;
    time = startMs + 900 + Math.floor(random() * 3000);
    return { startMs, endMs: time, text: lineOf(random) };
  });
}
