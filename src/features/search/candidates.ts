import { sql } from "drizzle-orm";
import { languageCondition, metaCondition, wordCondition, wordsCondition } from "#lib/search";
import type { Db } from "#storage/db/open.ts";

/** Rows of the index that one condition contributes: the newest. */
const MAX_ROWS = 200;
/** The same for a single word of several, where no section has all of them. */
const MAX_ROWS_OF_WORD = 500;

/** The share of a condition in the rank of an asset. */
const WEIGHTS = { wholeTitle: 8, title: 4, ownTexts: 2, often: 1 };

/** An asset that may match, and the sections to compare. */
export type Candidate = { assetId: number; score: number; sections: Set<number> };

/** What is searched for: folded words. */
export type Query = { tenantId: number; words: readonly string[]; language: string | undefined };

type Row = { id: number; asset_id: number };

/** FTS5 returns rows in this order without sorting them, and stops at the limit. */
const rowsOf = (db: Db, condition: string, limit: number): Promise<Row[]> =>
  db.all<Row>(sql`select s.id, s.asset_id from search_index cross join search_sections s on s.id = search_index.rowid
    where search_index match ${condition} order by search_index.rowid desc limit ${limit}`);

/**
 * Assets that may match, best first: words in the title, then in other texts of the asset, then often in captions, then the
 * newest. A few lists of limited length decide: the time does not depend on how many sections have a word.
 */
export async function candidatesFor(db: Db, { tenantId, words, language }: Query): Promise<Candidate[]> {
  const inLanguage = language === undefined ? "" : ` AND ${languageCondition(tenantId, language)}`;
  const all = wordsCondition(tenantId, "a", words);
  const inTitle = words.slice(0, 4).map((word) => `(${wordCondition(tenantId, "t", word)})`);
  const lists: [condition: string, weight: number][] = [
    [wordsCondition(tenantId, "t", words), WEIGHTS.wholeTitle],
    ...(words.length > 1 ? [[`(${all}) AND (${inTitle.join(" OR ")})`, WEIGHTS.title] as [string, number]] : []),
    [`${all} AND ${metaCondition(tenantId)}`, WEIGHTS.ownTexts],
    [`${wordsCondition(tenantId, "s", words)}${inLanguage}`, WEIGHTS.often],
    [`${all}${inLanguage}`, 0],
  ];
  const found = new Map<number, Candidate>();
  const add = ({ id, asset_id }: Row, weight: number) => {
    const one = found.get(asset_id) ?? { assetId: asset_id, score: 0, sections: new Set<number>() };
    one.score += weight;
    one.sections.add(id);
    found.set(asset_id, one);
  };
  for (const [condition, weight] of lists) for (const row of await rowsOf(db, condition, MAX_ROWS)) add(row, weight);
  if (words.length > 1 && found.size < MAX_ROWS)
    for (const one of await spread(db, { tenantId, words, language }))
      if (!found.has(one.assetId)) found.set(one.assetId, one);
  return [...found.values()].sort((a, b) => b.score - a.score);
}

/** Assets that have all words, but none of whose sections has all of them: one in the title, say, and one in captions. */
async function spread(db: Db, { tenantId, words, language }: Query): Promise<Candidate[]> {
  const inLanguage = language === undefined ? "" : ` AND ${languageCondition(tenantId, language)}`;
  let assets: Map<number, Candidate> | null = null;
  for (const word of words.slice(0, 4)) {
    const having = new Map<number, Candidate>();
    const condition = `${wordCondition(tenantId, "a", word)}${inLanguage}`;
    for (const { id, asset_id } of await rowsOf(db, condition, MAX_ROWS_OF_WORD)) {
      const before = assets?.get(asset_id);
      if (assets && !before) continue;
      const one = having.get(asset_id) ?? { assetId: asset_id, score: 0, sections: new Set(before?.sections) };
      // The first two sections with a word are enough to show it.
      if (one.sections.size < 4) one.sections.add(id);
      having.set(asset_id, one);
    }
    assets = having;
    if (assets.size === 0) break;
  }
  return [...(assets?.values() ?? [])];
}
