import { sql } from "drizzle-orm";
import type { Db } from "./open.ts";

/**
 * Each change of texts adds segments to the text index, which every search reads, until they are merged. SQLite would do
 * so while it writes, in steps of up to 50 ms; migration 0025 leaves it to these functions.
 * https://www.sqlite.org/fts5.html#the_merge_command
 */

/** The indexes of assets' texts in lists, and of the search (migration 0065). */
export type TextIndex = "assets_text" | "search_index";

/** Pages of one step: a few milliseconds, and more than twenty changed assets add. */
const STEP_PAGES = 20;

/** One step. */
export async function mergeTextIndex(tx: Db, index: TextIndex = "assets_text"): Promise<void> {
  const name = sql.raw(index);
  await tx.run(sql`insert into ${name} (${name}, rank) values ('merge', ${STEP_PAGES})`);
}

/** One step. Returns whether there may be more to merge. */
export async function continueTextIndexMerge(tx: Db, index: TextIndex = "assets_text"): Promise<boolean> {
  const changes = async () => (await tx.get<{ n: number }>(sql`select total_changes() as n`)).n;
  const before = await changes();
  await mergeTextIndex(tx, index);
  // The command itself counts as one change.
  return (await changes()) - before >= 2;
}
