import { and, desc, eq, getTableColumns, lt, sql } from "drizzle-orm";
import { notFound } from "#lib/base";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import type { Db } from "#storage/db/open.ts";
import { type ImportRunRow, importRuns } from "#storage/db/schema.ts";

/** Runs of one tenant that are kept. */
const MAX_RUNS = 50;

/** A run that the caller may see. Throws 404. */
export const requireImportRun = async (db: Db, caller: Caller, id: number): Promise<ImportRunRow> =>
  (await db
    .select()
    .from(importRuns)
    .where(and(eq(importRuns.id, id), ownedBy(caller, importRuns.tenantId)))
    .get()) ?? notFound("import run");

type Page = { after: number | undefined; limit: number; tenantId: number | undefined };

/** Newest first, without their problems. */
export function listImportRuns(db: Db, caller: Caller, { after, limit, tenantId }: Page): Promise<ImportRunRow[]> {
  const { problems: _, ...columns } = getTableColumns(importRuns);
  return db
    .select({ ...columns, problems: sql<[]>`'[]'`.mapWith(importRuns.problems) })
    .from(importRuns)
    .where(
      and(
        ownedBy(caller, importRuns.tenantId),
        tenantId === undefined ? undefined : eq(importRuns.tenantId, tenantId),
        after === undefined ? undefined : lt(importRuns.id, after),
      ),
    )
    .orderBy(desc(importRuns.id))
    .limit(limit + 1)
    .all();
}

/** Deletes the runs before the newest ones, so that their number and bytes have a limit. */
export const forgetOldRuns = (tx: Db, tenantId: number) =>
  tx.run(sql`DELETE FROM import_runs WHERE id IN (
    SELECT id FROM import_runs WHERE tenant_id = ${tenantId} ORDER BY id DESC LIMIT -1 OFFSET ${MAX_RUNS})`);
