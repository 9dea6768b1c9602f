import { type SQL, sql } from "drizzle-orm";
import { changeInBatches } from "#storage/db/change-in-batches.ts";
import type { Db } from "#storage/db/open.ts";

type Dependents = {
  table: string;
  /** Rows of one statement: about two milliseconds of work where each is as large as it may be. */
  rows: number;
  of: (assetId: number) => SQL;
};

const ofAsset = (assetId: number) => sql`asset_id = ${assetId}`;

/** Rows that an asset may have hundreds of, or that are large. The foreign keys delete the others with the asset itself. */
const DEPENDENTS: readonly Dependents[] = [
  { table: "tracks", rows: 8, of: ofAsset },
  { table: "search_sections", rows: 8, of: ofAsset },
  { table: "shares", rows: 100, of: ofAsset },
  {
    table: "transcoding_tasks",
    rows: 50,
    of: (assetId) => sql`job_id IN (SELECT id FROM transcoding_jobs WHERE asset_id = ${assetId})`,
  },
];

/**
 * Deletes rows that belong to an asset, in the transaction that deletes the asset next. Its foreign keys would delete all of
 * them in a single statement, which holds the event loop until its end.
 */
export async function deleteDependents(tx: Db, assetId: number): Promise<void> {
  for (const { table, rows, of } of DEPENDENTS) {
    const name = sql.raw(table);
    await changeInBatches(rows, () =>
      tx.run(sql`DELETE FROM ${name} WHERE id IN (SELECT id FROM ${name} WHERE ${of(assetId)} LIMIT ${rows})`),
    );
  }
}
