import { sql } from "drizzle-orm";
import { changeInBatches } from "#storage/db/change-in-batches.ts";
import type { Db } from "#storage/db/open.ts";

const ROWS_AT_ONCE = 1000;

/** Deletes the records of an upload's parts, which has up to ten thousand. */
export const forgetParts = (tx: Db, uploadId: number): Promise<void> =>
  changeInBatches(ROWS_AT_ONCE, () =>
    tx.run(sql`DELETE FROM ingest_parts WHERE (upload_id, part_number) IN (
      SELECT upload_id, part_number FROM ingest_parts WHERE upload_id = ${uploadId} LIMIT ${ROWS_AT_ONCE})`),
  );
