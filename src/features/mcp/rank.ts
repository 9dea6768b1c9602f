/** What a word is compared with; a match of the name counts three times as much, one of the topic twice. */
export type Ranked = { name: string; topic: string; text: string };

const WEIGHTS = { name: 3, topic: 2, text: 1 } as const;
/** Words of a query; further ones are ignored. */
const MAX_WORDS = 40;
/** Words that say nothing about an operation. */
const STOP_WORDS = new Set(
  "an and as at be by do for from in is it me my of on or so that the them this to was with".split(" "),
);
/** Words that begin alike are taken for forms of one: "encode", "encoding". */
const STEM_LETTERS = 6;

const stemOf = (word: string) => word.replace(/(?<=...)(?:ing|ed|es|s|e)$/, "").slice(0, STEM_LETTERS);
const stemsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[a-z0-9]{2,40}/g) ?? []).filter((word) => !STOP_WORDS.has(word)).map(stemOf);

/**
 * The indexes of `all` that contain words of `query` (at most 400 characters are read), best ones first. A word that many
 * have counts little (inverse document frequency).
 */
export function rankByWords(all: readonly Ranked[], query: string): number[] {
  const words = [...new Set(stemsOf(query.slice(0, 400)))].slice(0, MAX_WORDS);
  const scores = new Map<number, number>();
  const fields = all.map((one) =>
    (["name", "topic", "text"] as const).map((field) => ({
      weight: WEIGHTS[field],
      stems: new Set(stemsOf(one[field])),
    })),
  );
  for (const word of words) {
    const weights = fields.map((each) =>
      Math.max(0, ...each.map(({ weight, stems }) => (stems.has(word) ? weight : 0))),
    );
    const count = weights.filter((weight) => weight > 0).length;
    const rarity = Math.log(1 + all.length / Math.max(count, 1));
    for (const [index, weight] of weights.entries())
      if (weight > 0) scores.set(index, (scores.get(index) ?? 0) + weight * rarity);
  }
  return [...scores].toSorted(([a, x], [b, y]) => y - x || a - b).map(([index]) => index);
}
