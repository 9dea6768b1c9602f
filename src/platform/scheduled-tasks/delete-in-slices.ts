import { type SQL, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { yieldToRequests } from "#lib/base";
import type { Db } from "#storage/db/open.ts";

type Rows = {
  table: string;
  /** Columns that identify a row; default: `id`. */
  key?: string;
  where: SQL;
  /** Is called in each transaction, before at most `rows` rows are deleted. */
  before?: (tx: Db, rows: number) => Promise<unknown>;
};

/** Rows of a slice: it starts with few, and takes more until it needs about `SLICE_MS`. */
const FIRST_ROWS = 20;
const MAX_ROWS = 5000;
const SLICE_MS = 3;

/**
 * Deletes rows, however many and large they are, in short transactions with other work between them. `where` should have
 * an index. Resolves with their number, also when the server stops before all are deleted.
 */
export async function deleteInSlices(app: App, { table, key = "id", where, before }: Rows): Promise<number> {
  const name = sql.raw(table);
  const columns = sql.raw(key);
  let total = 0;
  for (let rows = FIRST_ROWS; !app.stopping.aborted; await yieldToRequests()) {
    // Outside the write queue: there is almost never anything to do.
    if ((await app.db.all(sql`SELECT 1 FROM ${name} WHERE ${where} LIMIT 1`)).length === 0) break;
    let ms = 0;
    const deleted = await app.write(async (tx) => {
      const from = performance.now();
      await before?.(tx, rows);
      const slice = sql`SELECT ${columns} FROM ${name} WHERE ${where} LIMIT ${rows}`;
      const gone = await tx.all(sql`DELETE FROM ${name} WHERE (${columns}) IN (${slice}) RETURNING 1 AS deleted`);
      ms = performance.now() - from;
      return gone.length;
    });
    total += deleted;
    if (deleted < rows) break;
    if (ms > SLICE_MS) rows = Math.max(1, rows >> 1);
    else if (ms < SLICE_MS / 2) rows = Math.min(MAX_ROWS, rows * 2);
  }
  return total;
}
