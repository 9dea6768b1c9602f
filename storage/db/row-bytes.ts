import { getTableColumns, type SQL, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";

/**
 * Bytes of the columns of a row that have no fixed size. SQLite reads them from the header of the row, so that large values
 * are not read.
 */
export function rowBytes(table: SQLiteTable): SQL<number> {
  const columns = Object.values(getTableColumns(table)).filter(({ dataType }) => VARIABLE.includes(dataType));
  return sql<number>`${sql.join(
    columns.map((column) => sql`coalesce(octet_length(${column}), 0)`),
    sql` + `,
  )}`;
}

const VARIABLE = ["string", "json", "buffer"];

/** A row that has not been read, and its size. */
export type SizedRow = { id: number; bytes: number };

/** Rows that are read at once: about a millisecond of work. */
const MAX_BYTES = 256 * 1024;
const MAX_ROWS = 100;

/**
 * Reads `sized` rows in groups of limited size, in their order: at most `maxBytes`, unless one row has more. `read` returns the rows of some ids in any order; those
 * that no longer exist are left out.
 */
export async function* readBySize<Row extends { id: number }>(
  sized: readonly SizedRow[],
  read: (ids: number[]) => Promise<Iterable<Row>>,
  maxBytes = MAX_BYTES,
): AsyncGenerator<Row[]> {
  let ids: number[] = [];
  let total = 0;
  const group = async () => {
    const rows = new Map<number, Row>();
    for (const row of await read(ids)) rows.set(row.id, row);
    return ids.flatMap((id) => rows.get(id) ?? []);
  };
  for (const { id, bytes } of sized) {
    if (ids.length === MAX_ROWS || (ids.length > 0 && total + bytes > maxBytes)) {
      yield await group();
      ids = [];
      total = 0;
    }
    ids.push(id);
    total += bytes;
  }
  if (ids.length > 0) yield await group();
}
