import { closest, distance } from "fastest-levenshtein";

/** "Did you mean …?" for a mistyped word, with a leading space; empty when no candidate is similar. */
export function suggestion(word: string, candidates: readonly string[]): string {
  if (candidates.length === 0) return "";
  const best = closest(word, [...candidates]);
  // Two letters swapped are a distance of 2. In a short word that would fit almost anything.
  const isSimilar = distance(word, best) <= (word.replace(/^-+/, "").length < 4 ? 1 : 2);
  return isSimilar ? ` Did you mean ${best}?` : "";
}
