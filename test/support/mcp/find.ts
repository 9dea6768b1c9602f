import MiniSearch from "minisearch";

/** Words that say nothing about what is to be done. */
const STOP_WORDS = new Set(
  "a an and are as at be by do for from give how i in is it me my of on one or say so that the them this to try until want were what when which who why will with".split(
    " ",
  ),
);
const termOf = (word: string) => {
  const term = word.toLowerCase().replace(/s$/, "");
  return STOP_WORDS.has(word.toLowerCase()) || term.length < 2 ? null : term;
};

type Tool = { name: string; description?: string };

/**
 * The names of the tools that have words of `say` in their name or description, best ones first. A plain keyword search, by
 * BM25, which knows no synonyms: a model finds more.
 */
export function foundBy(tools: readonly Tool[], say: string): string[] {
  const index = new MiniSearch({ idField: "name", fields: ["words", "description"], processTerm: termOf });
  index.addAll(tools.map(({ name, description = "" }) => ({ name, words: name.replaceAll("_", " "), description })));
  const options = { boost: { words: 2 }, prefix: (term: string) => term.length >= 4 };
  return index.search(say, options).map(({ id }) => String(id));
}
