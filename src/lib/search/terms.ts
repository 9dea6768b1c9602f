import { folded, isSpaceless, wordsIn } from "./fold.ts";

/**
 * The terms of the search index. Each begins with the number of its tenant and a letter for its kind, so that the lists of
 * one tenant contain nothing of another, in one table of all:
 *
 * - `a`: a beginning of any word; `t`: of a word of the title; `s`: of a word that a section of captions has often
 * - `l`: the language of captions; `k`: the section is not of captions
 *
 * All beginnings of a word are terms. FTS5 would otherwise collect the lists of all words with a prefix before it returns
 * the first result, which takes a second for a frequent one.
 */
export type TermKind = "a" | "t" | "s";

/** Longer beginnings are not distinguished by the index, only by the comparison of texts. */
const MAX_PREFIX = 10;
/** Words of a query that the index is asked for; further ones are only compared. */
const MAX_INDEXED_WORDS = 8;
const MAX_WORDS = 32;

/** A word is frequent in a section with at least so many occurrences, and so many in a thousand words. */
const OFTEN = 3;
const OFTEN_PER_THOUSAND = 4;

export const META = "k";

/** Terms of a word without tenant and kind. */
function beginnings(word: string): string[] {
  if (isSpaceless(word)) return [...pairs(word), ...word];
  const letters = lettersOf(word);
  const terms: string[] = [];
  if (letters.length === 1) return [word];
  for (let length = 2; length <= Math.min(letters.length, MAX_PREFIX); length++)
    terms.push(typeof letters === "string" ? letters.slice(0, length) : letters.slice(0, length).join(""));
  return terms;
}

/** Pairs of neighboring characters of a run without spaces. */
function pairs(run: string): string[] {
  const letters = [...run];
  return letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

/** Characters outside of the basic plane are not split. */
const lettersOf = (word: string): string | string[] => (/[\ud800-\udfff]/.test(word) ? [...word] : word);

/** A language tag and its less specific forms: `pt-BR` is also `pt`. */
const languageTerms = (language: string): string[] => {
  const parts = language.toLowerCase().split("-");
  return parts.map((_, index) => `l${parts.slice(0, index + 1).join("")}`);
};

/** The texts of one row of the index, folded; `language` is null for those of the asset itself. */
export type IndexedTexts = { tenantId: number; language: string | null; title: string; others: readonly string[] };

/** All terms of a row of the index, separated by spaces. */
export function termsOf({ tenantId, language, title, others }: IndexedTexts): string {
  const terms = new Set<string>();
  const add = (kind: TermKind, words: Iterable<string>) => {
    for (const word of words) for (const term of beginnings(word)) terms.add(`${kind}${term}`);
  };
  const titleWords = wordsIn(title);
  add("t", titleWords);
  const counts = new Map<string, number>();
  let total = 0;
  for (const text of [title, ...others])
    for (const word of wordsIn(text)) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
      total++;
    }
  add("a", counts.keys());
  const often = (count: number) => count >= OFTEN && count * 1000 >= OFTEN_PER_THOUSAND * total;
  if (language !== null)
    add(
      "s",
      [...counts].filter(([, count]) => often(count)).map(([word]) => word),
    );
  for (const term of language === null ? [META] : languageTerms(language)) terms.add(term);
  return [...terms].map((term) => `${tenantId}${term}`).join(" ");
}

/**
 * The words of a query, folded, without repetitions.
 * @example
 * queryWords("Straße, Éléna") // => ["strasse", "elena"]
 */
export const queryWords = (text: string): string[] => [...new Set(wordsIn(folded(text)))].slice(0, MAX_WORDS);

const quoted = (tenantId: number, term: string) => `"${tenantId}${term}"`;

/** A condition of FTS5 for one word. */
export function wordCondition(tenantId: number, kind: TermKind, word: string): string {
  const all = isSpaceless(word) && [...word].length > 1 ? pairs(word) : [beginnings(word).at(-1) ?? word];
  return all.map((term) => quoted(tenantId, `${kind}${term}`)).join(" AND ");
}

/** A condition of FTS5 for all words. */
export const wordsCondition = (tenantId: number, kind: TermKind, words: readonly string[]): string =>
  words
    .slice(0, MAX_INDEXED_WORDS)
    .map((word) => wordCondition(tenantId, kind, word))
    .join(" AND ");

/** Only rows of the assets' own texts. */
export const metaCondition = (tenantId: number): string => quoted(tenantId, META);

/** Only captions in a language, and the assets' own texts. */
export const languageCondition = (tenantId: number, language: string): string =>
  `(${quoted(tenantId, `l${language.toLowerCase().replaceAll("-", "")}`)} OR ${metaCondition(tenantId)})`;
