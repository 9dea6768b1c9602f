import { type SQL, sql } from "drizzle-orm";
import { HttpError } from "#lib/base";
import type { Db } from "#storage/db/open.ts";

export type RowLimit = {
  /** With an index that begins with `tenant_id`, or with the columns of `where`. */
  table: string;
  where: SQL;
  /** The most rows. The test for it reads an index of this length: at most 50,000, about a millisecond. */
  max: number;
  /** Those that only have a history: the oldest of them are deleted for a new row. */
  ended?: SQL;
  /** The code of the error 422. */
  code: string;
  /** What a tenant has, in the plural, and what to do. */
  message: string;
};

const DELETED_AT_ONCE = 100;

/**
 * Throws 422 `code` where one more row would exceed `max`, in the transaction that inserts it. For rows that a tenant can create
 * and that are not metered as bytes (test/api/tenants/row-limits.test.ts lists all tables).
 */
export async function requireFewerRows(tx: Db, { table, where, max, ended, code, message }: RowLimit): Promise<void> {
  const rows = sql.raw(table);
  const full = await tx.all(sql`SELECT 1 FROM ${rows} WHERE ${where} LIMIT 1 OFFSET ${max - 1}`);
  if (full.length === 0) return;
  if (ended) {
    const { rowsAffected } = await tx.run(sql`DELETE FROM ${rows} WHERE id IN (
      SELECT id FROM ${rows} WHERE ${where} AND (${ended}) ORDER BY id LIMIT ${DELETED_AT_ONCE})`);
    if (rowsAffected > 0) return;
  }
  throw new HttpError(422, code, message);
}
